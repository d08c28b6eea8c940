"""Questions about rows of tables: is the right row's cell shown, another row's, or nothing?

    python benchmarks/table_questions.py QUESTIONS.tsv [--tables FILE...] [--home HOME] [--log LOG]

`QUESTIONS.tsv` has the columns question, row and cell; one without a row has no answer in the
tables. Each is asked as Osler answers and, beside it, by the simple rules of
`natural_questions.py`, which see the same passages. A row is known by its document's title.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from natural.asking import WAYS, AskedRow, NaturalAsker, Way
from natural.questions import NaturalQuestion

from osler.build.models import load_encoder
from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.text import language_of
from osler_lab.evaluate.intervals import proportion

FOLDER = Path(__file__).parent / "tables"
TABLES = ("formulary.csv", "lab_catalogue.csv", "antibiotic_guide.tsv")


@dataclass(frozen=True)
class TableRow:
    """A question with the row and the cell that answer it; both empty where none does."""

    question: str
    row: str
    cell: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("--tables", type=Path, nargs="+", default=[FOLDER / n for n in TABLES])
    parser.add_argument("--home", type=Path, help="where the base is kept")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["default", "cosine", "bm25"])
    parser.add_argument("--log", type=Path, help="each question with its first quote, as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings, titles = build_tables(given.home or Path(folder), given.tables)
        rows = read_questions(given.questions)
        log = asyncio.run(ask_rows(settings, rows, given.ways, titles))
    if given.log:
        lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in log)
        given.log.write_text("".join(lines), encoding="utf-8")
    for way in given.ways:
        print(json.dumps(count_way(way, [one for one in log if one["way"] == way])))


def read_questions(path: Path) -> list[TableRow]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [TableRow(r["question"], r["row"] or "", r["cell"] or "") for r in rows]


def build_tables(home: Path, tables: Sequence[Path]) -> tuple[Settings, Mapping[str, str]]:
    """The settings of a home with the tables, and the titles of their passages by id."""
    settings = Settings.model_validate({"home": home, "audit": {"log": "off"}})
    if not (home / "kb").is_dir():
        home.mkdir(parents=True, exist_ok=True)
        with KnowledgeBase.create(home / "kb") as kb:
            kb.add(tables, source="guideline")
            kb.build(load_encoder(settings))
    with KnowledgeBase.open(home / "kb") as kb:
        documents = [one for source in kb.sources for one in kb.read_documents(source)]
    return settings, {one.id: one.title for each in documents for one in each}


async def ask_rows(
    settings: Settings, rows: Sequence[TableRow], ways: Sequence[Way], titles: Mapping[str, str]
) -> list[dict[str, object]]:
    asker = NaturalAsker("tables", settings, keeps_weighed=False)
    try:
        return [
            {"way": way, **asdict(one), **read_answer(await _ask(asker, way, n, one), titles)}
            for way in ways
            for n, one in enumerate(rows)
        ]
    finally:
        asker.close()


async def _ask(asker: NaturalAsker, way: Way, number: int, one: TableRow) -> AskedRow:
    question = NaturalQuestion(str(number), one.question, language_of(one.question))
    return await asker.ask(way, question)


def read_answer(asked: AskedRow, titles: Mapping[str, str]) -> dict[str, object]:
    """What came first, and the rows of all that is shown."""
    shown = [titles[id] for id, _ in asked.quotes]
    first = asked.quotes[0][1] if asked.quotes else ""
    return {"outcome": asked.outcome, "shown": shown, "quote": first, "sure": asked.sure}


def count_way(way: str, log: Sequence[dict[str, object]]) -> dict[str, object]:
    there = [one for one in log if one["row"]]
    counts = Counter(map(_judge, there))
    n, absent = len(there), [one for one in log if not one["row"]]
    answered = sum(one["outcome"] == "answer" for one in absent)
    return {
        "way": way,
        "n": n,
        "right row answered": str(proportion(counts["right, with its cell"] + counts["right"], n)),
        **counts,
        "answered without an answer": f"{answered} of {len(absent)}",
    }


def _judge(one: dict[str, object]) -> str:
    """Of a question with an answer: what its first quote is worth."""
    shown, outcome = one["shown"], str(one["outcome"])
    assert isinstance(shown, list)
    right = shown[:1] == [one["row"]]
    if outcome == "answer":
        whole = str(one["cell"]) in str(one["quote"])
        return ("right, with its cell" if whole else "right") if right else "wrong row"
    return f"{outcome}, {'right' if right else 'another'} row first" if shown else outcome


if __name__ == "__main__":
    main()
