"""Questions about tables are answered by the cell that they name, or not at all.

The sixty and twenty-four questions were written before the code. The values are made up.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from osler.answer.cells import find_cells
from osler.answer.consistency import keep_consistent
from osler.answer.gate import EvidenceGate
from osler.kb.ingest.prepare import chunk
from osler.sources.formats.rows import CsvRows
from osler.sources.records import Document
from osler.types import Hit, Question

TABLES = Path(__file__).parents[2] / "fixtures" / "tables"


def hits_of(*names: str) -> list[Hit]:
    hits: list[Hit] = []
    for name in names:
        with (TABLES / name).open("rb") as file:
            for record in CsvRows().parse(file, name):
                assert isinstance(record, Document)
                for passage in chunk(record, source="hospital"):
                    hits.append(Hit(passage, 1.0, len(hits) + 1, "", "lexical"))
    return hits


@pytest.fixture(scope="module")
def hits() -> list[Hit]:
    return hits_of("formulary.csv", "lab_catalogue.csv", "antibiotic_guide.tsv")


def questions(name: str) -> list[tuple[str, str, str]]:
    with (TABLES / name).open(encoding="utf-8", newline="") as file:
        return [(r["question"], r["row"], r["cell"]) for r in csv.DictReader(file, delimiter="\t")]


def answer(question: str, hits: list[Hit]) -> list[tuple[str, str]]:
    """Title of the row and text of each cell that is found."""
    cells = find_cells(question, hits).cells
    return [(hit.passage.title, hit.passage.text[start:end]) for hit, start, end in cells]


@pytest.mark.parametrize("file", ["questions.tsv", "dev.tsv"])
def test_each_question_is_answered_by_its_cell_alone_and_the_others_by_none(
    file: str, hits: list[Hit]
) -> None:
    wrong = []
    for question, row, cell in questions(file):
        found = answer(question, hits)
        if row and not (len(found) == 1 and found[0][0] == row and found[0][1].endswith(cell)):
            wrong.append((question, found))
        if not row and found:
            wrong.append((question, found))
    assert wrong == []


def test_a_row_is_named_by_all_its_words(hits: list[Hit]) -> None:
    assert answer("max daily dose of paracetamol", hits) == [("Paracetamol", "max daily dose: 4 g")]
    assert answer("max daily dose of morphine", hits) == []
    assert answer("max daily dose of prednisol", hits) == []


def test_a_word_too_many_is_another_question(hits: list[Hit]) -> None:
    assert answer("storage of oral ibuprofen", hits) == [("Ibuprofen", "storage: below 25 °C")]
    assert answer("storage of rectal ibuprofen", hits) == []
    assert answer("max daily dose of ibuprofen in children", hits) == []


def test_a_word_that_two_columns_share_gives_both(hits: list[Hit]) -> None:
    assert answer("dose of ibuprofen", hits) == [
        ("Ibuprofen", "usual adult dose: 200 mg to 400 mg three times a day"),
        ("Ibuprofen", "max daily dose: 1.2 g"),
    ]


class Relevant:
    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return (0.9,) * len(texts)


async def test_a_row_that_is_near_is_shown_as_near_and_never_as_the_answer(
    hits: list[Hit],
) -> None:
    gate = EvidenceGate(Relevant(), answers=0.0, nearest=0.0)

    exact = await gate.weigh_evidence(Question("q", "Max daily dose of tramadol?"), hits)
    near = await gate.weigh_evidence(Question("q", "What is the half-life of tramadol?"), hits)

    assert [quote.text for quote in exact.quotes] == ["max daily dose: 400 mg"]
    assert near.quotes == []
    assert near.near


def test_rows_about_two_drugs_do_not_contradict_each_other(hits: list[Hit]) -> None:
    insulins = [hit for hit in hits if hit.passage.title.startswith("Insulin")]

    kept, found = keep_consistent(insulins, lambda _: 3, "How is insulin stored?")

    assert (list(kept), found) == (insulins, [])
