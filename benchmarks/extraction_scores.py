"""Precision and recall of extraction on annotated chunks.

A name is right when it is the annotated one in its normal form: case, width and punctuation
do not count, all else does. A name counts once a chunk, however often it stands there.
Figures are over all names of all chunks; intervals are of a bootstrap over the chunks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from osler.extract.items import Entity, EntityRelation, Item
from osler.graph.derive import normalize_name
from osler.types import Language, Passage
from osler_lab.evaluate.intervals import Estimate

LEVELS: Final = ("name", "name and type", "pair", "pair and predicate")
"""Levels of comparison: entities by name, and with their type; relations by their two ends
whatever the direction, and with direction and predicate."""
Marks = dict[str, frozenset[tuple[str, ...]]]
"""Names and relations of a chunk, by level."""


@dataclass(frozen=True, slots=True)
class AnnotatedChunk:
    """A chunk and what a reader finds in it."""

    passage: Passage
    entities: tuple[tuple[str, str], ...]
    """Name and type."""
    relations: tuple[tuple[str, str, str], ...]
    """Subject, predicate, object."""


@dataclass(frozen=True, slots=True)
class LevelHits:
    """Counts of one chunk at one level: names right, found and annotated."""

    right: int
    said: int
    wanted: int


@dataclass(frozen=True, slots=True)
class ExtractionScores:
    precision: Estimate
    recall: Estimate
    f1: Estimate


def read_annotated(path: Path) -> list[AnnotatedChunk]:
    """The annotated chunks of a JSON Lines file: id, title, language, text, entities (name,
    type), relations (subject, predicate, object). Raises `KeyError` where one is missing."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_parse_annotated(json.loads(line)) for line in lines if line.strip()]


def _parse_annotated(record: dict[str, object]) -> AnnotatedChunk:
    entities: Sequence[dict[str, str]] = record["entities"]  # type: ignore[assignment]
    relations: Sequence[dict[str, str]] = record["relations"]  # type: ignore[assignment]
    title, text = str(record["title"]), str(record["text"])
    language: Language = "zh" if record["language"] == "zh" else "en"
    return AnnotatedChunk(
        Passage(f"annotated:{record['id']}#0", text, "annotated", title, language=language),
        tuple((one["name"], one["type"]) for one in entities),
        tuple((one["subject"], one["predicate"], one["object"]) for one in relations),
    )


def count_hits(wanted: AnnotatedChunk, found: Sequence[Item]) -> dict[str, LevelHits]:
    """Counts the hits of one chunk, by level."""
    entities = [(item.name, item.type) for item in found if isinstance(item, Entity)]
    relations = [
        (item.subject, item.predicate, item.object)
        for item in found
        if isinstance(item, EntityRelation)
    ]
    gold, said = (
        comparison_marks(wanted.entities, wanted.relations),
        comparison_marks(entities, relations),
    )
    return {
        level: LevelHits(len(gold[level] & said[level]), len(said[level]), len(gold[level]))
        for level in LEVELS
    }


def comparison_marks(
    entities: Sequence[tuple[str, str]], relations: Sequence[tuple[str, str, str]]
) -> Marks:
    """Returns the normalised names and relations compared at each level."""
    triples = [(normalize_name(s), normalize_name(p), normalize_name(o)) for s, p, o in relations]
    return {
        "name": frozenset((normalize_name(name),) for name, _ in entities),
        "name and type": frozenset((normalize_name(name), type_) for name, type_ in entities),
        # The ends in alphabetical order: direction does not count at this level.
        "pair": frozenset((min(s, o), max(s, o)) for s, _, o in triples),
        "pair and predicate": frozenset(triples),
    }


def score_extraction(
    chunks: Sequence[LevelHits], *, seed: int = 0, draws: int = 2_000
) -> ExtractionScores:
    """Precision, recall and their harmonic mean, 0 where nothing is said or wanted.

    Raises `ValueError` for no chunks.
    """
    if not chunks:
        raise ValueError("no chunks, no figures")
    counts = np.array([(one.right, one.said, one.wanted) for one in chunks], dtype=np.float64)
    # Chunks are drawn, not names: names of one chunk are found or missed together.
    picks = np.random.default_rng(seed).integers(0, len(chunks), (draws, len(chunks)))
    drawn, whole = (
        _precision_recall_f1(counts[picks].sum(axis=1)),
        _precision_recall_f1(counts.sum(axis=0)[None])[0],
    )
    low, high = np.quantile(drawn, (0.025, 0.975), axis=0)
    each = [
        Estimate(float(value), float(least), float(most), len(chunks))
        for value, least, most in zip(whole, low, high, strict=True)
    ]
    return ExtractionScores(*each)


def _precision_recall_f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns (n, 3) sums of right, said, wanted into (n, 3) precision, recall, F1."""
    right, said, wanted = sums.T
    precision = right / np.maximum(said, 1)
    recall = right / np.maximum(wanted, 1)
    f1 = 2 * right / np.maximum(said + wanted, 1)
    return np.stack([precision, recall, f1], axis=1)
