"""Data sets, each from its native files: one module a family, one table of names.

`load("medqa-us", folder)` gives the samples with what was dropped and why. The files come
from their publishers; none is part of Osler.
"""

from osler.evaluate.datasets.base import DataSet, Dropped, Loaded, Unusable
from osler.evaluate.datasets.qrels import Judgements, read_qrels
from osler.evaluate.datasets.registry import DATA_SETS, data_set, load

__all__ = [
    "DATA_SETS",
    "DataSet",
    "Dropped",
    "Judgements",
    "Loaded",
    "Unusable",
    "data_set",
    "load",
    "read_qrels",
]
