"""Laws of every parser: whatever the bytes, a record, a drop or `MalformedSource`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedSource
from osler.kb.ingest.chunk import document_passages
from osler.sources.formats import markdown
from osler.sources.formats.registry import FOLDER_PARSERS, PARSERS, FolderParser, sniff_file
from osler.sources.records import Document, Drop, Parser, Record
from osler.text import clean_text
from osler_serve.clinic.records.fhir import Fhir

PIECES = [
    b"<PubmedArticleSet>", b"<PubmedArticle>", b"<MedlineCitation><PMID>1</PMID><Article>",
    b"<ArticleTitle>T</ArticleTitle><Abstract><AbstractText Label='A'>x</AbstractText></Abstract>",
    b"</Article></MedlineCitation></PubmedArticle>", b"</PubmedArticleSet>", b"<!DOCTYPE a [",
    b"<!ENTITY x 'y'>", b"]>", b"&x;", b"&nbsp;", b"<?xml version='1.0' encoding='utf-16'?>",
    b"<Document id='1' source='S'>", b"<QAPair><Question>q</Question><Answer>a</Answer></QAPair>",
    b"</Document>", b"PMID- 1\n", b"TI  - t\n", b"      more\n", b"AB  - a\n",
    b'{"id": "1", "title": "t", "content": "c"}', b'{"id": 1, "clean_text": "# a\\n\\ud800"}',
    b'{"id": "x", "url": [], "title": "t", "text": "== a ==\\nb"}', b"[Term]\n", b"id: A:1\n",
    b'def: "d\\" [', b"name: \x00n\n", b"is_a: A:1 ! n\n", b"relationship: x\n", b"# H\n", b"```\n",
    b"**b** ", b"[a](b)", b"<b>", b"<!--", b"<html><body><h2>x</h2>", b"<p hidden>", b"<td>",
    b"---\ntitle: x\n---\n", b"\xff", b"\x00", b"\xe7\x97\x85", b"\r\n", b" ", b"\n", b"text. ",
    b"<article><front/><body><sec><title>x</title><p>", b"</p></sec></body></article>", b"<td>",
    b"<mediawiki><page><title>a</title><id>1</id><revision><text>{{a|[[b]] ", b"}}</text>",
    b"</revision></page></mediawiki>", b"<document><metadata/><content><para>", b"</content>",
    b"<Version><Section Name='Scope'><Field Name='a'><FieldValue Value='&lt;p&gt;'/>", b"|}\n",
    b"id,title,text\n", b'1,"a\n', b'[{"question": "q", "answer": "a"}', b'{"query": {"pages": [',
    b'{"wikipedia_title": "a", "text": ["Section::::b.:c"]}', b"%PDF-1.4\n", b"PAR1", b"PK\x03\x04",
    b'{"resourceType": "Bundle", "entry": [', b"]}", b",", "<篇名>x\n".encode(),
]  # fmt: skip
data = st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join)


def check(records: list[Record]) -> None:
    for record in records:
        if isinstance(record, Document):
            assert re.fullmatch(r"[\w.\-]+", record.id)
            assert record.sections
            for section in record.sections:
                assert section.text == clean_text(section.text) != ""
            for passage in document_passages(record, "book"):
                f"{passage.id}{passage.heading}{passage.locator}".encode()
        else:
            assert record.reason if isinstance(record, Drop) else record.document
            record.where.encode()


def run(parse: Callable[[], list[Record]]) -> None:
    with suppress(MalformedSource):
        check(parse())


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
@given(data=data)
def test_a_parser_fails_only_as_it_promises(parser: Parser, data: bytes) -> None:
    run(lambda: list(parser.parse(BytesIO(data), "a/b.x")))


@given(name=st.text(max_size=12), head=data)
def test_sniffing_never_fails(name: str, head: bytes) -> None:
    parser = sniff_file(name, head)

    assert parser is None or parser in PARSERS


FIELDS = """
id code coding display system text status subject patient reference valueQuantity value
unit component birthDate name gender clinicalStatus reaction manifestation period start"""
fields = st.sampled_from(FIELDS.split())
texts = st.sampled_from(["", "a", "2001-02-03", "Patient/1", "final", "\ud800", "病\x00"])
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=4),
    max_leaves=8,
)
resources = st.builds(
    lambda kind, rest: {**rest, "resourceType": kind},
    st.sampled_from(["Patient", "Condition", "Observation", "MedicationRequest", "Medication"])
    | anything,
    st.dictionaries(fields, anything, max_size=6),
)
entries = st.lists(st.builds(lambda r: {"resource": r}, resources) | anything, max_size=6)


@given(entries=entries)
def test_no_shape_of_a_fhir_resource_is_a_crash(entries: list[Any]) -> None:
    bundle = json.dumps({"resourceType": "Bundle", "entry": entries}).encode()

    run(lambda: list(Fhir().parse(BytesIO(bundle), "b.json")))


ROWS = [
    b"C1|ENG|P|L|PF|S|Y|A||||MSH|PT|C|Gout|0|N||\n", b"C1|A|AT||MSH|text|N||\n",
    b"C1|\n", b"\xff|\n",
    b"C1|A|SCUI|PAR|C2|A|SCUI|isa|R||MSH|MSH|||N||\n",
    b"C2|ENG|P|L|PF|S|Y|A||||X|PT|C||0|N||\n",
    b"subject_id,hadm_id,icd_code,drug,dob,anchor_age,admittime\n", b"1,2,x,y,2000-01-01,3,2001\n",
    b'"', b"1,2\n", b"\x00,\x00,\n", b",,,\n", "٣,४,x\n".encode(), b"1" * 30 + b",2,c,d,e,f,g\n",
]  # fmt: skip
table = st.lists(st.sampled_from(ROWS), max_size=8).map(b"".join)
NAMES = """MRCONSO.RRF MRDEF.RRF MRREL.RRF MRSTY.RRF MRSAB.RRF patients.csv admissions.csv
diagnoses_icd.csv PRESCRIPTIONS.csv d_icd_diagnoses.csv"""
tables = st.dictionaries(st.sampled_from(NAMES.split()), table)


@pytest.mark.parametrize("parser", FOLDER_PARSERS, ids=lambda parser: parser.name)
@given(tables=tables)
def test_a_folder_of_tables_fails_only_as_it_promises(
    parser: FolderParser, tables: dict[str, bytes]
) -> None:
    with TemporaryDirectory() as folder:
        for name, rows in tables.items():
            Path(folder, name).write_bytes(rows)
        run(lambda: list(parser.parse_folder(Path(folder))))


MARKS = (
    "<b> |<!-- x|</p>|&amp;|&lt|{: .x}|^|[a](b)|![a](b)|**|__|*|_|\\|\\#|~~~|```|\n| |word|#|é|~|`"
)
marked = st.lists(st.sampled_from(MARKS.split("|")), max_size=3).map("".join)


@given(marked)
def test_a_text_in_which_no_mark_begins_has_none_to_take_out(text: str) -> None:
    whole = markdown._strip_marks(markdown._without_html(text))
    assert markdown._without_marks(text) == whole
    fenced = any(markdown._FENCE.match(line) for line in text.split("\n"))
    assert markdown._may_fence(text) or not fenced
