"""Questions with right and wrong texts, from files of the published shapes."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest

from osler.errors import MalformedSource
from osler.train.experts.hard_negatives import add_hard_negatives
from osler.train.experts.pair_batches import PairSampler
from osler.train.experts.pair_questions import CandidateText, PairQuestion, read_pair_questions

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


class WordEncoder:
    """Vectors of word counts, so that texts with the same words are near each other."""

    identity, dimension, languages = "words", 64, frozenset({"en"})

    def encode(self, texts: list[str], *, kind: str) -> np.ndarray:
        rows = np.full((len(texts), self.dimension), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace("?", "").replace(".", "").split():
                rows[row, sum(word.encode()) % self.dimension] += 1
        found: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return found


def asked(id: str, text: str, answer: str, kind: str = "", page: str = "") -> PairQuestion:
    documents = (page or id,)
    return PairQuestion(id, text, "medquad", documents, (CandidateText(answer),), (), kind)


def test_the_nearest_answers_of_the_same_kind_about_another_subject_are_hard_negatives() -> None:
    questions = [
        asked("a", "How is gout treated?", "Gout is treated with colchicine.", "treatment"),
        asked("b", "How is lupus treated?", "Lupus is treated with colchicine.", "treatment"),
        asked("c", "What is rickets?", "Rickets is a disease of bone.", "information"),
    ]
    first, *_ = add_hard_negatives(questions, WordEncoder())  # type: ignore[arg-type]
    assert [text.text for text in first.wrong] == ["Lupus is treated with colchicine."]
    assert first.wrong[0].why == "another subject"


def test_an_answer_of_its_own_page_is_no_hard_negative() -> None:
    questions = [
        asked("a", "How is gout treated?", "Gout is treated with rest.", page="p"),
        asked("b", "Who treats gout in winter?", "Gout is treated by doctors.", page="p"),
    ]
    assert all(not one.wrong for one in add_hard_negatives(questions, WordEncoder()))  # type: ignore[arg-type]


def test_the_answer_to_the_same_question_elsewhere_is_no_hard_negative() -> None:
    questions = [
        asked("a", "How is gout treated?", "Gout is treated with rest."),
        asked("b", "How is gout treated?", "Colchicine and rest help in gout."),
    ]
    assert all(not one.wrong for one in add_hard_negatives(questions, WordEncoder()))  # type: ignore[arg-type]


def test_a_step_is_the_same_each_time_and_its_first_text_is_right(data: Path) -> None:
    questions = read_pair_questions(data)
    rights = {text.text for one in questions for text in one.right}
    sampler = PairSampler(questions, rows=4, texts=5, seed=3)
    assert sampler.draw_step(7) == sampler.draw_step(7)
    assert sampler.draw_step(7) != sampler.draw_step(8)
    for step in range(20):
        for row in sampler.draw_step(step):
            assert len(row.texts) == 5
            assert any(row.texts[0].text in right for right in rights)
            assert row.texts[0].text not in {text.text for text in row.texts[1:]}
