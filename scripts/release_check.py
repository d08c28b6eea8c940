"""Tries a release before it is one: `make release-check [TAG=v1.2.3] [DIST=FOLDER]`.

Of each package: builds the sdist, builds the wheel out of that sdist, compares what the wheel
holds with the sources, and builds both again elsewhere: the bytes must be the same. Installs the
core alone with its locked dependencies in a fresh environment and asks a question there, outside
the repository; then adds the laboratory and the server, and tries what they bring. Writes the bill
of materials, the hashes and the provenance, and has the lock audited. Everything lies in a
temporary folder; DIST keeps the files.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Mapping, Sequence
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import supply_chain
from release_statements import list_hashes, state_provenance

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("osler", "osler-lab", "osler-serve")
KINDS = {
    "osler": ("*/prompts/*.md", "*/presets/*.toml", "*/sample/*", "*/py.typed"),
    "osler-lab": ("*/prompts/*.md", "*/ablations/*.toml", "*/py.typed"),
    "osler-serve": ("*/deploy/*", "*/py.typed"),
}
"""Data without which Osler installs well and then fails; none may be empty."""

QUESTION = "A patient who takes warfarin is started on amiodarone. What happens to the INR?"


class Refused(Exception):
    """The release is not fit to be one; the message says why."""


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tag", help="the tag to be set, as in v1.2.3; it must fit the version")
    parser.add_argument("--keep", type=Path, help="a folder for all that is released")
    given = parser.parse_args(words)
    try:
        check(tag=given.tag, keep=given.keep)
    except Refused as refusal:
        sys.exit(f"release-check: {refusal}")


def check(*, tag: str | None, keep: Path | None) -> None:
    version = project_of("osler")["project"]["version"]
    check_tag(tag, version)
    with tempfile.TemporaryDirectory(prefix="osler-release-") as name:
        folder = Path(name)
        built = {package: build(package, folder) for package in PACKAGES}
        for package, pair in built.items():
            check_wheel(package, pair[1], version)
            check_rebuilt(package, pair, folder)
        install_and_ask({package: wheel for package, (_, wheel) in built.items()}, version, folder)
        sbom = check_supply_chain(folder, version)
        files = [*(file for pair in built.values() for file in pair), sbom]
        for file in (*files, *write_statements(files, version, folder)):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            print(f"{file.name}  {file.stat().st_size / 1e6:.1f} MB  sha256 {digest}")
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, keep)
    print(f"release-check: {version} is fit to be released")


def project_of(package: str) -> dict[str, Any]:
    return tomllib.loads(read(f"packages/{package}/pyproject.toml"))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def check_tag(tag: str | None, version: str) -> None:
    """Refuses a tag that differs from the version, that the changelog does not list, or that would
    not tag what is built: changes that were not committed."""
    if tag is None:
        print(f"version {version}; no TAG given, so none was compared")
        return
    if tag != f"v{version}":
        raise Refused(f"the tag is {tag}, and pyproject.toml says {version}: v{version} is wanted")
    headings = [line.split()[1] for line in read("CHANGELOG.md").splitlines() if line[:3] == "## "]
    if version not in headings:
        raise Refused(f"CHANGELOG.md has no heading `## {version}`")
    if changes := run(["git", "status", "--porcelain"], ROOT).splitlines():
        raise Refused(f"{len(changes)} changes are not committed: {', '.join(changes[:10])}")
    print(f"version {version}, as the tag and the changelog say")


def build(
    package: str, folder: Path, root: Path = ROOT, habits: Mapping[str, str] = {}
) -> tuple[Path, Path]:
    """The sdist, and the wheel built out of it: so what the sdist lacks shows."""
    built, source = folder / "dist" / package, folder / "source" / package
    # Without the variable hatchling dates files by a constant, for everybody the same.
    here = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"} | dict(habits)
    hatch = [sys.executable, "-m", "hatchling", "build", "-d", str(built), "-t"]
    run([*hatch, "sdist"], root / "packages" / package, here)
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(source, filter="data")
    (unpacked,) = source.iterdir()
    run([*hatch, "wheel"], unpacked, here)
    (wheel,) = built.glob("*.whl")
    return sdist, wheel


def check_rebuilt(package: str, first: tuple[Path, Path], folder: Path) -> None:
    """Builds again in another folder, from files of another day and other modes, with another
    seed, zone and language: sdist and wheel are the same, byte for byte."""
    root = folder / "elsewhere"
    home = root / "packages" / package
    shutil.copytree(ROOT / "packages" / package, home, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / ".gitignore", root)
    (root / ".git").mkdir(exist_ok=True)
    for path in home.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1e9, 1e9))
    habits = {"PYTHONHASHSEED": "7", "TZ": "Asia/Kathmandu", "LC_ALL": "C"}
    for one, again in zip(first, build(package, folder / "again", root, habits), strict=True):
        if one.read_bytes() != again.read_bytes():
            raise Refused(f"two builds of {one.name} differ")
    print(f"{package}: two builds are the same, byte for byte")


def check_wheel(package: str, wheel: Path, version: str) -> None:
    """The wheel holds each source file, the licence texts, perhaps the page, and nothing else.

    The page is what `make page` builds; it is kept out of the repository.
    """
    artifacts = project_of(package)["tool"]["hatch"].get("build", {}).get("artifacts", ())
    page = [pattern.removeprefix("src/") for pattern in artifacts]
    name = package.replace("-", "_")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        info = f"{name}-{version}.dist-info/"
        metadata = HeaderParser().parsestr(archive.read(info + "METADATA").decode())
    root = f"packages/{package}/src/"
    wanted = {one.removeprefix(root) for one in source_files(root)}
    built = {name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in page)}
    held = {name for name in names - built if not name.startswith(info)}
    if held != wanted:
        lacks, adds = listed(wanted - held), listed(held - wanted)
        raise Refused(f"the wheel of {package} lacks {lacks} and adds {adds}")
    for licence in ("LICENSE", "NOTICE"):
        if f"{info}licenses/{licence}" not in names:
            raise Refused(f"the wheel of {package} has no {licence}")
    if metadata["Version"] != version:
        raise Refused(f"the metadata of {package} name another version")
    for pattern in KINDS[package]:
        count = len(fnmatch.filter(held, pattern))
        if count == 0:
            raise Refused(f"the wheel of {package} has no {pattern}")
        print(f"{count:5} {pattern}")
    print(f"{len(held):5} files of {package}, as in the sources")
    print(f"{len(built):5} files of the page" + ("" if built or not page else " (`make page`)"))


def check_supply_chain(folder: Path, version: str) -> Path:
    """The bill of materials; refuses a lock with known vulnerabilities."""
    path = folder / f"osler-{version}.cdx.json"
    lock = ROOT / supply_chain.LOCK
    made = supply_chain.bill_of_materials(version)
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    fine, said = supply_chain.audit(lock, supply_chain.run_quietly)
    if fine is False:
        raise Refused(said)
    print(said)
    return path


def write_statements(files: Sequence[Path], version: str, folder: Path) -> list[Path]:
    """The list of hashes and, where a workflow builds, the provenance."""
    hashes, provenance = folder / f"osler-{version}.sha256", folder / f"osler-{version}.intoto.json"
    listing = list_hashes(file for file in files if file.suffix == ".whl")
    hashes.write_text(listing, encoding="utf-8")
    locks = sorted(ROOT.glob("requirements*.lock"))
    made = state_provenance([*files, hashes], locks, os.environ)
    if made is None:
        print("no provenance: no workflow builds here")
        return [hashes]
    provenance.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return [hashes, provenance]


def source_files(root: str) -> list[str]:
    """What git has or would take; a build, a cache or an editor's file is not among it."""
    listing = ["git", "ls-files", "-co", "--exclude-standard", "-z", "--", root]
    names = run(listing, ROOT).split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def listed(names: set[str]) -> str:
    """The first ten names, and how many there are."""
    return f"{len(names)} files ({', '.join(sorted(names)[:10]) or 'none'})"


def install_and_ask(wheels: dict[str, Path], version: str, folder: Path) -> None:
    """In a fresh environment: from the core's wheel to a cited answer; then what the rest adds."""
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(programs / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]

    def install(package: str, lock: str) -> None:
        run([*pip, "install", "--require-hashes", "-r", str(ROOT / lock)], folder)
        run([*pip, "install", "--no-deps", str(wheels[package])], folder)
        run([*pip, "check"], folder)

    def osler(*words: str) -> str:
        return run([str(programs / "osler"), *words], work, reader(folder))

    work = folder / "reader"
    work.mkdir()
    install("osler", "requirements.lock")
    if osler("--version").split() != ["osler", version]:
        raise Refused(f"`osler --version` says {osler('--version')!r}")
    osler("download-models")
    osler("kb", "build", "--sample")
    osler("doctor", "--quiet")
    show_cited(json.loads(osler("ask", "--strategy", "rag", "--json", QUESTION)))
    osler("replay", "last")
    install("osler-lab", "requirements.lock")
    osler("eval", "tasks")
    osler("ask", "--strategy", "medrag", "--json", QUESTION)
    install("osler-serve", "requirements-docs.lock")
    osler("serve", "key", "ls")
    osler("doctor", "--install", "--quiet")


def reader(folder: Path) -> dict[str, str]:
    """A new user's surroundings: no settings and no home; only the cache of weights is kept."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OSLER__", "PYTHON"))}
    kept.pop("VIRTUAL_ENV", None)
    home, settings = str(folder / "home"), str(folder / "settings")
    return kept | {"OSLER__HOME": home, "XDG_CONFIG_HOME": settings}


def show_cited(reply: dict[str, Any]) -> None:
    """Prints the answer; refuses one with a statement that rests on no quote of a passage."""
    answer, evidence = reply["answer"], reply["evidence"]
    texts = {one["passage"]["id"]: one["passage"]["text"] for one in evidence}
    quoted = [c for c in answer["citations"] if c["quote"] in texts[c["passage_id"]]]
    numbers = {citation["number"] for citation in quoted}
    bare = [s for s in answer["statements"] if not numbers.intersection(s["cites"])]
    if bare or not quoted:
        raise Refused(f"the answer is not cited throughout: {answer['text']!r}")
    print(f"\n{QUESTION}\n{answer['text']}")
    print(f"cites {', '.join(dict.fromkeys(c['passage_id'] for c in quoted))}\n")


def run(command: Sequence[str], folder: Path, surroundings: dict[str, str] | None = None) -> str:
    done = subprocess.run(  # noqa: S603 - each command is a constant or a path of ours
        command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise Refused(f"`{' '.join(command)}` ended with {done.returncode}:\n{last}")
    return done.stdout


if __name__ == "__main__":
    main()
