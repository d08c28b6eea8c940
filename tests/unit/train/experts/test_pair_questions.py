"""Questions with right and wrong texts, from files of the published shapes."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from osler.errors import MalformedSource
from osler.train.experts.pair_questions import PairQuestion, read_pair_questions

PAGE = """<?xml version="1.0"?>
<Document id="{id}" source="GHR" url="https://example.org">
<Focus>{focus}</Focus>
<QAPairs>
 <QAPair pid="1"><Question qid="{id}-1" qtype="information">What is {focus} ?</Question>
  <Answer>{focus} is a disorder of the   joints.
   It begins in childhood.</Answer></QAPair>
 <QAPair pid="2"><Question qid="{id}-2" qtype="treatment">How is {focus} treated ?</Question>
  <Answer>{focus} is treated with rest and with splints at night.</Answer></QAPair>
 <QAPair pid="3"><Question qid="{id}-3" qtype="outlook">What is its outlook ?</Question>
  <Answer></Answer></QAPair>
</QAPairs></Document>"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "corpora" / "medquad"
    folder.mkdir(parents=True)
    with tarfile.open(folder / "MedQuAD_xml.tar.gz", "w:gz") as packed:
        for id, focus in (("01", "Arthropathy"), ("02", "Coxitis")):
            text = PAGE.format(id=id, focus=focus).encode()
            member = tarfile.TarInfo(f"3_GHR_QA/{id}.xml")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text))
    (folder / "qrels_LiveQAMed2017.txt").write_text("1 4-Excellent GHR_02_Sec1.txt\n")
    snippets = [
        {"text": "Milvexian inhibits factor XIa in plasma.", "document": "http://x/pubmed/7"},
        {"text": "Too short.", "document": "http://x/pubmed/8"},
    ]
    question = {"id": "b1", "type": "factoid", "body": "What does it inhibit?"}
    golden = {"questions": [{**question, "snippets": snippets}]}
    (tmp_path / "bioasq_other_golden.json").write_text(json.dumps(golden))
    record = {
        "QUESTION": "Do splints help?",
        "CONTEXTS": ["Splints are common.", "We asked 40 patients.", "Pain fell by half."],
        "LABELS": ["BACKGROUND", "METHODS", "RESULTS"],
        "LONG_ANSWER": "Splints reduce pain.",
        "final_decision": "yes",
    }
    (tmp_path / "test_set.json").write_text(json.dumps({"99": record}))
    return tmp_path


def question_of(data: Path, id: str) -> PairQuestion:
    return {one.id: one for one in read_pair_questions(data)}[id]


def test_the_other_answers_of_a_page_do_not_answer(data: Path) -> None:
    one = question_of(data, "medquad:GHR_01_1")
    assert one.right[0].text.startswith("Arthropathy is a disorder of the joints. It begins")
    assert [text.why for text in one.wrong] == ["same page"]
    assert one.wrong[0].text.startswith("Arthropathy is treated")
    assert (one.kind, one.right[0].title) == ("information", "Arthropathy")


def test_another_answer_to_the_same_question_is_not_wrong(tmp_path: Path) -> None:
    twice = PAGE.replace("How is {focus} treated ?", "what is {focus} ?")
    with tarfile.open(tmp_path / "MedQuAD_xml.tar.gz", "w:gz") as packed:
        text = twice.format(id="01", focus="Arthropathy").encode()
        member = tarfile.TarInfo("3_GHR_QA/01.xml")
        member.size = len(text)
        packed.addfile(member, io.BytesIO(text))
    assert [one.wrong for one in read_pair_questions(tmp_path)] == [(), ()]


def test_an_empty_answer_makes_no_question(data: Path) -> None:
    assert "medquad:GHR_01_3" not in {one.id for one in read_pair_questions(data)}


def test_a_page_that_was_judged_for_another_test_set_is_held_out(data: Path) -> None:
    assert question_of(data, "medquad:GHR_02_1").held_out
    assert not question_of(data, "medquad:GHR_01_1").held_out


def test_a_page_is_bound_to_its_subject_so_that_no_other_page_of_it_is_trained_on(
    data: Path,
) -> None:
    documents = question_of(data, "medquad:GHR_01_2").documents
    assert documents == ("medquad:arthropathy", "medquad:GHR_01")


def test_gold_snippets_answer_and_their_articles_are_the_documents(data: Path) -> None:
    one = question_of(data, "bioasq:b1")
    assert [text.text for text in one.right] == ["Milvexian inhibits factor XIa in plasma."]
    assert one.documents == ("PMID:7", "PMID:8")


def test_background_and_methods_do_not_answer_and_results_are_left_out(data: Path) -> None:
    one = question_of(data, "pubmedqa:99")
    assert [text.text for text in one.right] == ["Splints reduce pain."]
    assert [text.text for text in one.wrong] == ["Splints are common.", "We asked 40 patients."]
    assert one.held_out


def test_a_folder_without_any_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match="holds none of MedQuAD"):
        read_pair_questions(tmp_path)
