"""Records of named fields: CSV, JSON, Parquet; and what is no corpus but a test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from osler.errors import MalformedSource
from osler.sources.discover import discover
from osler.sources.formats.containers import Unreadable, require_package
from osler.sources.formats.json_records import JsonRecords
from osler.sources.formats.registry import KeyedRows, by_name, sniff_file
from osler.sources.formats.rows import CsvRows, record_of
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop, Record, Section

DIALOGUES = (
    "department,title,ask,answer\n"
    "心血管科,高血压怎么办？,我血压高，怎么办？,应当控制食盐。\n"
    '内分泌科,糖尿病？,"有\n糖尿病",\n'
    '内分泌科,糖尿病？,吃什么？,"少吃糖，\n多运动。"\n'
)


def csv(data: bytes, name: str = "zh/a.csv") -> list[Record]:
    return list(CsvRows().parse(BytesIO(data), name))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
def test_chinese_dialogues_are_read_in_either_encoding(encoding: str) -> None:
    data = DIALOGUES.encode(encoding)
    first, empty, last = csv(data)

    assert CsvRows().matches("a.csv", data)
    assert first == Document(
        id="a-2",
        title="高血压怎么办？",
        sections=(Section("应当控制食盐。", ("心血管科", "我血压高，怎么办？")),),
        language="zh",
        kind="question and answer",
    )
    assert empty == Drop("zh/a.csv:3", "empty answer")
    assert isinstance(last, Document)
    assert (last.id, last.sections[0].text) == ("a-5", "少吃糖，\n多运动。")


FORMULARY = (
    "drug,max_daily,notes\n"
    "Ibuprofen,1.2 g,avoid in renal impairment\n"
    "Ramipril,10 mg,\n"
    "Paracetamol,,\n"
    "17,4 g,a number is no name\n"
)


def test_a_row_of_any_table_is_a_sentence_of_its_cells() -> None:
    data = FORMULARY.encode()
    first, second, *others = csv(data, "ward/our_formulary.csv")
    assert CsvRows().matches("our_formulary.csv", data)
    assert isinstance(first, Document)
    assert (first.id, first.title, first.kind) == ("our_formulary-2", "Ibuprofen", "table")
    assert first.sections == (
        Section(
            "drug: Ibuprofen; max daily: 1.2 g; notes: avoid in renal impairment",
            ("our formulary",),
        ),
    )
    assert isinstance(second, Document)
    assert second.sections[0].text == "drug: Ramipril; max daily: 10 mg"
    assert [getattr(one, "reason", "") for one in others] == ["no text", "no text"]


def test_a_table_is_called_by_the_column_of_names() -> None:
    (found,) = csv("编号,药品名称,最大剂量\n7,布洛芬,1.2 g\n".encode())
    assert isinstance(found, Document)
    assert (found.title, found.language) == ("布洛芬", "zh")


@pytest.mark.parametrize(
    "header",
    [
        "subject_id,hadm_id,diagnosis",
        "patient,drug,dose",
        "姓名,诊断",
        "query-id,corpus-id,score",
        "0.1,0.7",
        "drug,drug",
        "drug,max_daily,max  daily",
        "drug",
        "question,opa,opb",
    ],
)
def test_tables_of_patients_or_tests_or_numbers_are_no_evidence(header: str) -> None:
    assert not CsvRows().matches("a.csv", f"{header}\n1,2,3\n".encode())


def titles(header: str, *rows: str, keys: Sequence[str] = ()) -> list[str]:
    data = "\n".join((header, *rows, "")).encode()
    found = CsvRows(keys).parse(BytesIO(data), "list.csv")
    return [one.title for one in found if isinstance(one, Document)]


def test_a_row_is_called_by_the_first_column_of_words_that_are_all_different() -> None:
    rows = "oral,12,cephalexin,first", "oral,13,doxycycline,second", "rectal,14,diclofenac,first"
    assert titles("way,code,substance,line", *rows) == ["cephalexin", "doxycycline", "diclofenac"]


def test_where_names_repeat_another_column_tells_the_rows_apart() -> None:
    rows = "Paracetamol,4 g,tablet", "Paracetamol,3 g,infusion", "Ibuprofen,3 g,tablet"
    told = ["Paracetamol, tablet", "Paracetamol, infusion", "Ibuprofen, tablet"]
    assert titles("drug,max daily dose,form", *rows) == told


def test_where_no_column_is_of_words_a_row_is_called_by_its_first_words() -> None:
    assert titles("a,b", "1,Paracetamol", "Ibuprofen,2", "3,4") == ["Paracetamol", "Ibuprofen"]


def test_the_columns_that_name_the_rows_may_be_told() -> None:
    rows = "A1,Paracetamol,tablet", "A2,Ibuprofen,gel"
    assert titles("code,drug,dose_form", *rows, keys=["dose form", "Drug"]) == [
        "tablet, Paracetamol",
        "gel, Ibuprofen",
    ]
    with pytest.raises(MalformedSource, match="no column 'brand'"):
        titles("code,drug,dose_form", *rows, keys=["brand"])


def test_the_format_of_told_columns_is_known_by_its_name() -> None:
    parser = by_name(KeyedRows(["drug", "form"]).name)
    assert isinstance(parser, KeyedRows)
    data = b"drug,form\nParacetamol,gel\n"
    (one,) = parser.parse(BytesIO(data), "list.csv")
    assert isinstance(one, Document)
    assert one.title == "Paracetamol, gel"
    with pytest.raises(MalformedSource, match=r"notes\.md is no table"):
        list(parser.parse(BytesIO(b"# Notes"), "notes.md"))


def test_a_question_is_a_heading_and_never_evidence() -> None:
    found = record_of(
        {"instruction": "What is gout?", "input": "", "output": "Urate."}, "a:1", "a-1"
    )

    assert isinstance(found, Document)
    assert found.title == "What is gout?"
    assert found.sections == (Section("Urate."),)


def test_the_id_of_a_dialogue_is_not_that_of_its_turns() -> None:
    turns = [{"id": 7, "question": q, "answer": "Rest."} for q in ("What?", "Why?")]

    found = [record_of(turn, f"a:{n}", f"a-{n}") for n, turn in enumerate(turns, start=1)]

    assert [record.id for record in found if isinstance(record, Document)] == ["a-1", "a-2"]


def test_a_long_question_is_shortened_at_a_sentence() -> None:
    question = "I have pain. " * 40

    found = record_of({"question": question, "answer": "Rest.", "title": "Pain"}, "a:1", "a-1")

    assert isinstance(found, Document)
    ((heading,),) = (section.path for section in found.sections)
    assert len(heading) <= 301
    assert heading.endswith("pain.…")


def test_records_of_text_keep_their_id_url_year_and_licence() -> None:
    row = {"_id": "x/1", "title": "Gout", "text": "Urate.", "url": "u", "date": "2019-02-03"}

    found = record_of({**row, "license": "CC0"}, "a:1", "a-1")

    assert found == Document(
        id="x-1",
        title="Gout",
        sections=(Section("Urate."),),
        year=2019,
        date="2019-02-03",
        url="u",
        licence="CC0",
    )


def test_a_row_that_is_not_text_is_a_drop_and_the_next_is_read() -> None:
    data = b"id,text\n1,Rest.\n2,caf\xe9 \xff\xff\n3,Walk.\n"

    one, bad, three = csv(data)

    assert [r.id for r in (one, three) if isinstance(r, Document)] == ["1", "3"]
    assert isinstance(bad, Drop)
    assert bad.where == "zh/a.csv:3"
    assert bad.reason in {"not GB18030", "neither UTF-8 nor GB18030"}


def test_a_quotation_that_never_ends_is_a_drop() -> None:
    (bad,) = csv(b'id,text\n1,"' + b"x" * 200_000 + b"\n")

    assert bad == Drop("zh/a.csv:2", "malformed row")


def test_a_quotation_that_does_not_end_with_its_cell_costs_no_row_but_its_own() -> None:
    rows = b'"Gammaxin,5 mg\nDeltaxin,6 mg\n"Zetaxin" forte,8 mg\n"Eta\nxin",9 mg\n'
    for end in (b"", b'"Iotaxin,1 mg\n"Kappaxin,2 mg\n'):
        first, delta, zeta, eta, *others = csv(b"drug,dose\n" + rows + end)
        assert [first, zeta] == [Drop(f"zh/a.csv:{n}", "malformed row") for n in (2, 4)]
        assert [one.id for one in (delta, eta) if isinstance(one, Document)] == ["a-3", "a-5"]
        assert others == [Drop(f"zh/a.csv:{n}", "malformed row") for n in (7, 8) if end]


def test_a_quotation_mark_of_a_tab_separated_table_is_a_character_where_it_encloses_no_cell() -> (
    None
):
    data = (
        'drug\tnote\nAspirin\t5" plaster\nIbuprofen\t"unclosed note\nCodeine\tx\nMorphine\ty"\n'
        'Iron\t"oral" or iv\nZinc\t"with ""meals"", at\nnight"\nRamipril\t"end\n'
    )
    assert [
        one.sections[0].text.partition("note: ")[2]
        for one in csv(data.encode(), "a.tsv")
        if isinstance(one, Document)
    ] == [
        '5" plaster',
        '"unclosed note',
        "x",
        'y"',
        '"oral" or iv',
        'with "meals", at night',
        '"end',
    ]


def test_a_row_with_more_cells_than_its_header_is_a_drop_and_blank_ones_are_none() -> None:
    data = b"drug,max daily\nIbuprofen,1,200 mg\nTramadol,400 mg,, \n"
    cut, whole = csv(data)
    assert cut == Drop("zh/a.csv:2", "malformed row")
    assert isinstance(whole, Document)
    assert whole.sections[0].text == "drug: Tramadol; max daily: 400 mg"


def test_a_gb18030_header_that_ends_in_one_chinese_character_is_known() -> None:
    data = "id,text,类\n1,少吃糖。,饮食\n".encode("gb18030")
    assert CsvRows().matches("a.csv", data)
    (found,) = csv(data)
    assert isinstance(found, Document)
    assert found.sections[0].text == "少吃糖。"


def test_a_line_without_end_is_malformed() -> None:
    with pytest.raises(MalformedSource, match="line of more than"):
        csv(b"id,text\n" + b"x" * (9 * 2**20))


@pytest.mark.parametrize("as_lines", [False, True])
def test_instruction_data_is_an_array_or_lines(as_lines: bool) -> None:
    rows: list[Any] = [{"instruction": "Q?", "input": "I", "output": "A."}, {"instruction": "Q"}, 3]
    text = "\n".join(map(json.dumps, rows)) if as_lines else json.dumps(rows, indent=1)

    found, empty, other = JsonRecords().parse(BytesIO(text.encode()), "zh/a.json")

    assert isinstance(found, Document)
    assert (found.id, found.title) == ("a-1", "Q? I")
    assert empty == Drop("zh/a.json:2", "empty answer")
    assert isinstance(other, Drop)
    assert other.reason == "not a JSON object"


@pytest.mark.parametrize(
    ("name", "head", "parser"),
    [
        ("a.csv", b"department,title,ask,answer\n1,2,3,4\n", "csv"),
        ("a.tsv", b"id\ttext\n1\tRest.\n", "csv"),
        ("a.csv", b"subject_id,hadm_id\n1,2\n", None),
        ("a.csv", b"AnswerID,Answer\nGARD_1,Rest.\n", "evaluation"),
        (
            "qrels.txt",
            b"1 1-Incorrect ADAM_0003147_Sec1.txt\n1 2-Related GARD_1.txt\n",
            "evaluation",
        ),
        ("beir/qrels/test.tsv", b"query-id\tcorpus-id\tscore\nq1\td1\t1\n", "evaluation"),
        ("beir/queries.jsonl", b'{"_id": "q1", "text": "Rest?", "metadata": {}}', "evaluation"),
        ("beir/corpus.jsonl", b'{"_id": "d1", "title": "T", "text": "Rest."}', "json-records"),
        ("a.json", b'[{"instruction": "Q", "output": "A"', "json-records"),
        ("a.json", b'[{"question": "Q", "options": {"A": "x"}, "answer": "A"}]', "evaluation"),
        ("a.json", b'{"question": "Q", "opa": "x", "cop": 1}', "evaluation"),
        ("a.jsonl", b'{"question": "Q", "answer": "A"}', "json-records"),
        ("a.jsonl", b'{"spam": 1}', None),
    ],
)
def test_a_table_of_text_is_told_from_a_test_by_its_fields(
    name: str, head: bytes, parser: str | None
) -> None:
    found = sniff_file(name, head)

    assert (found.name if found else None) == parser


def test_a_set_of_test_questions_never_becomes_evidence(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text('[{"question": "Q", "options": {"A": "x"}, "answer": "A"}]')

    (found,) = discover([path])
    assert not isinstance(found, Drop)
    (drop,) = read_records(found)

    assert isinstance(drop, Drop)
    assert drop.reason == "test questions or judgements, not evidence"


def test_a_parquet_corpus_keeps_wiki_headings(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    texts = ["Gout hurts.\n== Causes ==\nUrate.\n== References ==\nX.", ""]
    rows = {"id": ["7", "8"], "url": ["u", "v"], "title": ["Gout", "Empty"], "text": texts}
    path = tmp_path / "wiki.parquet"
    pq.write_table(pa.table({**rows, "other": [1, 2]}), path)

    (found,) = discover([path])
    assert not isinstance(found, Drop)
    gout, empty = read_records(found)

    assert gout == Document(
        id="7",
        title="Gout",
        sections=(Section("Gout hurts."), Section("Urate.", ("Causes",))),
        url="u",
    )
    assert isinstance(empty, Drop)
    assert empty.reason == "no text"


def read_parquet(path: Path, **columns: list[Any]) -> list[Record]:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns), path)
    (found,) = discover([path])
    assert not isinstance(found, Drop)
    return list(read_records(found))


def test_cells_of_a_parquet_table_are_told_whatever_their_type(tmp_path: Path) -> None:
    (found,) = read_parquet(
        tmp_path / "a.parquet",
        drug=["Codeine"],
        max_mg=[Decimal("240.00")],
        least=[Decimal("0.0000001")],
        for_children=[False],
        since=[date(2013, 6, 1)],
        seen=[datetime(2014, 7, 2)],
        routes=[["oral", "iv"]],
        doses=[{"adult": "30 mg", "child": None}],
        picture=[b"x"],
    )
    assert isinstance(found, Document)
    assert found.sections[0].text == (
        "drug: Codeine; max mg: 240.00; least: 0.0000001; for children: false; since: 2013-06-01;"
        " seen: 2014-07-02; routes: oral, iv; doses: adult: 30 mg"
    )


def test_a_parquet_text_may_be_a_list_of_paragraphs_and_its_date_a_date(tmp_path: Path) -> None:
    rows: dict[str, list[Any]] = {"title": ["Gout"], "text": [["It hurts.", "Urate."]]}
    rows["date"] = [date(2013, 6, 1)]
    (found,) = read_parquet(tmp_path / "a.parquet", **rows)
    assert isinstance(found, Document)
    assert (found.sections[0].text, found.date) == ("It hurts.\nUrate.", "2013-06-01")


def test_a_parquet_file_of_numbers_or_cut_short_is_a_drop(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"value": [1]}), tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:-20])

    found = [read_records(item) for item in discover([tmp_path]) if not isinstance(item, Drop)]

    assert [
        record.reason for records in found for record in records if isinstance(record, Drop)
    ] == [
        "no column of text",
        "malformed file",
    ]


def test_a_missing_package_is_named_with_the_command_that_brings_it() -> None:
    with pytest.raises(Unreadable, match=r'pip install "osler\[parquet\]"') as caught:
        require_package("no_such_module", "parquet", "a.parquet")
    assert caught.value.reason == "needs osler[parquet]"


def test_a_parquet_file_of_one_value_named_often_is_a_bomb(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    column = pa.DictionaryArray.from_arrays([0] * 20, ["iron " * 1_400_000])
    table = pa.table({"id": [str(n) for n in range(20)], "text": column})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd")

    (found,) = discover([tmp_path])
    assert not isinstance(found, Drop)
    reasons = [one.reason for one in read_records(found) if isinstance(one, Drop)]

    assert (tmp_path / "a.parquet").stat().st_size < 2**20
    assert reasons[-1] == "decompression bomb"
