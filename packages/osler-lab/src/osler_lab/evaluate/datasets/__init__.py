"""Data sets, each read from its native files: one module per family, one table of names.

| Module | Has |
|---|---|
| `base` | rows with their place, counts of rejected rows, readers of JSON and CSV |
| `choice` | MedQA, MedMCQA, MMLU's medical subjects, PubMedQA; the questions that come with Osler |
| `chinese` | CMB-Exam, MMCU-Medical, CMB-Clin |
| `longform` | LiveQA, MedicationQA, ExpertQA, Omni-RAG's own files; KAG-Thinker's open sets |
| `clinical` | DDXPlus, MedS-Bench, MIMIC-IV-ED; BioASQ's four types of question |
| `splits` | which part may be trained on; parts of sets that their publishers have not split |

`sets.toml` has the facts of each set: its reader, files, origin and licence.
`load_dataset("medqa-us", folder)` gives the samples with counts of rejected rows. The files come
from their publishers; none is part of Osler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osler.errors import BadConfig
from osler.text import load_plugins, read_packaged_table, suggest_word
from osler_lab.evaluate.datasets import chinese, choice, clinical, longform
from osler_lab.evaluate.datasets.base import DataSet, LoadedDataset

_READERS = {
    name: reader
    for module in (choice, chinese, longform, clinical)
    for name, reader in module.READERS.items()
}


def _parse_set(name: str, facts: dict[str, Any]) -> DataSet:
    reader, paths = _READERS[facts.pop("reader")], tuple(facts.pop("files"))
    return DataSet(name, files=paths, reader=reader, **facts)


_TABLE = read_packaged_table(__package__, "sets.toml")
DATA_SETS: dict[str, DataSet] = {
    **{name: _parse_set(name, facts) for name, facts in _TABLE.items()},
    **load_plugins("osler.datasets"),
}
"""By name; those of other packages are entry points of `osler.datasets`, each a `DataSet`."""


def data_set(name: str) -> DataSet:
    """Raises `BadConfig` for a name that no data set has."""
    try:
        return DATA_SETS[name]
    except KeyError:
        hint = suggest_word(name, DATA_SETS)
        raise BadConfig(
            f"no data set {name!r}", fix=f"{hint}`osler eval tasks` lists them"
        ) from None


def load_dataset(name: str, folder: Path) -> LoadedDataset:
    """The data set, from its files below `folder`.

    Raises `BadConfig` for an unknown name, `MalformedSource` for files that are not there or
    cannot be read.
    """
    return data_set(name).load(folder)
