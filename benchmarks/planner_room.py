"""What a plan could gain over one search, and what a gate gains: no model.

    python benchmarks/planner_room.py --work FOLDER [--train 150]

FOLDER is the work folder of `benchmarks/train_planner.py`. One search over all sources is made
first. Then each further query, in the question's words or in others, is searched over all sources
and put into one order with it:

* *rare*: the question's rarest words; *asking*: the sentence that asks; *short*: the question's
  words of content; *sentences*: each sentence by itself (sub-questions of a message);
* *feedback*: the question with the words that tell most of the first three passages found;
* *gold words*: the question with the words that tell most of its gold documents among the first
  100 passages, which nobody has.

*gate*: where the cosine of the first passage is in the lowest fifth (of training questions), the
queries of the kind that gained most there on training questions are added, else none. *oracle*: of
all kinds but gold words the best for each question. The gain is recall@10 over one search.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import planning
from planning import CUT, Asked
from train_planner import settings_of, tested

from osler.app.wiring.knowledge import open_knowledge_base
from osler.app.wiring.models import encoder_relevance, load_encoder
from osler.app.wiring.training import _term_rarity
from osler.evaluate.intervals import difference, mean
from osler.retrieve.pooled import reranker_text
from osler.text import one_line, split_sentences
from osler.train.spo.case import read_cases
from osler.train.spo.wording import LONGEST, QuestionWords, cut_words, terms_in_words
from osler.types import Hit, Relevance

KINDS = ("rare", "asking", "short", "sentences", "feedback", "gold words")
WEAK = 0.2
DEEP = 100


@dataclass
class Room:
    searches: planning.Searches
    words: QuestionWords
    near: Relevance

    async def try_all(self, asked: Asked) -> dict[str, Any]:
        """One search, and each kind of further query beside it: recall, nDCG, queries, seconds."""
        text, began = asked.question.text, time.perf_counter()
        first = await self.searches.whole.search(text, k=CUT)
        row: dict[str, Any] = {"set": asked.set, "id": asked.question.id}
        row["top"] = (
            (await self.near.relevance(text, [reranker_text(first[0].passage)]))[0]
            if first
            else 0.0
        )
        row["one-search"] = [*planning.scores(first, asked.gold), 1, time.perf_counter() - began]
        deep = await self.searches.whole.search(text, k=DEEP)
        for kind in KINDS:
            began = time.perf_counter()
            queries = self.queries_of(kind, asked, first, deep)
            found = [await self.searches.whole.search(query, k=CUT) for query in queries]
            hits = await self.searches.order.order_hits(text, [first, *found], most=CUT)
            seconds = time.perf_counter() - began
            row[kind] = [*planning.scores(hits, asked.gold), 1 + len(queries), seconds]
        return row

    def queries_of(
        self, kind: str, asked: Asked, first: Sequence[Hit], deep: Sequence[Hit]
    ) -> list[str]:
        text = one_line(asked.question.text)
        sentences = [cut_words(text[a:b]) for a, b in split_sentences(text)]
        match kind:
            case "rare":
                made = [self.words._rare_words(text, most) for most in (6, 3)]
            case "asking":
                made = [s for s in sentences if s.rstrip().endswith("?")][-1:]
            case "short":
                made = [cut_words(" ".join(terms_in_words(text)))]
            case "sentences":
                made = sentences[:6]
            case "feedback":
                told = " ".join(hit.passage.text for hit in first[:3])
                made = [f"{text[:LONGEST]} {self.words._rare_words(told, 6)}"]
            case _:
                told = " ".join(
                    h.passage.text for h in deep if planning.document_of(h) in asked.gold
                )
                made = [f"{text[:LONGEST]} {self.words._rare_words(told, 6)}"]
        return [query for query in dict.fromkeys(made) if query and query != text]


async def study(given: argparse.Namespace) -> None:
    settings = settings_of(given.work)
    log = given.work / "room.jsonl"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    done = {(row["part"], row["set"], row["id"]) for row in map(json.loads, lines)}
    cases = [case for case in read_cases(given.work / "train.jsonl") if case.documents]
    chosen = random.Random(0).sample(cases, min(given.train, len(cases)))
    train = [Asked(c.sample.task, c.question, frozenset(c.documents)) for c in chosen]
    test = tested(given.work)
    with open_knowledge_base(settings) as kb:
        words = QuestionWords(_term_rarity(kb))
        near = encoder_relevance(load_encoder(settings))
        room = Room(planning.searches(settings, kb), words, near)
        for part, asked in [("train", one) for one in train] + [("test", one) for one in test]:
            if (part, asked.set, asked.question.id) in done:
                continue
            row = {"part": part, **await room.try_all(asked)}
            with log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(row) + "\n")


Row = Mapping[str, Any]


def fit_gate(rows: Sequence[Row]) -> tuple[float, str]:
    """Where the first passage is weak, and the kind that gains most there (training questions)."""
    weak_from = sorted(row["top"] for row in rows)[int(WEAK * len(rows))]
    weak = [row for row in rows if row["top"] < weak_from]
    kinds = [kind for kind in KINDS if kind != "gold words"]
    return weak_from, max(kinds, key=lambda kind: sum(row[kind][0] for row in weak))


def table(work: Path) -> None:
    every = [json.loads(line) for line in (work / "room.jsonl").read_text("utf-8").splitlines()]
    train, test = ([row for row in every if row["part"] == part] for part in ("train", "test"))
    weak_from, kind = fit_gate(train)
    print(f"gate: below {weak_from:.3f}, then {kind} ({len(train)} training questions)")
    for row in test:
        row["gate"] = row[kind] if row["top"] < weak_from else row["one-search"]
        row["oracle"] = max((row[k] for k in ("one-search", *KINDS[:-1])), key=lambda it: it[:2])
    print("| set | way | n | recall@10 | nDCG@10 | queries | s | recall less one search |")
    print("|---|---|--:|---|---|--:|--:|---|")
    for set_ in (*planning.SETS, "all"):
        of = [row for row in test if set_ in (row["set"], "all")]
        for way in ("one-search", *KINDS, "gate", "oracle"):
            recalls, ndcgs, queries, seconds = ([row[way][i] for row in of] for i in range(4))
            apart = difference([row["one-search"][0] for row in of], recalls)
            print(
                f"| {set_} | {way} | {len(of)} | {mean(recalls)} | {mean(ndcgs)}"
                f" | {sum(queries) / len(of):.1f} | {sum(seconds) / len(of):.2f} | {apart} |"
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--train", type=int, default=150, help="training questions for the gate")
    given = parser.parse_args()
    asyncio.run(study(given))
    table(given.work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
