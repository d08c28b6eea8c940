"""Questions to ask next name sections that a search finds, and none twice."""

from __future__ import annotations

import pytest

from osler.sources.catalogue import TABLE
from osler.types import Locator, Passage, Question
from osler_serve.suggested import MOST, suggest_questions

ASKED = Question("", "How is gout treated in the acute attack?")


def passage(title: str, section: str, text: str = "Words.", **more: object) -> Passage:
    place = Locator(section=section)
    return Passage(f"book:{title}#{section}", text, "book", title, place, **more)  # type: ignore[arg-type]


def test_a_question_is_made_of_a_section_and_what_it_is_about() -> None:
    found = [
        passage("Rheumatology", "Gout > Lowering uric acid"),
        passage("Ibuprofen | Notes of a site", "Use in pregnancy"),
        passage("Cardiology", "Heart failure > ACE inhibitors"),
        passage("Nephrology", "Stones > Diet"),
    ]
    made = suggest_questions(ASKED, found)
    assert made == [
        "Gout: what about lowering uric acid?",
        "Ibuprofen: what about use in pregnancy?",
        "Heart failure: what about ACE inhibitors?",
    ]
    assert len(made) == MOST


def test_what_is_cited_asked_empty_of_meaning_or_foreign_is_left_out() -> None:
    cited = passage("Rheumatology", "Gout > Colchicine")
    found = [
        cited,
        passage("Rheumatology", "Gout > Acute attack"),
        passage("Gout", "References"),
        passage("Gout", ""),
        passage("风湿病学", "痛风 > 饮食", language="zh"),
        passage("Rheumatology", "Gout > Diet"),
        passage("Rheumatology", "Gout > Diet", "Other words."),
    ]
    assert suggest_questions(ASKED, found, [cited]) == ["Gout: what about diet?"]


def test_a_row_of_a_table_whose_section_is_a_file_s_name_makes_no_question() -> None:
    place = Locator(section="csv doses", kind=TABLE)
    row = Passage("ward:csv-doses-2#0", "drug: Gout mix; dose: 1", "ward", "Gout", place)
    assert suggest_questions(ASKED, [row]) == []


def test_beside_an_answer_nothing_of_another_subject_is_asked() -> None:
    bleep = Question("", "which bleep does the night nurse carry")
    cited = passage("ward", "Ward 7 protocol > Night staff")
    found = [
        cited,
        passage("Paediatrics", "Croup > Treatment"),
        passage("ward", "Ward 7 protocol > Hypoglycaemia"),
        passage("Infection", "Tuberculosis > Diagnosis"),
    ]
    assert suggest_questions(bleep, found, [cited]) == [
        "Ward 7 protocol: what about hypoglycaemia?"
    ]
    asked = Question("", "痛风急性发作如何治疗？", language="zh")
    quoted = passage("风湿病学", "痛风 > 急性期", language="zh")
    others = [passage("内科", f"{one} > 诊断", language="zh") for one in ("糖尿病", "痛风性肾病")]
    assert suggest_questions(asked, others, [quoted]) == ["痛风性肾病如何诊断？"]


def test_a_chinese_question_gets_chinese_ones() -> None:
    sections = ("饮食", "诊断与分级", "不良反应", "与利尿剂合用", "尿酸的控制目标")
    found = [passage("风湿病学", f"痛风 > {one}", language="zh") for one in sections]
    asked = Question("", "痛风急性发作如何治疗？", language="zh")
    made = [*suggest_questions(asked, found), *suggest_questions(asked, found[3:])]
    assert made == [
        "痛风的饮食有哪些要点？",
        "痛风如何诊断与分级？",
        "痛风的不良反应有哪些？",
        "痛风与利尿剂合用要注意什么？",
        "痛风：尿酸的控制目标有哪些要点？",
    ]


@pytest.mark.parametrize(
    ("subject", "leaf", "made"),
    [
        (
            "Gestational diabetes",
            "Diagnosis and treatment",
            "How is gestational diabetes diagnosed and treated?",
        ),
        ("Addison disease", "Prevention", "How is Addison disease prevented?"),
        ("Burns", "Assessment", "How are Burns assessed?"),
        ("Lithium (medication)", "Adverse effects", "What are the adverse effects of Lithium?"),
        ("Epilepsy", "Long-term treatment", "What is the long-term treatment of Epilepsy?"),
        (
            "Ketoacidosis",
            "Potassium during treatment",
            "Ketoacidosis: what about potassium during treatment?",
        ),
        (
            "Anticoagulation: a guide",
            "Who should be treated",
            "Anticoagulation: who should be treated?",
        ),
        ("Asthma", "What causes it?", "Asthma: what causes it?"),
    ],
)
def test_headings_become_questions_as_people_ask_them(subject: str, leaf: str, made: str) -> None:
    found = [passage(subject, leaf, "Screening for gestational diabetes. See Addison disease.")]
    assert suggest_questions(ASKED, found) == [made]


def test_the_question_itself_is_no_question_to_ask_next() -> None:
    assert suggest_questions(ASKED, [passage("Gout", "Treatment")]) == []
