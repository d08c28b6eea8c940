"""Retrieval with and without each index, on the corpus of 2WikiMultihopQA.

    python benchmarks/indexes.py DATA --home FOLDER [--n 100] [--seed 0] [--only WORD ...]

DATA is the folder with `2wikimultihopqa`. Its 3,093 paragraphs are the knowledge base, made in
FOLDER the first time; a run that was stopped goes on where it stopped. Names and relations are
the dictionary extractor's: no model. recall@5: the share of a question's supporting passages
(the subjects of its evidence) among the first five; 95 % bootstrap intervals; the difference is
paired, against the chunks by words and meaning. Weights were chosen on the 150 questions after
the first 100 of seed 0, which are the ones to report. "pagerank" is a walk as HippoRAG's: from the
question's names by how few passages have them, and by 0.05 from the passages near in meaning,
alone. "ms" is the mean time of a search on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from multihop import Item, build, items_2wiki, recall

from osler.build.models import load_encoder
from osler.extract import job as extraction
from osler.extract import publish
from osler.extract.derived import Extractions
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.indexes import KINDS, Kind, store
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve import STOP_WORDS
from osler.retrieve.hybrid import Fusion
from osler.retrieve.indexed import IndexedRetriever, IndexWeights, NameRankings, Walk
from osler.settings import Settings
from osler_lab.evaluate.intervals import difference, mean

K = 5


@dataclass(frozen=True)
class Way:
    """One combination of indexes."""

    name: str
    kinds: tuple[Kind, ...] = ()
    chunks: bool = True
    weights: IndexWeights | None = None
    """Of the graph; `None` = without it."""
    fusion: Fusion = field(default_factory=Fusion)
    walk: Walk = field(default_factory=Walk)


NAMES, WALK = IndexWeights(walk=0), IndexWeights(names=0)
WAYS = (
    Way("chunk, words", fusion=Fusion(dense_weight=0)),
    Way("chunk"),
    *(Way(f"chunk + {kind}", (kind,)) for kind in KINDS),
    Way("chunk + names", weights=NAMES),
    Way("chunk + walk", weights=WALK),
    Way("chunk + graph", weights=IndexWeights()),
    Way("all", KINDS, weights=IndexWeights()),
    Way("all but graph", KINDS),
    Way("graph alone", chunks=False, weights=IndexWeights()),
    Way("pagerank", chunks=False, weights=WALK),
    *(Way(f"{kind} alone", (kind,), chunks=False) for kind in KINDS),
)


def retriever(way: Way, kb: KnowledgeBase, encoder: Encoder) -> IndexedRetriever:
    named = NameRankings(Extractions.of(kb).webs, walk=way.walk) if way.weights else None
    weights = way.weights or IndexWeights()
    return IndexedRetriever(
        kb, encoder, way.kinds, named, way.chunks, fusion=way.fusion, weights=weights
    )


def prepare(settings: Settings, corpus: Sequence[dict[str, str]], encoder: Encoder) -> None:
    if not settings.home.exists():
        build(settings, corpus)
    with DictionaryExtractor(ignored=STOP_WORDS) as extractor:
        done = asyncio.run(extraction.run_extraction(settings.kb.path, extractor))
    print(f"extracted: {done.chunks} chunks, {dict(done.kinds)}, {done.seconds:.1f} s")
    publish.publish_items(settings.kb.path)
    store.make_indexes(settings.kb.path, KINDS, encoder)
    print("\n| index | items | vectors | MB | seconds |\n|---|--:|--:|--:|--:|")
    for cost in store.index_costs(settings.kb.path):
        took = "" if cost.seconds is None else f"{cost.seconds:.1f}"
        size = cost.bytes / 1e6
        print(f"| {cost.kind} | {cost.items:,} | {cost.vectors:,} | {size:.1f} | {took} |")


async def measured(found: IndexedRetriever, items: Sequence[Item]) -> tuple[list[float], float]:
    """Recall of each question, and seconds a search."""
    await found.search("Who made it?", k=K)  # reads vectors and names
    begun = time.perf_counter()
    hits = [await found.search(item.question, k=K) for item in items]
    seconds = (time.perf_counter() - begun) / len(items)
    return [
        recall([hit.passage.id for hit in h], i) or 0.0 for h, i in zip(hits, items, strict=True)
    ], seconds


async def table(
    kb: KnowledgeBase, encoder: Encoder, items: Sequence[Item], only: Sequence[str]
) -> None:
    base, _ = await measured(retriever(Way("chunk"), kb, encoder), items)
    print("\n| searched | n | recall@5 | less chunk, paired | all found | ms |")
    print("|---|--:|---|---|--:|--:|")
    for way in WAYS:
        if only and not any(word in way.name for word in only):
            continue
        scores, seconds = await measured(retriever(way, kb, encoder), items)
        more = "" if way.name == "chunk" else f"{difference(base, scores)}"
        whole = fmean(score == 1 for score in scores)
        ms = 1000 * seconds
        print(f"| {way.name} | {len(items)} | {mean(scores)} | {more} | {whole:.2f} | {ms:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    given = parser.parse_args()
    items, corpus = items_2wiki(given.data / "2wikimultihopqa")
    random.Random(given.seed).shuffle(items)
    settings = Settings.model_validate({"home": given.home})
    encoder = load_encoder(settings)
    prepare(settings, corpus, encoder)
    with KnowledgeBase.open(settings.kb.path) as kb:
        asyncio.run(table(kb, encoder, items[: given.n], given.only))


if __name__ == "__main__":
    main()
