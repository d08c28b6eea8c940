"""Descriptions as TOML files: packaged ones, or one of the user's own."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadConfig

Described = TypeVar("Described")


def list_names(package: str) -> tuple[str, ...]:
    """Returns the names of the TOML files in the package, sorted."""
    found = files(package).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml")))


def read_description(name: str, package: str, kind: type[Described]) -> Described:
    """Reads a packaged description or the user's own TOML file. Raises `BadConfig`."""
    path, what, known = Path(name), kind.__name__.lower(), list_names(package)
    if name in known:
        text = files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml" and path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        raise BadConfig(f"no {what} {name!r}", fix=f"choose one of {', '.join(known)}")
    try:
        return TypeAdapter(kind).validate_python({"name": path.stem, **tomllib.loads(text)})
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        told = str(error).splitlines()[0]
        raise BadConfig(f"{what} {name}: {told}", fix="compare it with those of Osler") from error
