"""`osler doctor --install`: whether what is installed is what was released."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import marshal
import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from osler.doctor import Check
from osler.errors import BadConfig, translate_os_errors

OWN = ("osler", "osler-lab", "osler-serve")
_ANEW = "install it anew, from the package index and into an empty environment"
_SHOWN = 5

Wanted = tuple[Path, str, bytes]
"""A file, the name of a hash function, and the file's digest by it."""


def check_install(against: Path | None = None) -> Iterator[Check]:
    """Holds installed files against the wheels' RECORD; and against a release's list of hashes.

    A RECORD lies beside the files and whoever can change these can change it: what is said without
    `against` finds damage, not every malice. Raises `BadConfig` for a list that cannot be read.
    """
    hashes = None if against is None else _read_hashes(against)
    installed = [one for name in OWN if (one := _find(name)) is not None]
    for one in installed:
        yield _check_own(one)
    yield _check_needed(installed)
    if hashes is not None:
        yield _check_listed(installed, hashes, str(against))


def _find(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _check_own(package: Distribution) -> Check:
    name = f"{package.name} {package.version}"
    if _is_editable(package):
        detail = "it runs from a folder of sources (editable): there is nothing to compare with"
        return Check(name, "warn", detail, "install the released wheel")
    home = _folder(package)
    found = importlib.util.find_spec(home.name)
    if found is None or Path(found.origin or "").parent.resolve() != home.resolve():
        detail = f"what runs is {found and found.origin}, and not what is installed in {home}"
        return Check(name, "fail", detail, "unset PYTHONPATH, or start it elsewhere")
    wanted = list(_recorded(package))
    if not wanted:
        return Check(name, "fail", "it has no RECORD", _ANEW)
    caches = [("compiled from something else", one) for one in _foreign_caches(home)]
    faults = [*_differences(wanted), *_extra(home, wanted), *caches]
    return _report(name, faults, f"{len(wanted):,} files, as its RECORD says", home.parent)


def _folder(package: Distribution) -> Path:
    return Path(str(package.locate_file(package.name.replace("-", "_"))))


def _is_editable(package: Distribution) -> bool:
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    return bool(origin.get("dir_info", {}).get("editable"))


def _recorded(package: Distribution) -> Iterator[Wanted]:
    """Compiled files have no hash there: `_foreign_caches` looks at them."""
    for one in package.files or ():
        if one.hash is not None:
            digest = base64.urlsafe_b64decode(one.hash.value + "=" * (-len(one.hash.value) % 4))
            yield Path(str(one.locate())), one.hash.mode, digest


def _report(name: str, faults: list[tuple[str, Path]], right: str, root: Path) -> Check:
    if not faults:
        return Check(name, "pass", right)
    shown = "; ".join(f"{what}: {_short(path, root)}" for what, path in faults[:_SHOWN])
    return Check(name, "fail", f"{len(faults):,} files differ: {shown}", _ANEW)


def _short(path: Path, root: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path


def _differences(wanted: Iterable[Wanted]) -> Iterator[tuple[str, Path]]:
    for path, kind, digest in wanted:
        if not path.is_file():
            yield "missing", path
        elif hashlib.new(kind, path.read_bytes()).digest() != digest:
            yield "changed", path


def _extra(home: Path, wanted: Iterable[Wanted]) -> Iterator[tuple[str, Path]]:
    known = {path.resolve() for path, _, _ in wanted}
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.parent.name != "__pycache__" and path.resolve() not in known:
            yield "extra", path


def _foreign_caches(home: Path) -> Iterator[Path]:
    """Compiled files that Python would run in place of their source, and that are not of it."""
    for source in sorted(home.rglob("*.py")):
        cache = Path(importlib.util.cache_from_source(str(source)))
        if cache.is_file():
            try:
                held = marshal.loads(cache.read_bytes()[16:])  # noqa: S302  an import would, too
            except (EOFError, ValueError, TypeError):
                held = None
            if held != compile(source.read_bytes(), str(source), "exec", dont_inherit=True):
                yield cache


def _check_needed(installed: list[Distribution]) -> Check:
    """The packages that they ask for, and so on."""
    left, seen = [one for package in installed for one in package.requires or ()], set(OWN)
    wanted: list[Wanted] = []
    faults: list[tuple[str, Path]] = []
    while left:
        name = re.split(r"[^\w.-]", left.pop(), maxsplit=1)[0].lower().replace("_", "-")
        if name not in seen and (package := _find(name)) is not None:
            left += package.requires or ()
            recorded = list(_recorded(package))
            faults += [] if recorded else [("without a RECORD", Path(name))]
            wanted += recorded
        seen.add(name)
    right = f"{len(wanted):,} files of the packages that Osler asks for, as their RECORDs say"
    return _report("dependencies", [*faults, *_differences(wanted)], right, Path())


def _read_hashes(path: Path) -> dict[str, bytes]:
    with translate_os_errors(f"{path} cannot be read", BadConfig):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    try:
        return {name: bytes.fromhex(digest) for digest, name in (one.split("  ") for one in lines)}
    except ValueError as error:
        fix = "name the file osler-VERSION.sha256 of the release"
        raise BadConfig(f"{path} is no list of hashes: {error}", fix=fix) from error


def _check_listed(installed: list[Distribution], hashes: dict[str, bytes], place: str) -> Check:
    faults: list[tuple[str, Path]] = []
    root = Path()
    for package in installed:
        home = _folder(package)
        root, info = home.parent, f"{home.name}-{package.version}.dist-info"
        mine = {n: d for n, d in hashes.items() if n.partition("/")[0] in (home.name, info)}
        wanted = [(root / name, "sha256", digest) for name, digest in mine.items()]
        faults += [*_differences(wanted), *_extra(home, wanted)]
        if not any(name.startswith(info) for name in mine):
            detail = f"{place} is not of {package.name} {package.version}"
            return Check("hash list", "fail", detail, "name the list of this version")
    return _report("hash list", faults, f"all is as {place} says", root)
