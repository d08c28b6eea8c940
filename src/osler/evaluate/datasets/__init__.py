"""Data sets, each from its native files: one module a family, one table of names.

`load_dataset("medqa-us", folder)` gives the samples with what was dropped and why. The files come
from their publishers; none is part of Osler.
"""

from osler.evaluate.datasets.base import DataSet, DroppedRows, LoadedDataset, UnusableRow
from osler.evaluate.datasets.qrels import Judgements, read_qrels
from osler.evaluate.datasets.registry import DATA_SETS, data_set, load_dataset

__all__ = [
    "DATA_SETS",
    "DataSet",
    "DroppedRows",
    "Judgements",
    "LoadedDataset",
    "UnusableRow",
    "data_set",
    "load_dataset",
    "read_qrels",
]
