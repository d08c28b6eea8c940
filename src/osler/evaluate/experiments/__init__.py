"""Experiments as data: what is run, and which table or figure of a paper it repeats."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadConfig


@dataclass(frozen=True, slots=True)
class Experiment:
    """One file of this folder, or one of the user's own."""

    name: str
    repeats: str
    """The paper's table or figure."""
    about: str
    tasks: tuple[str, ...]
    strategies: tuple[str, ...]
    limit: int | None = None
    seed: int = 0


def names() -> tuple[str, ...]:
    """Those that come with Osler."""
    found = files(__package__).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in found if f.name.endswith(".toml")))


def experiment(name: str) -> Experiment:
    """By name, or a TOML file of one's own. Raises `BadConfig` for neither, or a broken one."""
    path = Path(name)
    if name in names():
        text = files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml" and path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        raise BadConfig(f"no experiment {name!r}", fix=f"choose of {', '.join(names())}")
    try:
        return TypeAdapter(Experiment).validate_python({"name": path.stem, **tomllib.loads(text)})
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        told = str(error).splitlines()[0]
        raise BadConfig(
            f"experiment {name}: {told}", fix="compare it with those of Osler"
        ) from error
