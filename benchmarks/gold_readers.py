"""What the methods lose of an answer that their reader has: `GoldReader` of `osler.testing`.

    python -m benchmarks.gold_readers --data ../shared/data --limit 20

The reader writes the gold answer as soon as it is shown the gold documents. "direct" hands them to
it alone; the others must plan, search and keep them. What stands under "direct" is what a method
loses, whatever its model. The searches are by words, over all documents of a set.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from osler.retrieve.words import content_terms
from osler.testing.competent import GoldReader
from osler.testing.mannered_runs import ManneredRun, run_mannered
from osler.testing.manners import Manners
from osler.text import split_sentences
from osler.types import Halt, Hit, Passage, Question, Retriever

LONGEST = 900
"""Characters of a document: the prompts of all methods show so much whole."""
ARMS = ("direct", "tc-rag", "kag-thinker", "omni-rag", "unified")
_SATURATION = 1.2


@dataclass(frozen=True)
class GoldQuestion:
    question: str
    answer: str
    gold: tuple[Passage, ...]


@dataclass
class WordSearch:
    """BM25 without lengths, over a few thousand documents."""

    passages: Sequence[Passage]
    _counts: list[Counter[str]] = field(init=False)
    _weights: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        texts = (f"{one.title} {one.text}" for one in self.passages)
        self._counts = [Counter(content_terms(text)) for text in texts]
        found_in = Counter(term for each in self._counts for term in each)
        n = len(self.passages)
        self._weights = {term: math.log(1 + n / seen) for term, seen in found_in.items()}

    async def search(self, query: str, *, k: int) -> list[Hit]:
        terms = set(content_terms(query))
        scores = [self._score(terms, counts) for counts in self._counts]
        best = sorted(range(len(scores)), key=lambda i: -scores[i])[:k]
        found = [(self.passages[i], scores[i]) for i in best if scores[i]]
        return [
            Hit(one, score, rank, query, one.source) for rank, (one, score) in enumerate(found, 1)
        ]

    def _score(self, terms: set[str], counts: Counter[str]) -> float:
        share = ((counts[term], self._weights[term]) for term in terms if term in counts)
        return sum(weight * n / (n + _SATURATION) for n, weight in share)


@dataclass(frozen=True)
class GoldOnly:
    """Finds the gold documents, whatever is asked."""

    gold: Sequence[Passage]

    async def search(self, query: str, *, k: int) -> list[Hit]:
        found = enumerate(self.gold[:k], 1)
        return [Hit(one, 1.0, rank, query, one.source) for rank, one in found]


# The sets


def read_2wiki(data: Path) -> tuple[list[Passage], list[GoldQuestion]]:
    """Gold are the documents of the subjects of the evidence."""
    folder = data / "A_questions/multihop/2wikimultihopqa"
    listed = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    by_title = {one["title"]: as_passage("2wiki", one["title"], one["text"]) for one in listed}
    asked = []
    for row in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        titles = list(dict.fromkeys(subject for subject, _, _ in row["evidence"]))
        if titles and all(title in by_title for title in titles):
            gold = tuple(by_title[title] for title in titles)
            asked.append(GoldQuestion(row["question"], row["answer"], gold))
    return list(by_title.values()), asked


def read_musique(data: Path) -> tuple[list[Passage], list[GoldQuestion]]:
    path = data / "A_questions/multihop/musique/qa_train.json"
    every: dict[str, Passage] = {}
    asked = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        gold = []
        for one in row["paragraphs"]:
            passage = as_passage("musique", one["title"], one["paragraph_text"])
            passage = every.setdefault(passage.id, passage)
            gold += [passage] if one["is_supporting"] else []
        asked.append(GoldQuestion(row["question"], row["answer"], tuple(dict.fromkeys(gold))))
    return list(every.values()), asked


def read_bioasq(data: Path) -> tuple[list[Passage], list[GoldQuestion]]:
    """Factoid questions; gold is the first snippet that has the answer's words."""
    path = data / "A_questions/bioasq/bioasq_other_golden.json"
    every: dict[str, Passage] = {}
    asked = []
    for row in json.loads(path.read_text(encoding="utf-8"))["questions"]:
        found = [as_passage("bioasq", "", one["text"]) for one in row["snippets"]]
        found = [every.setdefault(one.id, one) for one in found]
        answers = row.get("exact_answer") or [[""]]
        answer = answers[0][0] if isinstance(answers[0], list) else answers[0]
        bearing = [one for one in found if answer and answer.casefold() in one.text.casefold()]
        if row["type"] == "factoid" and bearing:
            asked.append(GoldQuestion(row["body"], answer, (bearing[0],)))
    return list(every.values()), asked


SETS = {"2wiki": read_2wiki, "musique": read_musique, "bioasq": read_bioasq}


def as_passage(source: str, title: str, text: str) -> Passage:
    """A document, shortened by whole sentences."""
    plain = " ".join(text.split())
    ends = [end for _, end in split_sentences(plain) if end <= LONGEST]
    short = plain[: max(ends, default=LONGEST)]
    return Passage(f"{source}:{title}:{hash_text(plain)}#0", short, source, title)


def hash_text(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


# The runs


async def run_arm(
    arm: str, asked: GoldQuestion, found: WordSearch, home: Path
) -> tuple[ManneredRun, GoldReader]:
    retriever: Retriever = GoldOnly(asked.gold) if arm == "direct" else found
    kind = "rag" if arm == "direct" else arm
    reader = GoldReader(asked.question, asked.answer, asked.gold)
    done = await run_mannered(
        {"kind": kind},
        Manners(),
        home,
        competent=reader,
        question=Question("q", asked.question),
        retriever=retriever,
    )
    return done, reader


def row_of(asked: GoldQuestion, done: ManneredRun, reader: GoldReader) -> dict[str, float]:
    """What is counted of one run; right = said, and its documents were shown to the reader."""
    answer = done.solution.answer
    gold = {one.id for one in asked.gold}
    cited = {one.passage.id for one in answer.evidence}
    return {
        "shown": float(reader.was_shown_all),
        "right": float(reader.was_shown_all and asked.answer.casefold() in answer.text.casefold()),
        "cites gold": float(bool(cited & gold)),
        "cites other": float(bool(cited - gold)),
        "converged": float(done.solution.halt is Halt.CONVERGED),
        "calls": float(done.chats),
        "searches": float(done.run.usage.searches),
    }


def print_rows(name: str, arm: str, rows: Sequence[dict[str, float]]) -> None:
    means = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
    told = "  ".join(f"{key} {value:.2f}" for key, value in means.items())
    print(f"{name:8} {arm:12} n={len(rows)}  {told}")


async def run_set(name: str, data: Path, limit: int) -> None:
    passages, asked = SETS[name](data)
    found = WordSearch(passages)
    with TemporaryDirectory() as home:
        for arm in ARMS:
            chosen: Iterator[GoldQuestion] = islice(asked, limit)
            runs = [(one, await run_arm(arm, one, found, Path(home))) for one in chosen]
            print_rows(name, arm, [row_of(one, *done) for one, done in runs])


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, default=20, help="questions of a set")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    given: Any = parser.parse_args()
    for name in given.sets:
        asyncio.run(run_set(name, given.data, given.limit))


if __name__ == "__main__":
    main()
