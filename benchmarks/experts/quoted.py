"""Answers in quotes to test questions over all passages: what is quoted, and do the quotes answer?

    python benchmarks/experts/quoted.py ask --work FOLDER [--limit 500] --out quotes.jsonl
    python benchmarks/experts/quoted.py labels --labels benchmarks/experts/quoted_labels.csv

`ask` searches the knowledge base that `osler experts train answerable --work FOLDER` made, with the
default experts, and writes each quote; a stopped run goes on. It counts quotes that ask, lead
elsewhere or thank by a list of its own, not by the rule that leaves them out. `labels` reads what
two passes in different order said of quotes (1 = answers the question, alone or as a part of the
answer): share, interval and kappa, of those that are quoted for their aspect (`aspects`) and of a
sample of those that were quoted before (`before`). The file has ids and places, no text.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from sklearn.metrics import cohen_kappa_score

from osler.answer.extractive import ExtractiveComposer
from osler.evaluate.intervals import mean
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder, VectorMemory
from osler.retrieve.experts.answerable import ANSWERABLE, AnswerableExpert
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.hybrid import HybridRetriever
from osler.trace import Run
from osler.train.experts.answerable_job import drop_looked_at, make_gate
from osler.train.experts.evidence_cases import READ, packaged_search
from osler.train.experts.searches import SearchQuestion, document_name, read_searches
from osler.train.experts.splits import read_split
from osler.types import Question

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = re.compile(
    r"\b(?:click|see (?:the|our) (?:section|page|link)|www\.|https?:|for more information|web ?site"
    r"|thank|(?:visit|contact) (?:us|our|the)|read more|learn more)\b",
    re.IGNORECASE,
)


def choose_questions(data: Path, limit: int) -> list[SearchQuestion]:
    """Test questions on which no form of `answerable` was measured, in a fixed order."""
    split = read_split(ROOT / "benchmarks/experts/split.json")
    own = drop_looked_at(split.choose_items(read_searches(data), "test"), 0)
    return Random(2).sample(own, min(limit, len(own)))


async def ask_all(given: argparse.Namespace) -> None:
    encoder = VectorMemory(MiniLMEncoder(threads=1))
    known = {row["id"] for row in read_rows(given.out)}
    with KnowledgeBase.open(given.work / "kb") as kb, given.out.open("a", encoding="utf-8") as out:
        expert = AnswerableExpert(open_expert(ANSWERABLE, given.folder))
        gate = replace(make_gate(kb, encoder), expert=expert, decides=False)
        search = HybridRetriever(kb, encoder, expert=packaged_search())
        composer = ExtractiveComposer(gate, judge=gate.judge)
        for one in choose_questions(given.data, given.limit):
            if one.id in known:
                continue
            hits = await search.search(one.text, k=READ)
            answer = await composer.conclude(Question(one.id, one.text), hits, "", Run())
            quotes = [
                [q.passage.id, q.start, q.end, document_name(q.passage) in one.gold, q.quote]
                for q in answer.evidence
            ]
            sure = answer.sureness.probability if answer.sureness else 0.0
            found = any(document_name(hit.passage) in one.gold for hit in hits)
            row = {"id": one.id, "asked": one.text, "found": found, "sure": sure, "quotes": quotes}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()


def read_rows(path: Path) -> list[dict[str, object]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def count_quotes(path: Path) -> None:
    rows = read_rows(path)
    quoted = [one["quotes"] for one in rows if one["quotes"]]
    texts = [str(quote[4]) for quotes in quoted for quote in quotes]  # type: ignore[attr-defined]
    asks = sum(text.rstrip(" )”\"'").endswith("?") for text in texts)
    leads = [text for text in texts if ELSEWHERE.search(text)]
    first = [float(quotes[0][3]) for quotes in quoted]  # type: ignore[index]
    print(f"{len(rows)} questions, {len(quoted)} answered, {len(texts)} quotes")
    print(f"that ask: {asks}; that may lead elsewhere or thank: {len(leads)}")
    print(f"first quote of a gold document: {mean(first)}")
    for text in leads:
        print(f"  {text}")


def count_labels(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for rule in ("aspects", "before"):
        own = [row for row in rows if row[rule] == "1"]
        first, second = ([int(row[name]) for row in own] for name in ("first", "second"))
        for name, labels in (("first", first), ("second", second)):
            print(f"{rule}, {name} pass: {mean([float(one) for one in labels])}, n {len(labels)}")
        print(f"{rule}: kappa {cohen_kappa_score(first, second):.3f}")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("ask", "labels"))
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--folder", type=Path, help="of `answerable`; else the packaged one")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("quotes.jsonl"))
    parser.add_argument("--labels", type=Path)
    given = parser.parse_args(argv)
    if given.what == "ask":
        asyncio.run(ask_all(given))
        count_quotes(given.out)
    else:
        count_labels(given.labels)


if __name__ == "__main__":
    main()
