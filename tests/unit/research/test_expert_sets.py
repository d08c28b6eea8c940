"""What the experts learn from: pages, abstracts, labels by place, spans, searches, and rows."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from expert_sets import (
    COVIDQA,
    LABELLED,
    SEARCHED,
    UNLABELLED,
    JudgedCase,
    PairQuestion,
    covid_cases,
    digest_of,
    pair_cases,
    read_labels,
    read_pair_questions,
    read_unlabelled,
)
from judge_rows import JudgeSampler, change_voice
from natural.published import MEDQUAD, DataSplit, hash_of

from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.retrieve.experts.judge import JudgedText

TEXT = "Gout is painful. Colchicine treats an attack of gout. Drink enough."


@pytest.fixture
def base(tmp_path: Path) -> KnowledgeBase:
    page = tmp_path / "pages.jsonl"
    page.write_text(json.dumps({"id": "gout", "title": "Gout", "content": TEXT}) + "\n")
    kb = KnowledgeBase.create(tmp_path / "kb")
    kb.add([page], source="web")
    return kb


def label(sentence: str, worth: float, digest: str = "") -> list[object]:
    start = TEXT.index(sentence)
    return [0, start, start + len(sentence), digest or digest_of(sentence)[:8], worth]


def write_labels(path: Path, *texts: list[object]) -> Path:
    row = {"question": "what helps gout", "part": "train", "document": "web:gout", "made": "read"}
    line = json.dumps({**row, "passages": ["web:gout#0"], "texts": texts})
    path.write_text(line + "\n", encoding="utf-8")
    return path


def test_labels_are_read_with_what_stands_around_each_sentence(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = write_labels(
        tmp_path / "labels.jsonl",
        label("Colchicine treats an attack of gout.", 1.0),
        label("Gout is painful.", 0.0),
    )
    (case,) = read_labels(file, base, "train", tmp_path)
    assert case.texts[0] == JudgedText(
        "Colchicine treats an attack of gout.", "Gout", "Gout is painful.", "Drink enough."
    )
    assert case.worth == (1.0, 0.0)
    assert read_labels(file, base, "dev", tmp_path) == []


def test_a_text_that_is_not_what_was_labelled_is_refused(
    base: KnowledgeBase, tmp_path: Path
) -> None:
    file = write_labels(tmp_path / "labels.jsonl", label("Gout is painful.", 0.0, "0" * 8))
    with pytest.raises(MalformedSource, match=r"labels.jsonl:1.*another text"):
        read_labels(file, base, "train", tmp_path)


def test_an_answer_s_first_sentences_stand_against_those_of_its_page_and_of_others() -> None:
    gout = PairQuestion(
        "medquad:1",
        "How is gout treated?",
        ("medquad:gout",),
        (
            "Colchicine treats an acute attack of gout. Rest of the joint helps as well in"
            " gout. A third sentence that is not taken.",
        ),
        ("Gout is a disease of the joints in adults.",),
        "Gout",
        "treatment",
    )
    lupus = PairQuestion(
        "medquad:2",
        "How is lupus treated?",
        ("medquad:lupus",),
        ("Lupus is treated with hydroxychloroquine.",),
        title="Lupus",
        kind="treatment",
    )
    case, _ = pair_cases([gout, lupus])
    assert [case.texts[at].sentence for at in case.places_worth(1, 1)] == [
        "Colchicine treats an acute attack of gout.",
        "Rest of the joint helps as well in gout.",
    ]
    assert case.texts[0].heading == "Gout > How is gout treated?"
    assert {case.texts[at].sentence for at in case.places_worth(0, 0)} == {
        "Gout is a disease of the joints in adults.",
        "Lupus is treated with hydroxychloroquine.",
    }


def test_background_and_methods_do_not_answer_and_results_are_left_out(tmp_path: Path) -> None:
    record = {
        "QUESTION": "Do splints help?",
        "CONTEXTS": ["Splints are common.", "We asked 40 patients.", "Pain fell by half."],
        "LABELS": ["BACKGROUND", "METHODS", "RESULTS"],
        "LONG_ANSWER": "Splints reduce pain.",
        "final_decision": "yes",
    }
    (tmp_path / "test_set.json").write_text(json.dumps({"99": record}))
    (one,) = read_pair_questions(tmp_path)
    assert one.right == ("Splints reduce pain.",)
    assert one.wrong == ("Splints are common.", "We asked 40 patients.")
    assert (one.verdict, one.held_out) == ("yes", True)


def test_searched_sentences_that_share_words_come_first_and_none_is_of_the_test_part(
    base: KnowledgeBase,
) -> None:
    asked = ["does colchicine help an attack of gout", "zzz"]
    (case,) = read_unlabelled(asked, base, DataSplit({}))
    assert (case.source, case.worth, case.texts[0].heading) == (UNLABELLED, (), "Gout")
    # The others are too short to be quoted.
    assert [text.sentence for text in case.texts] == ["Colchicine treats an attack of gout."]
    for name in ("gout", f"{MEDQUAD}:gout"):
        assert read_unlabelled(asked, base, DataSplit({hash_of(name): "test"})) == []


def test_the_sentence_of_a_span_answers_and_its_neighbours_are_left_out(tmp_path: Path) -> None:
    sentences = [f"Sentence number {word} stands in this article here." for word in "abcdefgh"]
    text = "A title of an article\n" + " ".join(sentences)
    asked = {
        "id": 1,
        "question": "Which one?",
        "answers": [{"text": "number d", "answer_start": text.index("number d")}],
    }
    content = {"data": [{"paragraphs": [{"context": text, "document_id": 5, "qas": [asked]}]}]}
    (tmp_path / "covid_qa.json").write_text(json.dumps(content))
    (case,) = covid_cases(tmp_path)
    assert case.worth == (1.0, *[0.0] * (len(case.texts) - 1))
    assert case.texts[0].sentence == sentences[3]
    assert sentences[2] not in {text.sentence for text in case.texts}
    assert case.document == "covid-qa:5"


def case_of(source: str, name: str) -> JudgedCase:
    texts = (JudgedText(f"{name} answers.", name), JudgedText(f"{name} is rare.", name))
    return JudgedCase(f"what about {name}?", source, texts, (1.0, 0.0), name)


def test_a_step_is_the_same_each_time_and_its_rows_are_full() -> None:
    cases = [case_of(LABELLED, "gout"), case_of(COVIDQA, "virus"), case_of(COVIDQA, "lungs")]
    sampler = JudgeSampler(cases, rows=4, texts=3, seed=3)
    assert sampler.draw_step(7) == sampler.draw_step(7)
    assert sampler.draw_step(7) != sampler.draw_step(8)
    for step in range(20):
        for row in sampler.draw_step(step):
            assert len(row.texts) == len(row.worth) == 3
            assert row.worth[0] == 1.0
            assert row.texts[0].sentence.endswith("answers.")


def test_what_a_search_found_is_asked_more_often_than_what_was_written_for_a_page() -> None:
    cases = [case_of(LABELLED, "gout"), case_of(SEARCHED, "found")]
    sampler = JudgeSampler(cases, rows=8, texts=2)
    rows = [row for step in range(50) for row in sampler.draw_step(step)]
    assert 0.5 < sum("found" in row.texts[0].sentence for row in rows) / len(rows) < 0.8


def test_rows_have_the_teacher_s_logits_and_unlabelled_ones_no_worth() -> None:
    known = replace(case_of(LABELLED, "gout"), taught=(2.0, -3.0))
    unknown = replace(case_of(UNLABELLED, "lupus"), worth=(), taught=(1.0, -1.0))
    sampler = JudgeSampler([known, unknown], rows=8, texts=3, vary=False)
    logits = dict(
        pair for case in (known, unknown) for pair in zip(case.texts, case.taught, strict=True)
    )
    kinds = set()
    for row in (row for step in range(10) for row in sampler.draw_step(step)):
        labelled = "gout" in row.texts[0].sentence
        kinds.add(labelled)
        own = len(row.texts) - row.taught.count(None)
        assert own >= 1
        assert row.taught[:own] == tuple(logits[text] for text in row.texts[:own])
        assert row.worth[own:] == (0.0,) * (3 - own)
        assert (None in row.worth[:own]) is not labelled
    assert kinds == {True, False}


def test_voices_change_how_it_is_asked_and_not_what() -> None:
    chance = random.Random(0)
    asked = "What is the dose of adrenaline in anaphylaxis?"
    said = {change_voice(asked, chance) for _ in range(200)}
    assert len(said) > 20
    for one in said:
        words = set(one.casefold().replace("?", "").split())
        assert len(words & set(asked.casefold().replace("?", "").split())) >= 5
