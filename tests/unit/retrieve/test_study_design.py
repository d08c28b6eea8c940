"""What kind of evidence a text is, and what says so."""

from __future__ import annotations

import pytest

from osler.answer.evidence_table import DESIGNS, design_of, read_design, read_sample_size
from osler.types import Locator, Passage


def _passage(text: str = "Fever fell.", *, source: str = "research", kind: str = "") -> Passage:
    return Passage(f"{source}:1#0", text, source, "A title", Locator(kind=kind))


def _told(passage: Passage) -> tuple[str, str, str] | None:
    found = design_of(passage)
    return (found.design, found.by, found.said) if found else None


def test_the_record_says_it_before_the_source_and_the_source_before_the_text() -> None:
    text = "We randomly assigned 40 patients to one of two drugs."
    of_record = _passage(text, source="guideline", kind="Meta-Analysis")
    assert _told(of_record) == ("systematic-review", "record", "Meta-Analysis")
    assert _told(_passage(text, source="guideline")) == ("guideline", "source", "guideline")
    of_text = _passage(text, kind="Journal Article")
    assert _told(of_text) == ("randomised-trial", "text", "randomly assigned")


def test_a_review_that_calls_itself_systematic_is_one() -> None:
    title, kind = "Statins: a systematic review", Locator(kind="Review")
    one = Passage("research:1#0", "", "research", title, kind)
    assert _told(one) == ("systematic-review", "text", "systematic review")
    assert _told(_passage(kind="Review")) == ("narrative", "record", "Review")


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("We searched MEDLINE and Embase to May 2020.", "systematic-review"),
        ("Patients were randomised to aspirin or placebo.", "randomised-trial"),
        ("Rats received saline for a week.", "laboratory"),
        ("A 10-year-old boy came with fever.", "case-report"),
        ("A case-control study was done in two towns.", "case-control"),
        ("A cross-sectional study of nurses.", "cross-sectional"),
        ("A retrospective cohort study of births.", "cohort"),
        ("The intervention group had training.", "trial"),
        ("Here, we discuss new antibodies.", "narrative"),
        ("80例患者随机分为两组。", "randomised-trial"),
        ("本文为回顾性分析，随访两年。", "cohort"),
    ],
)
def test_the_words_say_it_where_no_field_does(text: str, design: str) -> None:
    found = read_design("", text)
    assert found is not None
    assert found.design == design
    assert found.said in text


def test_what_others_did_is_not_the_design() -> None:
    text = "BACKGROUND: Trials were randomised to end.\nMETHODS: We reviewed the records of 9 men."
    found = read_design("", text)
    assert found is not None
    assert found.design == "cohort"
    # A text that is all background is read none the less.
    found = read_design("", "BACKGROUND: A double-blind study.")
    assert found is not None
    assert found.design == "randomised-trial"


def test_nothing_is_guessed() -> None:
    assert read_design("Pain", "Pain is felt in the toe.") is None
    assert design_of(_passage("")) is None
    assert read_sample_size("The rate was 12% and the dose 40 mg.") is None
    assert read_sample_size("") is None


@pytest.mark.parametrize(
    ("text", "count", "words"),
    [
        ("A total of 922,074 beneficiaries were followed.", 922_074, "922,074"),
        ("BACKGROUND: 3000 women died.\nMETHODS: 41 women took part.", 41, "41"),
        ("Women (N=215) took part.", 215, "215"),
        ("One hundred and thirty-two patients had surgery.", 132, "One hundred and thirty-two"),
        ("From 1997 to 2003, 62 newborn patients were seen.", 62, "62"),
        ("共纳入 80 例。", 80, "80"),
        ("Of them 40% of patients fell; 7 very old men did not.", 7, "7"),
    ],
)
def test_a_sample_size_is_a_quote(text: str, count: int, words: str) -> None:
    size = read_sample_size(text)
    assert size is not None
    assert size.count == count
    assert text[size.start : size.end] == words


def test_designs_stand_in_the_order_of_what_rests_on_them() -> None:
    place = DESIGNS.index
    assert place("guideline") < place("randomised-trial") < place("cohort") < place("case-report")
