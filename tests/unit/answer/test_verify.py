"""A claim held against sentences: cases worked by hand, English and Chinese."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.verify import Verdict, weigh_claim
from osler.text import language_of
from osler.types import Hit, Locator, Passage

DOSE = "In adults the maximum oral dose of paracetamol is 4 g a day."
SAFE = "Warfarin should be avoided in pregnancy."


def hit_of(text: str, id: str) -> Hit:
    passage = Passage(id, text, id.split(":")[0], "Page", Locator(""), language=language_of(text))
    return Hit(passage, 1.0, 1, "", "test")


def held(claim: str, *texts: str) -> Verdict:
    hits: list[Hit] = [hit_of(text, f"book:page-{n}#0") for n, text in enumerate(texts)]
    return weigh_claim(claim, hits, language_of(claim)).verdict


DOSE_ZH = "成人口服对乙酰氨基酚每日最大剂量为4克。"
GOUT = "The trial had 130 patients with gout."
WORKS = "Warfarin works better than heparin."


@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        (DOSE, DOSE, "supported"),
        ("The maximum oral paracetamol dose in adults is 4000 mg daily.", DOSE, "supported"),
        ("In adults the maximum oral dose of paracetamol is 8 g a day.", DOSE, "contradicted"),
        ("In children the maximum oral dose of paracetamol is 4 g a day.", DOSE, "not stated"),
        ("The maximum dose of ibuprofen is 4 g a day.", DOSE, "not stated"),
        ("Warfarin is recommended in pregnancy.", SAFE, "contradicted"),
        ("Warfarin should be avoided in pregnancy.", SAFE, "supported"),
        ("Aspirin lowers fever.", "Aspirin does not lower fever.", "contradicted"),
        ("Heparin works better than warfarin.", WORKS, "not stated"),
        ("The trial had 120 patients with gout.", GOUT, "not stated"),
        ("Gout is caused by crystals of urate.", GOUT, "not stated"),
        (DOSE_ZH, DOSE_ZH, "supported"),
        ("成人口服对乙酰氨基酚每日最大剂量为8克。", DOSE_ZH, "contradicted"),
        ("妊娠期推荐使用华法林。", "妊娠期禁用华法林。", "contradicted"),
    ],
)
def test_what_a_sentence_says_of_a_claim(claim: str, text: str, verdict: Verdict) -> None:
    assert held(claim, text) == verdict


def test_evidence_on_both_sides_makes_a_claim_disputed_and_both_are_quoted() -> None:
    hits = [hit_of(DOSE, "book:a#0"), hit_of(DOSE.replace("4 g", "3 g"), "guideline:b#0")]
    found = weigh_claim(DOSE, hits, "en")
    assert found.verdict == "disputed"
    assert {one.supports: one.evidence.quote for one in found.said} == {
        True: DOSE,
        False: DOSE.replace("4 g", "3 g"),
    }


def test_a_passage_in_another_language_says_nothing_of_a_claim() -> None:
    assert held("妊娠期推荐使用华法林。", SAFE) == "not stated"


@given(st.integers(1, 900), st.integers(1, 900))
def test_a_claim_with_another_amount_is_never_supported(said: int, claimed: int) -> None:
    sentence = "Patients with gout take {} mg of colchicine."
    verdict = held(sentence.format(claimed), sentence.format(said))
    near = 0.99 * said <= claimed <= 1.01 * said
    assert (verdict == "supported") == near
    assert verdict != "not stated" or abs(said - claimed) <= 0.011 * max(said, claimed)


WORDS = ("gout", "fever", "urate", "kidney", "crystals", "joints", "pain")


@given(st.lists(st.sampled_from(WORDS), min_size=2, unique=True))
def test_every_sentence_supports_itself(words: list[str]) -> None:
    sentence = "Colchicine acts on " + " and ".join(words) + "."
    assert held(sentence, sentence) == "supported"


@pytest.mark.parametrize(
    "claim",
    [
        "In adults the maximum oral dose of ibuprofen is 4 g a day.",
        "In adults the maximum oral dose of paracetamol is 3 g an hour.",
        "In adults the minimum oral dose of paracetamol is 4 g a day.",
        "In adults the maximum oral course of paracetamol is 4 g a day.",
        "In adults the maximum oral dose of paracetamol is not 4 g a day.",
    ],
)
def test_a_claim_with_one_word_swapped_is_never_supported(claim: str) -> None:
    assert held(claim, DOSE) != "supported"


def test_every_word_of_a_claim_must_stand_in_one_sentence() -> None:
    said = "Colchicine relieves the pain of gout."
    assert held(said, "Colchicine relieves the pain of acute gout.") == "not stated"
    assert held("Colchicine relieves gout.", said) == "supported"
    assert held("Colchicine relieves gout in the knee.", said) == "not stated"
    assert held("Colchicine relieves gout.", "Colchicine is old. Gout has its own pain.") == (
        "not stated"
    )


def test_the_heading_of_a_sentence_belongs_to_it() -> None:
    passage = Passage(
        "book:x#0", "The daily dose is 500 mg, swallowed whole.", "book", "Colchicine"
    )
    hit = Hit(passage, 1.0, 1, "", "test")
    assert weigh_claim("The daily colchicine dose is 500 mg.", [hit], "en").verdict == "supported"
