"""Authority and recency in the order: graded gain by kind of evidence, and what plain sets lose.

    python benchmarks/authority_order.py [--data FOLDER] [dev|test]

One knowledge base of guidelines, books, encyclopaedia articles, abstracts and MedQuAD's answers,
searched by words. Graded set, by rule: the subjects of MedQuAD that head passages of two grades of
evidence or more; asked is their treatment, and a passage whose heading names the subject gains
1 + its grade (0 to 4). The grade is that by which the order is made: the set says how far up the
order brings what it counts as better, and not whether it is. Plain sets: those of `published.py`.
Questions are split in halves by a hash; the weights are chosen on `dev`. Judged set (`judged.tsv`,
of test's questions, named by their hash): ten passages of 40 questions each, relevance and
authority graded 0 to 3 by a reader who saw neither source grade nor order; a passage gains their
sum if it is relevant, and passages that were not judged are left out of the order.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import re
import tempfile
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path

from corpora import DATA
from published import DEPTH, Asked, every_question, names, write_passages

from osler.evaluate.intervals import mean
from osler.evaluate.metrics.retrieval import ndcg
from osler.kb.base import KnowledgeBase
from osler.retrieve.authority import AuthorityWeights, authority_grade, order_by_authority
from osler.retrieve.hybrid import LexicalRetriever
from osler.types import Hit

JUDGED = Path(__file__).parent / "authority" / "judged.tsv"
_OTHERS = {"guidelines": "guideline", "textbooks": "book", "wikipedia": "wiki"}
_WEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.5)
_MOST = 300
_LEAST_GRADES, _LEAST_PASSAGES = 2, 3


def is_of(half: str, text: str) -> bool:
    return (sha256(text.encode()).digest()[0] % 2 == 0) == (half == "dev")


def graded_questions(kb: KnowledgeBase) -> list[Asked]:
    """The subjects with evidence of several grades, each with the gains of its passages."""
    heads: dict[str, dict[str, int]] = {}
    subjects = {
        passages[0].title.casefold()
        for passages in kb.read_documents("web")
        if passages[0].title and len(passages[0].title) > 4
    }
    for source in kb.sources:
        for passages in kb.read_documents(source):
            for passage in passages:
                grade = authority_grade(Hit(passage, 1.0, 1, "", source))
                for subject in _subjects_in(passage.heading.casefold(), subjects):
                    heads.setdefault(subject, {})[passage.id] = 1 + grade
    return [
        Asked(f"What is the treatment of {subject}?", gains)
        for subject, gains in sorted(heads.items())
        if len({*gains.values()}) >= _LEAST_GRADES and len(gains) >= _LEAST_PASSAGES
    ]


def _subjects_in(heading: str, subjects: set[str]) -> set[str]:
    words = re.findall(r"[\w'-]+", heading)
    spans = {" ".join(words[a : a + n]) for n in range(1, 6) for a in range(len(words) - n + 1)}
    return spans & subjects


def judged_questions(every: Iterable[Asked]) -> list[Asked]:
    """Those with judged passages, each with its gains; 0 for one that is not relevant."""
    gains: dict[str, dict[str, int]] = {}
    with JUDGED.open() as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            relevance, authority = int(row["relevance"]), int(row["authority"])
            gain = relevance + authority if relevance else 0
            gains.setdefault(row["question"], {})[row["passage"]] = gain
    named = {sha256(one.text.encode()).hexdigest()[:16]: one.text for one in every}
    return [Asked(named[name], of) for name, of in gains.items() if any(of.values())]


async def find_hits(kb: KnowledgeBase, asked: Sequence[Asked]) -> list[list[Hit]]:
    search = LexicalRetriever(kb)
    return [await search.search(one.text, k=DEPTH) for one in asked]


def show(
    task: str, asked: Sequence[Asked], hits: Sequence[list[Hit]], weights: AuthorityWeights
) -> None:
    by_passage = task in {"graded", "judged"}
    found = []
    for one, listed in zip(asked, hits, strict=True):
        ordered = order_by_authority(listed[:30], weights)
        ranked = [hit.passage.id for hit in ordered] if by_passage else names(ordered)
        if task == "judged":
            ranked = [id for id in ranked if id in one.grades]
        found.append(ndcg(ranked[:10], one.grades, 10))
    label = f"authority {weights.authority:.2f}, recency {weights.recency:.2f}"
    print(f"{task:9} {label}  nDCG@10 {mean(found)}  n {len(found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("half", choices=("dev", "test"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--weights", type=float, nargs="*", default=_WEIGHTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pubmed, medquad = write_passages(given.data, Path(folder))
        with KnowledgeBase.create(Path(folder) / "kb") as kb:
            kb.add([pubmed], source="research")
            kb.add([medquad], source="web")
            for name, source in _OTHERS.items():
                kb.add([given.data / "B_corpora" / name], source=source)
            plain = every_question(given.data)
            tasks = {"graded": graded_questions(kb), **plain}
            if given.half == "test":
                tasks["judged"] = judged_questions(chain.from_iterable(plain.values()))
            for task, every in tasks.items():
                asked = [one for one in every if is_of(given.half, one.text)][:_MOST]
                hits = asyncio.run(find_hits(kb, asked))
                for weight in given.weights:
                    show(task, asked, hits, AuthorityWeights(weight, 0.0))
                show(task, asked, hits, AuthorityWeights())


if __name__ == "__main__":
    main()
