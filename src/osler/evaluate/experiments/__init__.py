"""Experiments as data: the runs, and the table or figure of a paper that they repeat."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadConfig

Described = TypeVar("Described")


def list_names(package: str) -> tuple[str, ...]:
    """Returns the names of the TOML files in the package, sorted."""
    entries = files(package).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in entries if f.name.endswith(".toml")))


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
        reason = str(error).splitlines()[0]
        raise BadConfig(f"{what} {name}: {reason}", fix="compare it with those of Osler") from error


@dataclass(frozen=True, slots=True)
class Experiment:
    """Description of an experiment: a file of this folder, or one of the user's own."""

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
    """Command that runs it, where `osler eval run` does not."""

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


def experiment_names() -> tuple[str, ...]:
    """Returns the names of the packaged experiments."""
    return list_names(__name__)


def read_experiment(name: str) -> Experiment:
    """Reads a packaged experiment or the user's own TOML file. Raises `BadConfig`."""
    return read_description(name, __name__, Experiment)
