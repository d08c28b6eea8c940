"""Every data set by name. Each stands beside its reader: its files, where it is published,
under which terms."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from osler.errors import BadConfig
from osler.evaluate.datasets import bioasq, chinese, choice, clinical, longform, opendomain
from osler.evaluate.datasets.base import DataSet, LoadedDataset

DATA_SETS: dict[str, DataSet] = {
    found.name: found
    for reader in (choice, bioasq, chinese, longform, clinical, opendomain)
    for found in reader.SETS
}


def data_set(name: str) -> DataSet:
    """Raises `BadConfig` for a name that no data set has."""
    try:
        return DATA_SETS[name]
    except KeyError:
        near = get_close_matches(name, DATA_SETS, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadConfig(
            f"no data set {name!r}", fix=f"{hint}`osler eval tasks` lists them"
        ) from None


def load_dataset(name: str, folder: Path) -> LoadedDataset:
    """The data set, from its files below `folder`.

    Raises `BadConfig` for an unknown name, `MalformedSource` for files that are not there or
    cannot be read.
    """
    return data_set(name).load(folder)
