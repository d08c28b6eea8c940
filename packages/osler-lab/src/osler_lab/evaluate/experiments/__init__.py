"""Experiments as data: the runs, and the table or figure of a paper that they repeat.

Scoreboards and ablations are described in the same form: a packaged file, or one of the user's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from osler.errors import BadConfig
from osler.text import suggest_word
from osler_lab.evaluate.datasets import DATA_SETS

Described = TypeVar("Described")
_FIX = "compare it with those of Osler"
# Names of the fields of every dataclass that a file describes.
_FIELDS: set[str] = set()


def described(kind: type[Described]) -> type[Described]:
    """Marks a dataclass that a file describes: it takes no field that it does not have."""
    _FIELDS.update(one.name for one in fields(kind))  # type: ignore[arg-type]
    return with_config(ConfigDict(extra="forbid"))(kind)


def list_names(package: str) -> tuple[str, ...]:
    """Returns the names of the TOML files in the package, sorted."""
    entries = files(package).iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in entries if f.name.endswith(".toml")))


def read_description(name: str, package: str, kind: type[Described]) -> Described:
    """Reads a packaged description or the user's own TOML file.

    Raises `BadConfig` naming the file, and the field that is unknown or wrong.
    """
    path, what, known = Path(name), kind.__name__.lower(), list_names(package)
    if name in known:
        text = files(package).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    elif path.suffix == ".toml" and path.is_file():
        text = path.read_text(encoding="utf-8")
    else:
        hint = suggest_word(name, known)
        raise BadConfig(f"no {what} {name!r}", fix=f"{hint}choose one of {', '.join(known)}")
    try:
        return TypeAdapter(kind).validate_python({"name": path.stem, **tomllib.loads(text)})
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{what} {name}: {error}", fix=_FIX) from error
    except ValidationError as error:
        raise _wrong_field(f"{what} {name}", error) from error


def _wrong_field(where: str, error: ValidationError) -> BadConfig:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "unexpected_keyword_argument":
        hint = suggest_word(str(first["loc"][-1]), sorted(_FIELDS))
        return BadConfig(f"{where}: unknown field {place}", fix=f"{hint}{_FIX}")
    # Pydantic puts these words before the text of an error that a check of ours raised.
    reason = first["msg"].removeprefix("Value error, ")
    return BadConfig(f"{where}: {f'{place}: ' if place else ''}{reason}", fix=_FIX)


def require_known(
    field: str, names: Iterable[str], known: Iterable[str], *, others: bool = False
) -> None:
    """Raises `ValueError` for a name that is not known, naming the field and what is near.

    `others`: there may be names of the user's own, so only one that is nearly a known one is
    refused.
    """
    every = list(known)
    for name in names:
        hint = suggest_word(name, every)
        if name not in every and (hint or not others):
            raise ValueError(f"{field}: unknown {name!r}. {hint}".rstrip())


def require_tasks(field: str, words: Iterable[str]) -> None:
    """As `require_known`, for data sets as `osler eval run` names them: part and files may follow.

    Raises `ValueError`.
    """
    names = [word.partition("=")[0].partition("@")[0].strip() for word in words]
    require_known(field, names, DATA_SETS)


@described
@dataclass(frozen=True, slots=True)
class Experiment:
    """Description of an experiment: a file of this folder, or one of the user's own."""

    name: str
    about: str
    strategies: tuple[str, ...]
    repeats: str = ""
    """The paper's table or figure; empty for a scoreboard."""
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
        require_tasks("tasks", self.tasks)

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
