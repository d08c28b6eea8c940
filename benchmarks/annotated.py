"""Precision and recall of extraction on 30 annotated chunks, 20 English and 10 Chinese.

Used by `extraction.py --annotated`. The chunks are ours (`tests/fixtures/extraction`): short,
illustrative texts in the style of a textbook, annotated with entities of the packaged schema
and relations with the predicates of `osler.extract.dictionary`. The word forms of the
dictionary were written before them, by other texts; nothing was changed after the first scoring.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from extraction_scores import (
    LEVELS,
    AnnotatedChunk,
    LevelHits,
    count_hits,
    read_annotated,
    score_extraction,
)

from osler.extract import Extractor
from osler.extract.dictionary import DictionaryExtractor
from osler.graph.formats import read_graph_files as read_graph
from osler.graph.store import Graph
from osler.retrieve import STOP_WORDS

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "fixtures" / "extraction"
HEAD = (
    "| extractor | language | level | said | wanted | precision | recall | F1 |\n"
    "|---|---|---|--:|--:|---|---|---|"
)


def chunks() -> list[AnnotatedChunk]:
    return [
        one for name in ("en", "zh") for one in read_annotated(FOLDER / f"annotated_{name}.jsonl")
    ]


async def scored(
    extractor: Extractor, sample: Sequence[AnnotatedChunk]
) -> list[dict[str, LevelHits]]:
    outcomes = await extractor.extract([one.passage for one in sample])
    return [
        count_hits(one, outcome.found.items) for one, outcome in zip(sample, outcomes, strict=True)
    ]


async def dictionaries() -> list[str]:
    """Rows of the dictionary: with and without word forms, and with the sample's graph."""
    sample, rows = chunks(), list[str]()
    with tempfile.TemporaryDirectory() as folder, Graph.create(Path(folder)) as graph:
        graph.add(read_graph([ROOT / "packages/osler/src/osler/sample/graph"]))
        for name, of, forms in (
            ("dictionary, without word forms", None, False),
            ("dictionary", None, True),
            ("dictionary, sample graph, without word forms", graph, False),
            ("dictionary, sample graph", graph, True),
        ):
            with DictionaryExtractor(of, STOP_WORDS, forms=forms) as extractor:
                extractor.learn_names(one.passage for one in sample)
                # Names of one sentence are related by no predicate that is annotated.
                every = await scored(extractor, sample)
                rows += told(name, sample, every, levels=LEVELS[:3])
    return rows


def told(
    name: str,
    sample: Sequence[AnnotatedChunk],
    every: Sequence[dict[str, LevelHits]],
    *,
    levels: Sequence[str] = LEVELS,
) -> list[str]:
    return list(_rows(name, sample, every, levels))


def _rows(
    name: str,
    sample: Sequence[AnnotatedChunk],
    every: Sequence[dict[str, LevelHits]],
    levels: Sequence[str],
) -> Iterator[str]:
    for language in ("en", "zh"):
        of = [h for one, h in zip(sample, every, strict=True) if one.passage.language == language]
        for level in levels if of else ():
            held = [one[level] for one in of]
            figures = score_extraction(held)
            said, wanted = sum(h.said for h in held), sum(h.wanted for h in held)
            yield (
                f"| {name} | {language} | {level} | {said} | {wanted} | {figures.precision}"
                f" | {figures.recall} | {figures.f1} |"
            )
