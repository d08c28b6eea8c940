"""Evidence tables of ten real questions: does every number open its quote?

    python benchmarks/evidence_tables.py [--data FOLDER]

The first ten questions of PubMedQA, by a hash, whose five nearest abstracts (by words, among all
passages of `published.py`) state an effect. Each number of the table must stand in the quote of its
row, and the quote at its characters of the passage; sizes in the sentence that states them.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from hashlib import sha256
from itertools import islice
from pathlib import Path

from corpora import DATA
from published import every_question, write_passages

from osler.answer.evidence_table import flat_rows, tabulate_studies
from osler.kb.base import KnowledgeBase
from osler.retrieve.hybrid import LexicalRetriever

_QUESTIONS, _STUDIES = 10, 5
_NUMBERS = ("value", "low", "high")


async def tabulate(kb: KnowledgeBase, question: str) -> Counter[str] | None:
    """Counts of one table; `None` where no study states an effect."""
    hits = await LexicalRetriever(kb).search(question, k=_STUDIES)
    rows = list(flat_rows(tabulate_studies(hits)))
    if not any(row["value"] for row in rows):
        return None
    texts = {hit.passage.id: hit.passage.text for hit in hits}
    counts = Counter[str]()
    for row in rows:
        counts["rows"] += 1
        for name in (one for one in _NUMBERS if row[one]):
            counts["numbers"] += 1
            there = texts[row["passage"]][row["start"] : row["end"]]
            counts["open"] += row[name] in row["quote"] == there
    for n, people in {(row["n"], row["people"]) for row in rows if row["n"]}:
        counts["numbers"] += 1
        counts["open"] += n in people and any(people in text for text in texts.values())
    return counts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    given = parser.parse_args()
    asked = [one.text for one in every_question(given.data)["pubmedqa"]]
    asked.sort(key=lambda text: sha256(text.encode()).digest())
    with tempfile.TemporaryDirectory() as folder:
        pubmed, _ = write_passages(given.data, Path(folder))
        with KnowledgeBase.create(Path(folder) / "kb") as kb:
            kb.add([pubmed], source="research")
            tables = (asyncio.run(tabulate(kb, question)) for question in asked)
            found = list(islice((one for one in tables if one is not None), _QUESTIONS))
    for number, one in enumerate(found, 1):
        print(number, dict(one))
    print("all", dict(sum(found, Counter[str]())))


if __name__ == "__main__":
    main()
