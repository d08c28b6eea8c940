"""Splits of data sets: which part may be trained on, and parts of sets that have none.

A set that its publisher has split is taken as it is: its test split is never trained on. Any
other is split by a hash of each question's words, so that a question that stands in two sets is
in one part of both. The shares are about those of Omni-RAG's Table 3.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Literal, get_args

from osler.errors import BadConfig
from osler.text import split_words
from osler_lab.evaluate.datasets.base import DataSet, LoadedDataset

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
TRAIN, DEV = 0.65, 0.13
"""Shares of the first two parts; the rest is the test's."""


def question_digest(text: str) -> str:
    """Digest of a question's words: the same for another case or other marks; 16 hex digits."""
    return hashlib.sha256(" ".join(split_words(text)).encode()).hexdigest()[:16]


def split_of(text: str) -> Split:
    """The part of a set without published splits that a question is in."""
    place = int(question_digest(text), 16) / 16**16
    return "train" if place < TRAIN else "dev" if place < TRAIN + DEV else "test"


def family_of(name: str) -> str:
    """Name of the data set without that of its split: "medqa-us-train", "seer@dev"."""
    plain = name.partition("@")[0]
    return next((plain.removesuffix(f"-{s}") for s in SPLITS if plain.endswith(f"-{s}")), plain)


def parse_split(word: str, found: DataSet) -> Split:
    """Raises `BadConfig` for an unknown split, and where the publisher has split the set."""
    if found.split:
        raise BadConfig(
            f"{found.name} is its publisher's {found.split} split, and is not split again",
            fix=f"name it without @{word}",
        )
    split = next((known for known in SPLITS if known == word), None)
    if split is None:
        raise BadConfig(
            f"{found.name} has no split {word!r}", fix=f"choose one of {', '.join(SPLITS)}"
        )
    return split


def take_split(loaded: LoadedDataset, split: Split) -> LoadedDataset:
    """The samples of one part, under the name "SET@SPLIT". Raises `BadConfig` for none."""
    name = f"{loaded.name}@{split}"
    samples = tuple(
        replace(sample, task=name)
        for sample in loaded.samples
        if split_of(sample.question.text) == split
    )
    if not samples:
        raise BadConfig(f"none of {len(loaded.samples)} questions of {loaded.name} is in {split}")
    return replace(loaded, name=name, samples=samples)


def require_trainable(found: DataSet, split: str, files: tuple[str, ...]) -> None:
    """Raises `BadConfig` for what is to be measured on: a test split, or a set not yet split.

    `files` are names of the user's own files, whose split is not known; one that is named as the
    published test split is taken for it.
    """
    if found.split in ("train", "dev") or split in ("train", "dev"):
        return
    published = {name.rpartition("/")[2] for name in found.files}
    if found.split == "test" and not (files and published.isdisjoint(files)):
        raise BadConfig(
            f"{found.name} is a test split: what is trained on it cannot be measured by it",
            fix=f"name its train split, or a file of that: {found.name}=FILE",
        )
    if not found.split:
        raise BadConfig(
            f"{found.name} is not split: what is trained on all of it cannot be measured by it",
            fix=f"train on a part, --tasks {found.name}@train, and measure {found.name}@test",
        )
