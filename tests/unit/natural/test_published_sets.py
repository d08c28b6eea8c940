"""Published questions with their gold documents; a split that divides one is refused."""

import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from natural.published import (
    DataSplit,
    add_corpora,
    hash_of,
    part_of_document,
    read_searches,
    read_split,
)

from osler.errors import BadConfig, MalformedSource
from osler.kb.base import KnowledgeBase

PAGE = """<?xml version="1.0"?>
<Document id="{id}" source="GHR"><Focus>Gout</Focus><QAPairs>
 <QAPair pid="1"><Question qtype="treatment">What treats Gout ?</Question>
  <Answer>Colchicine
   relieves an attack.</Answer></QAPair>
 <QAPair pid="2"><Question qtype="outlook">What is its outlook ?</Question><Answer/></QAPair>
</QAPairs></Document>"""


def test_questions_have_the_documents_of_their_answers(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "MedQuAD_xml.tar.gz", "w:gz") as packed:
        for id in ("01", "02"):
            text = PAGE.format(id=id).encode()
            member = tarfile.TarInfo(f"3_GHR_QA/{id}.xml")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text))
    snippets = [
        {"text": "Milvexian inhibits factor XIa in plasma.", "document": "http://x/pubmed/7"},
        {"text": "Too short.", "document": "http://x/pubmed/8"},
    ]
    asked = {"type": "factoid", "body": "What does it inhibit?"}
    golden = [{**asked, "id": "b1", "snippets": snippets}, {**asked, "id": "b2"}]
    (tmp_path / "bioasq_other_golden.json").write_text(json.dumps({"questions": golden}))
    (tmp_path / "test_set.json").write_text(json.dumps({"99": {"QUESTION": "Do splints help?"}}))
    found = {one.id: (one.text, one.documents, set(one.gold)) for one in read_searches(tmp_path)}
    assert found == {
        # Asked of two pages: both are gold.
        "medquad:GHR_01_1": (
            "What treats Gout ?",
            ("medquad:gout", "medquad:GHR_01", "medquad:GHR_02"),
            {"GHR_01_Sec1", "GHR_02_Sec1"},
        ),
        "bioasq:b1": ("What does it inhibit?", ("PMID:7", "PMID:8"), {"PMID:7", "PMID:8"}),
        "pubmedqa:99": ("Do splints help?", ("PMID:99",), {"PMID:99"}),
    }


def test_a_corpus_that_is_not_there_is_told(tmp_path: Path) -> None:
    with (
        KnowledgeBase.create(tmp_path / "kb") as kb,
        pytest.raises(MalformedSource, match="lacks one of MedQuAD"),
    ):
        add_corpora(kb, tmp_path)


def test_a_document_that_the_split_does_not_list_has_a_part_by_its_hash() -> None:
    parts = [part_of_document(f"covid-qa:{number}") for number in range(200)]
    assert parts == [part_of_document(f"covid-qa:{number}") for number in range(200)]
    assert parts.count("train") > parts.count("test") > parts.count("dev") > 0


@dataclass(frozen=True)
class Item:
    id: str
    documents: tuple[str, ...] = ()


def test_an_item_that_the_split_divides_is_refused() -> None:
    split = DataSplit({hash_of("q"): "train", hash_of("d"): "test"})
    with pytest.raises(BadConfig, match="not in one part"):
        split.part_of(Item("q", ("d",)))


def test_an_item_with_an_unknown_document_is_refused() -> None:
    with pytest.raises(BadConfig, match="not in one part"):
        DataSplit({hash_of("q"): "train"}).part_of(Item("q", ("new",)))


def test_an_unknown_item_has_no_part() -> None:
    assert DataSplit({}).part_of(Item("q", ("d",))) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"train": []}', '{"train": ["a"], "dev": ["a"], "test": []}']
)
def test_a_file_that_is_no_split_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(BadConfig):
        read_split(path)
