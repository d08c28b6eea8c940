"""One order over all sources, on unseen questions over all passages; and letters of patients.

    python benchmarks/one_order.py orders|letters --home FOLDER [--data FOLDER] [--limit 200]

FOLDER holds the knowledge base that `osler experts train answerable --work FOLDER` made, where
`osler kb add` and `osler kb build` have put in the judged answers of LiveQA that are of no page.

`orders`: test questions of `experts/split.json`, and LiveQA's letters. *turns*: each source by the
hybrid search without the expert, in turns; *hybrid*: one such search over all; *fuse*: each
source by the default search, in the one order; *one search*: the default over all. Recall@10 and
nDCG@10 of documents. `letters`: how many of LiveQA's letters the default gate lets be answered. A
run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import retrieval
from experts.quoted import ROOT, read_rows

from osler.answer.extractive import ExtractiveComposer
from osler.app.config import Settings
from osler.app.wiring.knowledge import make_retriever, open_knowledge_base, pool_relevance
from osler.app.wiring.models import load_encoder
from osler.evaluate.intervals import difference, mean, proportion
from osler.evaluate.metrics.retrieval import ndcg, recall_at
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.retriever import PlannedRetriever, interleave_hits, order_results
from osler.retrieve.pooled import PooledOrder
from osler.trace import Run
from osler.train.experts.answerable_job import make_gate
from osler.train.experts.searches import document_name, read_searches
from osler.train.experts.splits import read_split
from osler.types import Hit, Question, Retriever

SOURCES, CUT = ("research", "web"), 10
ORDERS = ("turns", "hybrid", "fuse", "one search")
Asked = tuple[str, str, str, Mapping[str, int]]
"""Set, id, text and grades of documents."""


def letters(data: Path) -> list[Asked]:
    found = retrieval.every_question(data)["liveqa"]
    return [("liveqa", f"liveqa-{at}", one.text, one.grades) for at, one in enumerate(found)]


def choose_asked(data: Path, limit: int) -> list[Asked]:
    split = read_split(ROOT / "benchmarks/experts/split.json")
    own = split.choose_items(read_searches(data), "test")
    asked: list[Asked] = []
    for source in ("medquad", "bioasq", "pubmedqa"):
        of = [one for one in own if one.source == source]
        drawn = Random(7).sample(of, min(limit, len(of)))
        asked += [(source, one.id, one.text, dict.fromkeys(one.gold, 1)) for one in drawn]
    asked += letters(data)
    Random(1).shuffle(asked)
    return asked


class Way:
    """Searches by one choice of settings."""

    def __init__(self, settings: Settings, kb: KnowledgeBase, encoder: Encoder) -> None:
        def of(*sources: str) -> Retriever:
            return make_retriever(settings, kb, encoder, sources)

        self.each = PlannedRetriever({source: of(source) for source in SOURCES}, CUT)
        self.whole = of(*SOURCES)
        self.order = PooledOrder(pool_relevance(settings, kb.term_rarity, encoder, None))


async def measure_orders(given: argparse.Namespace) -> None:
    done = {row["id"] for row in read_rows(given.out)}
    usual = Settings.model_validate({"home": given.home})
    plain = Settings.model_validate({"home": given.home, "retrieve": {"expert": "off"}})
    with open_knowledge_base(usual) as kb, given.out.open("a", encoding="utf-8") as out:
        encoder = load_encoder(usual)
        ours, rule = Way(usual, kb, encoder), Way(plain, kb, encoder)
        for source, id, text, grades in choose_asked(given.data, given.limit):
            if id in done:
                continue
            plan = SourcePlan.of([Query.of(one, text) for one in SOURCES])
            found = await ours.each.gather_results(plan, Run())
            by_rule = await rule.each.gather_results(plan, Run())
            lists: dict[str, Sequence[Hit]] = {
                "turns": list(interleave_hits(by_rule, CUT)),
                "hybrid": await rule.whole.search(text, k=CUT),
                "fuse": await order_results(text, found, CUT, ours.order),
                "one search": await ours.whole.search(text, k=CUT),
            }
            row: dict[str, Any] = {"set": source, "id": id}
            row |= {name: score_hits(hits, grades) for name, hits in lists.items()}
            out.write(json.dumps(row) + "\n")
            out.flush()
    table(given.out)


def score_hits(hits: Sequence[Hit], grades: Mapping[str, int]) -> list[float]:
    names = list(dict.fromkeys(document_name(hit.passage) for hit in hits[:CUT]))
    return [recall_at(names, grades, CUT), ndcg(names, grades, CUT)]


def table(path: Path) -> None:
    rows: list[dict[str, Any]] = read_rows(path)
    print("| set | n | measure | turns | hybrid | fuse | fuse − turns | fuse − hybrid |")
    print("|---|--:|---|---|---|---|---|---|")
    for source in ("medquad", "bioasq", "pubmedqa", "liveqa", "all"):
        of = [row for row in rows if source in (row["set"], "all")]
        for at, name in enumerate(("recall@10", "nDCG@10") if of else ()):
            by = {order: [row[order][at] for row in of] for order in ORDERS}
            gains = [difference(by[other], by["fuse"]) for other in ("turns", "hybrid")]
            cells = [*(mean(by[order]) for order in ORDERS[:3]), *gains]
            print(f"| {source} | {len(of)} | {name} | {' | '.join(map(str, cells))} |")


async def count_letters(given: argparse.Namespace) -> None:
    settings = Settings.model_validate({"home": given.home})
    answered = 0
    with open_knowledge_base(settings) as kb:
        encoder = load_encoder(settings)
        gate = replace(make_gate(kb, encoder), decides=False)
        composer = ExtractiveComposer(gate, judge=gate.judge)
        asked = letters(given.data)
        for _, id, text, _ in asked:
            hits = await Way(settings, kb, encoder).whole.search(text, k=CUT)
            answer = await composer.conclude(Question(id, text), hits, "", Run())
            answered += bool(answer.evidence)
    print(f"letters answered: {proportion(answered, len(asked))}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("orders", "letters"))
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=retrieval.DATA)
    parser.add_argument("--limit", type=int, default=200, help="questions of each set")
    parser.add_argument("--out", type=Path, default=Path("orders.jsonl"))
    given = parser.parse_args()
    asyncio.run(measure_orders(given) if given.what == "orders" else count_letters(given))


if __name__ == "__main__":
    main()
