"""Formats of one JSON object a line, and the reader below them."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from osler.errors import MalformedSource
from osler.sources.formats.json_lines import first_keys, read_items, read_objects
from osler.sources.formats.json_records import GuidelineJsonl, MedragJsonl
from osler.sources.formats.registry import sniff_file
from osler.sources.formats.wikis import Wikiextractor
from osler.sources.records import Document, Drop, Parser, Record, Section


def parse(parser: Parser, *records: dict[str, Any]) -> list[Record]:
    data = "\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    return list(parser.parse(BytesIO(data.encode()), "f.jsonl"))


def test_a_bad_line_is_a_drop_with_its_number_and_the_next_is_read() -> None:
    data = b'\xef\xbb\xbf{"a": 1}\n\nnot json\n[1]\n\xff\xfe{}\n{"a": 2}'

    assert list(read_objects(BytesIO(data), "f")) == [
        ("f:1", {"a": 1}),
        Drop("f:3", "not JSON"),
        Drop("f:4", "not a JSON object"),
        Drop("f:5", "not UTF-8"),
        ("f:6", {"a": 2}),
    ]


def test_deeply_nested_json_is_a_drop() -> None:
    assert list(read_objects(BytesIO(b'{"a":' + b"[" * 100_000), "f")) == [Drop("f:1", "not JSON")]


def test_the_keys_of_an_object_are_told_from_its_beginning() -> None:
    assert first_keys(b'{"id": 1, "x": {"title": 2}, "text": "cut of') == {"id", "x", "text"}
    assert first_keys(b"[1, 2]") == frozenset()
    assert first_keys(b"") == frozenset()


def test_a_medrag_snippet_is_a_document() -> None:
    record = {
        "id": "pubmed_7_0",
        "title": "A title",
        "content": "The text.",
        "contents": "A title. The text.",
        "PMID": 7,
        "section": "RESULTS",
    }

    assert parse(MedragJsonl(), record) == [
        Document(
            id="pubmed_7_0",
            title="A title",
            sections=(Section("The text.", ("RESULTS",)),),
            url="https://pubmed.ncbi.nlm.nih.gov/7/",
            code="PMID:7",
        )
    ]


def test_a_snippet_without_a_title_is_called_by_its_pmid() -> None:
    (document,) = parse(MedragJsonl(), {"id": "a", "title": "", "content": "T.", "PMID": 7})

    assert isinstance(document, Document)
    assert document.title == "PMID 7"


def test_a_flashrag_passage_has_its_title_on_the_first_line() -> None:
    (document,) = parse(MedragJsonl(), {"id": 3, "contents": '"Aspirin"\nIt thins the blood.'})

    assert isinstance(document, Document)
    assert (document.id, document.title) == ("3", "Aspirin")
    assert document.sections == (Section("It thins the blood."),)


@pytest.mark.parametrize(
    ("record", "reason"),
    [({"content": " "}, "no text"), ({"id": "a", "content": " \n"}, "no text")],
)
def test_a_snippet_without_text_is_a_drop(record: dict[str, Any], reason: str) -> None:
    assert parse(MedragJsonl(), record) == [Drop("f.jsonl:1", reason)]


def test_headings_of_a_wiki_page_become_paths_and_empty_ones_go() -> None:
    text = (
        "Lead.\n== Signs ==\nPain.\n=== In children ===\nCrying.\n"
        "== References ==\n== History ==\nX.\n== See also ==\nY."
    )

    (document,) = parse(Wikiextractor(), {"id": "5", "url": "u", "title": "Gout", "text": text})

    assert isinstance(document, Document)
    assert document.sections == (
        Section("Lead."),
        Section("Pain.", ("Signs",)),
        Section("Crying.", ("Signs", "In children")),
        Section("X.", ("History",)),
    )
    assert document.url == "u"


def test_an_empty_wiki_page_is_a_drop() -> None:
    page = {"id": "5", "url": "u", "title": "Gout", "text": "== A ==\n"}

    assert parse(Wikiextractor(), page) == [Drop("f.jsonl:1", "no text")]


def test_a_guideline_is_cut_at_its_markdown_headings_without_repeating_its_title() -> None:
    record = {
        "id": "ab12",
        "source": "who",
        "title": "Malaria",
        "clean_text": "# Malaria\n\nScope.\n\n## Treatment\n\nGive **artemether**.",
        "raw_text": "…",
        "url": "https://example.org",
    }

    (document,) = parse(GuidelineJsonl(), record)

    assert isinstance(document, Document)
    assert document.sections == (Section("Scope."), Section("Give artemether.", ("Treatment",)))
    assert (document.id, document.kind, document.url) == (
        "ab12",
        "guideline",
        "https://example.org",
    )


def test_a_record_without_id_is_called_by_its_place() -> None:
    (snippet,) = parse(MedragJsonl(), {"content": "T."})
    (guideline,) = parse(GuidelineJsonl(), {"title": "T", "clean_text": "x"})

    assert isinstance(snippet, Document)
    assert isinstance(guideline, Document)
    assert (snippet.id, guideline.id) == ("f-1", "f-1")


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"id": "a", "title": "T", "clean_text": ""}, "no text"),
        ({"title": "T"}, "no text"),
    ],
)
def test_a_guideline_that_lacks_something_is_a_drop(record: dict[str, Any], reason: str) -> None:
    assert parse(GuidelineJsonl(), record) == [Drop("f.jsonl:1", reason)]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"id": "a", "title": "t", "content": "c", "contents": "t c"}', "medrag-jsonl"),
        ('{"id": "a", "contents": "t"}', "medrag-jsonl"),
        (
            '{"id": "a", "source": "who", "title": "t", "clean_text": "' + "x" * 5000,
            "guideline-jsonl",
        ),
        (
            '{"id": "a", "revid": "", "url": "u", "title": "t", "text": "' + "x" * 5000,
            "wikiextractor",
        ),
        ('{"wikipedia_title": "A", "text": ["x"]}', "kilt"),
        ('{"id": "a", "clean_text": "t", "injected_text": "t"}', "evaluation"),
        ('{"question": "q"}', None),
    ],
)
def test_each_schema_is_told_by_its_keys(line: str, name: str | None) -> None:
    parser = sniff_file("f.json", line.encode()[:4096])

    assert (parser.name if parser else None) == name


def test_items_of_a_large_array_come_one_by_one() -> None:
    entries = [{"n": n, "text": "糖尿病" * 2000} for n in range(50)]
    document = {"skip": {"entry": [1]}, "entry": entries, "after": 1.5}
    data = json.dumps(document, ensure_ascii=False).encode()

    assert list(read_items(BytesIO(data), "entry", "f")) == entries


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"entry": [1, 2', b'{"entry" 1}', b"\xff\xfe", b'{"a":']
)
def test_json_that_breaks_off_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedSource, match="not a JSON document"):
        list(read_items(BytesIO(data), "entry", "f"))


def test_an_object_without_the_array_has_no_items() -> None:
    assert list(read_items(BytesIO(b'{"a": 1, "entry": "x"}'), "entry", "f")) == []
