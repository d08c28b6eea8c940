"""Data sets as the command line names them: "SET", "SET@PART", "SET=FILE+FILE"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osler.errors import BadConfig
from osler_lab.evaluate.datasets import data_set
from osler_lab.evaluate.datasets.base import DataSet, LoadedDataset
from osler_lab.evaluate.datasets.choice import sample_folder
from osler_lab.evaluate.datasets.splits import parse_split, require_trainable, take_split
from osler_lab.evaluate.record import Kind


def read_task(word: str, folder: Path | None) -> LoadedDataset:
    """A data set by name, its part as "NAME@train", or "NAME=FILE+FILE" for files elsewhere.

    Raises `BadConfig` and `MalformedSource`.
    """
    named = _parse_task(word)
    loaded = _load_files(named, folder)
    if not named.part:
        return loaded
    return take_split(loaded, parse_split(named.part, named.found))


def require_files(words: Sequence[str], folder: Path | None) -> None:
    """Raises `BadConfig` that names all data sets of which a file is not below the folder."""
    if folder is None:
        return
    lacking = []
    for named in map(_parse_task, words):
        by_name = () if named.files or named.found.packaged else named.found.files
        if gone := [name for name in by_name if not (folder / name).exists()]:
            lacking.append(f"{named.found.name} ({', '.join(gone)}: {named.found.origin})")
    if lacking:
        raise BadConfig(
            f"{folder} has no {'; '.join(lacking)}",
            fix="put the files there, or name other sets: --tasks, or a --plan file of your own",
        )


def read_training_task(word: str, folder: Path | None) -> LoadedDataset:
    """As `read_task`, to be trained on. Raises `BadConfig` for what is to be measured on."""
    named = _parse_task(word)
    files = tuple(file.rpartition("/")[2] for file in named.files)
    require_trainable(named.found, named.part, files)
    return read_task(word, folder)


@dataclass(frozen=True, slots=True)
class _NamedTask:
    """A data set as it is named: "SET", "SET@PART", "SET=FILE+FILE"."""

    found: DataSet
    part: str
    files: tuple[str, ...]


def _parse_task(word: str) -> _NamedTask:
    name, equals, files = word.partition("=")
    name, _, part = name.strip().partition("@")
    listed = tuple(file.strip() for file in files.split("+")) if equals else ()
    return _NamedTask(data_set(name), part, listed)


def _load_files(named: _NamedTask, folder: Path | None) -> LoadedDataset:
    found = named.found
    if named.files:
        return found.read([Path(file).expanduser() for file in named.files])
    if found.packaged:
        return found.load(sample_folder())
    if folder is None:
        raise BadConfig(
            f"where are the files of {found.name}?",
            fix=f"name their folder with --data: {found.origin}",
        )
    return found.load(folder)


def kind_of(loaded: LoadedDataset) -> Kind:
    """Kind of the set's questions."""
    return data_set(loaded.name.partition("@")[0]).kind
