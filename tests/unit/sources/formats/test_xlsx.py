"""Workbooks: sheets are documents, rows say what their columns are."""

from __future__ import annotations

import io
import zipfile
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.ingest.prepare import is_dead
from osler.sources.formats import office, sheet_rows
from osler.sources.formats.containers import Unreadable
from osler.sources.formats.office import Xlsx
from osler.sources.records import Document, Drop, Record

openpyxl = pytest.importorskip("openpyxl", reason="the extra `xlsx` is not installed")

Rows = list[list[Any]]


def book(*merged: str, **sheets: Rows) -> bytes:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for title, rows in sheets.items():
        sheet = made.create_sheet(title)
        for row in rows:
            sheet.append(row)
        for cells in merged:
            sheet.merge_cells(cells)
        if title == "Hidden":
            sheet.sheet_state = "hidden"
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def parse(data: bytes) -> list[Record]:
    return list(Xlsx().parse(BytesIO(data), "who/anc.xlsx"))


TABLE: Rows = [
    ["Antenatal care"],
    [],
    ["Activity", "Label", "Definition"],
    ["Check", "Height", "In cm"],
    ["Check", "Weight", None],
    ["Advise", "Salt\nintake", 5],
]


def test_a_row_says_what_each_of_its_cells_is() -> None:
    (found,) = parse(book(Data=TABLE))

    assert isinstance(found, Document)
    assert (found.id, found.title) == ("anc-Data", "anc: Data")
    assert [(s.path, s.text) for s in found.sections] == [
        ((), "Antenatal care"),
        (("Check",), "Label: Height; Definition: In cm\nLabel: Weight"),
        (("Advise",), "Label: Salt intake; Definition: 5"),
    ]


def test_the_rows_of_a_table_are_documents_as_those_of_csv() -> None:
    rows: Rows = [
        ["drug", "max_daily", "notes", None],
        ["Ibuprofen", "1.2 g", "avoid"],
        ["Ramipril"],
    ]

    document, drop = parse(book(Formulary=rows))

    assert isinstance(document, Document)
    assert (document.title, document.kind) == ("Ibuprofen", "table")
    assert document.sections[0].text == "drug: Ibuprofen; max daily: 1.2 g; notes: avoid"
    assert drop == Drop("who/anc.xlsx: sheet Formulary:3", "no text")


def told(data: bytes) -> list[str]:
    return [s.text for one in parse(data) if isinstance(one, Document) for s in one.sections]


DOSES: Rows = [
    ["drug", "dose", None],
    [None, "mild", "severe"],
    ["Obrexin", "50 mg", "25 mg"],
    [None, "40 mg", "20 mg"],
]


def test_a_merged_cell_stands_in_each_cell_that_it_covers_and_heads_the_columns_below() -> None:
    rows = [*DOSES, ["Palmedol", "not given", None]]
    for merged in (["A1:A2", "B1:C1"], ["B1:C1"]):
        assert told(book(*merged, "A3:A4", "B5:C5", Doses=rows)) == [
            "drug: Obrexin; dose mild: 50 mg; dose severe: 25 mg",
            "drug: Obrexin; dose mild: 40 mg; dose severe: 20 mg",
            "drug: Palmedol; dose mild: not given; dose severe: not given",
        ]


def test_the_place_of_a_row_is_its_number_in_the_sheet() -> None:
    *_, drop = parse(book("B1:C1", Doses=[*DOSES, [], ["Palmedol"]]))
    assert drop == Drop("who/anc.xlsx: sheet Doses:6", "no text")


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (0.05, "0%", "5%"),
        (0.0725, "0.0%;[Red]-0.0%", "7.25%"),
        (5, '0.0" mg"', "5 mg"),
        (5, 'General\\ "%"', "5 %"),
        (5, '"<"0', "<5"),
        (5000, '0,"k"', "5000"),
        (0.2, '[<1]0.0" mg";0" g"', "0.2"),
        (-5, "0.00E+00", "-5"),
        (0.5, '_-# ?/?" tablets"', "0.5 tablets"),
        (datetime(2024, 2, 29), "yyyy", "2024-02-29"),
        (datetime(2024, 2, 29, 8, 30), "d/m/yy", "2024-02-29 08:30:00"),
        (True, "General", "true"),
    ],
)
def test_a_number_is_told_with_what_its_format_adds(value: Any, form: str, shown: str) -> None:
    made = openpyxl.load_workbook(io.BytesIO(book(Doses=[["drug", "dose"], ["Iron", value]])))
    made.active["B2"].number_format = form
    out = io.BytesIO()
    made.save(out)
    assert told(out.getvalue()) == [f"drug: Iron; dose: {shown}"]


def test_formulas_that_were_never_worked_out_are_a_dead_letter_of_their_sheet() -> None:
    drop, row = parse(book(Doses=[["drug", "dose", "max"], ["Iron", 5, "=B2*2"]]))
    assert drop == Drop("who/anc.xlsx: sheet Doses", "formulas without values")
    assert is_dead(drop.reason)
    assert isinstance(row, Document)
    assert row.sections[0].text == "drug: Iron; dose: 5"


def test_a_row_below_a_merged_name_that_names_a_drug_is_no_second_head() -> None:
    (text,) = told(book("B1:C1", Doses=[DOSES[0], *DOSES[2:3]]))
    assert text == "dose: 50 mg; 25 mg"


def test_a_cell_behind_the_named_columns_is_told_with_its_row() -> None:
    assert told(book(Doses=[["drug", "dose"], ["Iron", "200 mg", "oral"], ["Zinc", "9 mg"]])) == [
        "dose: 200 mg; oral",
        "dose: 9 mg",
    ]


def test_a_title_over_all_columns_is_told_once() -> None:
    (found,) = parse(book("A1:C1", Data=TABLE))
    assert isinstance(found, Document)
    assert found.sections[0].text == "Antenatal care"


def test_a_merged_cell_repeated_without_end_is_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheet_rows, "_MOST_REPEATED", 10_000)
    with pytest.raises(Unreadable) as caught:
        parse(book("A1:XFC1", Data=[["drug", *[None] * 16_382, "dose"]]))
    assert caught.value.reason == "decompression bomb"


def test_examinations_in_a_workbook_are_no_evidence() -> None:
    (drop,) = parse(book(Exam=[["question", "answer", "opa"], ["Which?", "a", "b"]]))

    assert isinstance(drop, Drop)
    assert drop.reason == "test questions or judgements, not evidence"


def test_hidden_and_empty_sheets_are_drops() -> None:
    assert parse(book(Hidden=TABLE, Empty=[])) == [
        Drop("who/anc.xlsx: sheet Hidden", "hidden sheet"),
        Drop("who/anc.xlsx: sheet Empty", "no text"),
    ]


def test_a_workbook_is_told_from_other_archives_by_its_name() -> None:
    data = book(Data=TABLE)

    assert Xlsx().matches("a.xlsx", data)
    assert not Xlsx().matches("a.zip", data)
    assert not Xlsx().matches("a.xlsx", b"text")


def test_a_workbook_that_breaks_off_or_is_another_archive_is_named() -> None:
    with pytest.raises(Unreadable):
        parse(book(Data=TABLE)[:-50])
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "text")
    with pytest.raises(MalformedSource):
        parse(other.getvalue())


def test_workbook_decompression_bomb_is_refused_before_opening(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(office, "_LARGEST_BOOK", 2**20)
    swollen = io.BytesIO()
    with zipfile.ZipFile(swollen, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * (2**20 + 1))
    with pytest.raises(Unreadable) as caught:
        parse(swollen.getvalue())
    assert caught.value.reason == "decompression bomb"


def test_one_bad_workbook_does_not_stop_the_files_after_it(tmp_path: Path) -> None:
    good = book(Doses=[["Name", "Dose", "Note"], ["Iron", "200 mg", "oral"]])
    with zipfile.ZipFile(io.BytesIO(good)) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()}
    (sheet,) = (name for name in parts if name.startswith("xl/worksheets/"))
    damage = {"xml.xlsx": b"<worksheet", "short.xlsx": parts[sheet][:100]}
    for name, data in damage.items():
        with zipfile.ZipFile(tmp_path / name, "w") as broken:
            for part, content in {**parts, sheet: data}.items():
                broken.writestr(part, content)
    at = good.find(b"PK\x01\x02")
    (tmp_path / "deflate.xlsx").write_bytes(good[:600] + b"\xff" * 40 + good[640:at] + good[at:])
    (tmp_path / "z.xlsx").write_bytes(good)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add(sorted(tmp_path.glob("*.xlsx")), source="guideline")
        assert kb.info().documents == 1
