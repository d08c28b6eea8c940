"""Questions to ask next name sections that a search finds, and none twice."""

from __future__ import annotations

from osler.answer.suggested import MOST, suggest_questions
from osler.types import Locator, Passage, Question

ASKED = Question("", "How is gout treated in the acute attack?")


def passage(title: str, section: str, n: int = 0, **more: object) -> Passage:
    place = Locator(section=section)
    return Passage(f"book:{title}#{n}", "Words.", "book", title, place, **more)  # type: ignore[arg-type]


def test_a_question_is_made_of_a_section_and_what_it_is_about() -> None:
    found = [
        passage("Rheumatology", "Gout > Lowering uric acid"),
        passage("Ibuprofen | Notes of a site", "Use in pregnancy"),
        passage("Cardiology", "Heart failure > ACE inhibitors"),
        passage("Nephrology", "Stones > Diet"),
    ]
    made = suggest_questions(ASKED, found)
    assert made == [
        "Gout: lowering uric acid?",
        "Ibuprofen: use in pregnancy?",
        "Heart failure: ACE inhibitors?",
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
        passage("Rheumatology", "Gout > Diet", 1),
        passage("Rheumatology", "Gout > Diet", 2),
    ]
    assert suggest_questions(ASKED, found, [cited]) == ["Gout: diet?"]


def test_a_chinese_question_gets_chinese_ones() -> None:
    found = [passage("风湿病学", "痛风 > 饮食", language="zh")]
    asked = Question("", "痛风急性发作如何治疗？", language="zh")
    assert suggest_questions(asked, found) == ["痛风：饮食？"]
