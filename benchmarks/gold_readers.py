"""What the methods lose of an answer that their reader has: `GoldReader` of `tests/support`.

    python -m benchmarks.gold_readers --data ../shared/data --limit 20

The reader writes the gold answer as soon as it is shown the gold documents. "direct" hands them to
it alone; the others must plan, search and keep them. What stands under "direct" is what a method
loses, whatever its model. The searches are by words, over all documents of a set.

The reader has the steps into which a data set takes its questions apart, as a competent model
would, and never the documents: it asks for the next step once it was shown the answers before it.
"found" is what its queries alone bring, asked one after another without any method: what a method
has less than that is the method's loss, what "found" has less than 1 is retrieval's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import nsmallest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from competent import GoldReader, GoldStep
from mannered_runs import ManneredRun, run_mannered
from manners import Manners
from prefix_cache import PrefixCache, template_tokens

from osler.retrieve import content_terms
from osler.text import split_sentences
from osler.types import Halt, Hit, Passage, Question, Retriever

LONGEST = 900
"""Characters of a document: the prompts of all methods show so much whole."""
ARMS: dict[str, dict[str, object]] = {
    "direct": {"kind": "rag"},
    "tc-rag": {"kind": "tc-rag"},
    "kag-thinker": {"kind": "kag-thinker"},
    "omni-rag": {"kind": "omni-rag"},
    "omni-rag, preset": {"kind": "omni-rag", "per_source": 30, "order": "turns"},
    "omni-rag, follow": {"kind": "omni-rag", "follow": 6},
    "unified": {"kind": "unified"},
}
_SATURATION = 1.2


@dataclass(frozen=True)
class GoldQuestion:
    question: str
    answer: str
    steps: tuple[GoldStep, ...]

    @property
    def gold(self) -> tuple[Passage, ...]:
        return tuple(dict.fromkeys(one for step in self.steps for one in step.gold))


@dataclass
class WordSearch:
    """BM25 without lengths, over a few thousand documents."""

    passages: Sequence[Passage]
    _found_in: dict[str, list[tuple[int, int]]] = field(init=False)
    """Term → the places of the passages that have it, and how often."""

    def __post_init__(self) -> None:
        self._found_in = defaultdict(list)
        for i, one in enumerate(self.passages):
            for term, n in Counter(content_terms(f"{one.title} {one.text}")).items():
                self._found_in[term].append((i, n))

    async def search(self, query: str, *, k: int) -> list[Hit]:
        scores: defaultdict[int, float] = defaultdict(float)
        for term in sorted(set(content_terms(query)) & self._found_in.keys()):
            places = self._found_in[term]
            weight = math.log(1 + len(self.passages) / len(places))
            for i, n in places:
                scores[i] += weight * n / (n + _SATURATION)
        best = nsmallest(k, scores, key=lambda i: (-scores[i], i))
        return [
            Hit(self.passages[i], scores[i], rank, query, self.passages[i].source)
            for rank, i in enumerate(best, 1)
        ]


@dataclass(frozen=True)
class GoldOnly:
    """Finds the gold documents, whatever is asked."""

    gold: Sequence[Passage]

    async def search(self, query: str, *, k: int) -> list[Hit]:
        found = enumerate(self.gold[:k], 1)
        return [Hit(one, 1.0, rank, query, one.source) for rank, one in found]


# The sets


def read_2wiki(data: Path) -> tuple[list[Passage], list[GoldQuestion]]:
    """A step is a statement of the evidence; gold is the document of its subject."""
    folder = data / "A_questions/multihop/2wikimultihopqa"
    listed = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    by_title = {one["title"]: as_passage("2wiki", one["title"], one["text"]) for one in listed}
    asked = []
    for row in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        told = row["evidence"]
        if told and all(subject in by_title for subject, _, _ in told):
            steps = tuple(read_statement(told, n, by_title) for n in range(len(told)))
            asked.append(GoldQuestion(row["question"], row["answer"], steps))
    return list(by_title.values()), asked


def read_statement(told: Sequence[Any], n: int, by_title: dict[str, Passage]) -> GoldStep:
    """A step whose subject is the object of an earlier one names it by number."""
    subject, relation, value = told[n]
    before = [k for k, (_, _, found) in enumerate(told[:n], 1) if found == subject]
    named = f"#{before[0]}" if before else subject
    return GoldStep(f"What is the {relation} of {named}?", value, (by_title[subject],))


def read_musique(data: Path) -> tuple[list[Passage], list[GoldQuestion]]:
    """The steps are those of the set; gold is the paragraph that supports one."""
    path = data / "A_questions/multihop/musique/qa_train.json"
    every: dict[str, Passage] = {}
    asked = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        found = [as_passage("musique", p["title"], p["paragraph_text"]) for p in row["paragraphs"]]
        found = [every.setdefault(one.id, one) for one in found]
        steps = tuple(
            GoldStep(
                word_step(one["question"]), one["answer"], (found[one["paragraph_support_idx"]],)
            )
            for one in row["question_decomposition"]
        )
        asked.append(GoldQuestion(row["question"], row["answer"], steps))
    return list(every.values()), asked


def word_step(asked: str) -> str:
    """A step as a question: "Hello Love >> performer" is written so in the set."""
    subject, _, relation = asked.partition(" >> ")
    return f"What is the {relation} of {subject}?" if relation else asked


def read_bioasq(data: Path) -> tuple[list[Passage], list[GoldQuestion]]:
    """Factoid questions of one step; gold is any snippet with the answer's words."""
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
            step = GoldStep(row["body"], answer, tuple(bearing))
            asked.append(GoldQuestion(row["body"], answer, (step,)))
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
    reader = GoldReader(asked.question, asked.answer, asked.steps)
    done = await run_mannered(
        ARMS[arm],
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
    right = reader.was_shown_all and asked.answer.casefold() in answer.text.casefold()
    return {
        "shown": float(reader.was_shown_all),
        "right": float(right),
        "cites gold": float(bool(cited & gold)),
        "cites other": float(bool(cited - gold)),
        "converged": float(done.solution.halt is Halt.CONVERGED),
        "calls": float(done.chats),
        "calls if right": float(done.chats) if right else math.nan,
        "searches": float(done.run.usage.searches),
    }


def print_rows(name: str, arm: str, rows: Sequence[dict[str, float]], cached: float) -> None:
    told = "  ".join(f"{key} {mean([row[key] for row in rows]):.2f}" for key in rows[0])
    print(f"{name:8} {arm:16} n={len(rows)}  {told}  cached {cached:.2f}", flush=True)


def mean(values: Sequence[float]) -> float:
    """Without those that are not counted."""
    counted = [value for value in values if not math.isnan(value)]
    return sum(counted) / len(counted) if counted else math.nan


def share_cached(runs: Sequence[ManneredRun]) -> float:
    """Of all tokens sent in the runs of an arm, one after another, those that one cache has."""
    cache, sent, cached = PrefixCache(), 0, 0
    for body in (body for run in runs for body in run.requests):
        tokens = template_tokens(body["messages"])
        sent += len(tokens)
        cached += cache.read_prompt(tokens)
    return cached / sent if sent else 0.0


async def find_steps(asked: GoldQuestion, found: WordSearch, k: int = 5) -> dict[str, float]:
    """What the reader's own queries bring, asked one after another: no method."""
    reader = GoldReader(asked.question, asked.answer, asked.steps)
    read, searches = "", 0
    while query := reader.next_query(read):
        hits = await found.search(query, k=k)
        searches += 1
        read += f"\nTool_Input: {query}\n" + "\n".join(hit.passage.text for hit in hits)
    return {"shown": float(reader.is_borne_out(read)), "searches": float(searches)}


async def run_set(name: str, data: Path, limit: int, arms: Sequence[str]) -> None:
    passages, every = SETS[name](data)
    found, asked = WordSearch(passages), every[:limit]
    for k in (3, 5, 10):
        rows = [await find_steps(one, found, k) for one in asked]
        print_rows(name, f"found, k = {k}", rows, 0.0)
    with TemporaryDirectory() as home:
        for arm in arms:
            runs = [(one, *await run_arm(arm, one, found, Path(home))) for one in asked]
            rows = [row_of(*each) for each in runs]
            print_rows(name, arm, rows, share_cached([done for _, done, _ in runs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--limit", type=int, default=20, help="questions of a set")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--arms", nargs="*", default=list(ARMS), choices=list(ARMS))
    given: Any = parser.parse_args()
    for name in given.sets:
        asyncio.run(run_set(name, given.data, given.limit, given.arms))


if __name__ == "__main__":
    main()
