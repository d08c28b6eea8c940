"""`retrieve` and `answers` asked in Chinese, which they were not made for, beside the rules that
decide there: search by words, and the share of the question's words that a text has.

    python benchmarks/experts/chinese.py [--data FOLDER] [--limit 200]

Consultations of internal medicine (B14): the answer to a patient's question among those to
others. Both experts refuse Chinese in use; here they are made to judge it, so that the card can say
what that would be worth. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from osler.evaluate.intervals import difference, mean
from osler.evaluate.metrics.retrieval import reciprocal_rank
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.answer_cues import share_covered
from osler.retrieve.experts.answering import AnswersExpert, TextPair
from osler.retrieve.experts.searching import SearchExpert
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.hybrid import HybridRetriever, LexicalRetriever
from osler.text import one_line
from osler.train.experts.searches import document_name
from osler.types import Language, Retriever

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
CONSULTATIONS = "B_corpora/zh/样例_内科.csv"
_OTHERS = 5
_CUT = 300
"""Characters of an answer that are read."""


class AnyLanguageEncoder(MiniLMEncoder):
    """The packaged encoder, made to read Chinese."""

    languages: frozenset[Language] = frozenset({"en", "zh"})


def read_consultations(data: Path, limit: int) -> list[tuple[str, str]]:
    """Questions with their answers, each answer once, drawn by seed 0."""
    with (data / CONSULTATIONS).open(encoding="gb18030", newline="") as file:
        rows = {one_line(r["answer"])[:_CUT]: one_line(r["title"]) for r in csv.DictReader(file)}
    pairs = [(asked, answer) for answer, asked in rows.items() if len(answer) > 40 and asked]
    return Random(0).sample(pairs, min(limit, len(pairs)))


async def compare_searches(pairs: Sequence[tuple[str, str]], folder: Path) -> None:
    """The rank of a question's answer among all answers."""
    encoder = AnyLanguageEncoder(threads=1)
    texts = folder / "answers.jsonl"
    lines = (json.dumps({"id": f"zh{n}", "content": one}) for n, (_, one) in enumerate(pairs))
    texts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with KnowledgeBase.create(folder / "kb") as kb:
        kb.add([texts], source="web")
        kb.build(encoder)
        expert = SearchExpert(open_expert("retrieve"))
        searches: list[Retriever] = [
            LexicalRetriever(kb),
            HybridRetriever(kb, encoder, expert=expert),
        ]
        ranks: list[list[float]] = []
        for search in searches:
            found = [await search.search(asked, k=10) for asked, _ in pairs]
            names = [list(dict.fromkeys(document_name(h.passage) for h in hits)) for hits in found]
            ranks.append([reciprocal_rank(one, {f"zh{n}": 1}) for n, one in enumerate(names)])
    by_words, ours = ranks
    _print_row("`retrieve`: MRR@10", ours, "words", by_words)


def compare_judges(pairs: Sequence[tuple[str, str]]) -> None:
    """How often the answer has the highest score beside five others; a tie shares."""
    expert, chance = AnswersExpert(open_expert("answers"), threads=1), Random(1)
    ours, theirs = [], []
    for asked, answer in pairs:
        others = chance.sample([one for _, one in pairs if one != answer], _OTHERS)
        texts = [answer, *others]
        ours.append(_is_first(expert.judge_texts(asked, [TextPair(one) for one in texts])))
        theirs.append(_is_first(share_covered(asked, texts)))
    _print_row("`answers`: right text first of six", ours, "words shared", theirs)


def _is_first(scores: Sequence[float]) -> float:
    best = max(scores)
    return float(scores[0] == best) / sum(one == best for one in scores)


def _print_row(measure: str, ours: list[float], rule: str, theirs: list[float]) -> None:
    gain = difference(theirs, ours)
    print(
        f"| {measure} | {len(ours)} | {mean(ours)} | {rule} {mean(theirs)} | {gain} |", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, default=200)
    given = parser.parse_args()
    pairs = read_consultations(given.data, given.limit)
    print("| Chinese | n | expert | rule | gain |\n|---|--:|---|---|---|")
    compare_judges(pairs)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(compare_searches(pairs, Path(folder)))


if __name__ == "__main__":
    main()
