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
    strategies: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    across: tuple[str, ...] = ()
    """Settings in turn ("roles.reader.name=…"): every strategy is run with each of them."""
    command: str = ""
    """What runs it, where `osler eval run` does not."""

    def __post_init__(self) -> None:
        if bool(self.tasks) == bool(self.command):
            raise ValueError("an experiment has either tasks or a command")

    @property
    def labels(self) -> tuple[str, ...]:
        """The strategies, each with each of `across`."""
        return tuple(
            f"{strategy}:{more}" if more else strategy
            for more in self.across or ("",)
            for strategy in self.strategies
        )


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
