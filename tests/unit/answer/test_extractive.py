"""Quotes instead of words, or the plain statement that nothing was said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.extractive import NOTE, ExtractiveComposer, describe_sureness
from osler.answer.gate import EvidenceGate
from osler.retrieve.relevance import CoverageRelevance, OverlapRelevance
from osler.trace import Run
from osler.types import Authorship, Grounding, Hit, Language, Passage, Question
from osler_lab.testing.scripted import ScriptedModel

QUESTION = Question("q", "Which drug treats anaphylaxis first?")
TEXT = (
    "Anaphylaxis begins within minutes. Adrenaline is the first drug that treats anaphylaxis."
    " Repeat it after five minutes. Lay the patient flat and raise the legs."
)


def hit(text: str, number: int = 0, title: str = "", language: Language = "en") -> Hit:
    passage = Passage(f"book:a#{number}", text, "book", title, language=language)
    return Hit(passage, 1.0, number + 1, "q", "book")


HITS = [hit(TEXT)]
COVERAGE = CoverageRelevance(lambda terms: dict.fromkeys(terms, 1.0))
GATE = EvidenceGate(OverlapRelevance())


async def test_relevant_sentences_are_quoted_and_each_is_cited() -> None:
    answer = await ExtractiveComposer(GATE, statements=2).conclude(QUESTION, HITS, "", Run())
    assert answer.authorship is Authorship.EXTRACTIVE
    assert answer.grounding is Grounding.GROUNDED
    assert "Adrenaline is the first drug that treats anaphylaxis." in answer.text
    assert answer.sureness is not None
    assert answer.note == f"{NOTE['en']} {describe_sureness(answer.sureness, 'en')}"
    assert all(TEXT[e.start : e.end] == e.quote for e in answer.evidence)


async def test_a_passage_that_is_about_something_else_is_no_evidence_and_it_says_so() -> None:
    other = [hit("The train to the coast leaves at noon. It treats no one.")]
    answer = await ExtractiveComposer(GATE).conclude(QUESTION, other, "", Run())
    assert answer.grounding is Grounding.ABSTAINED
    assert answer.note == "The evidence does not say."


async def test_a_passage_about_another_disease_is_not_quoted_before_the_right_one() -> None:
    """Both say "first" and "drug"; only one covers the disease as well."""
    gout = hit("Colchicine is the drug that treats gout first.", 1)
    answer = await ExtractiveComposer(GATE).conclude(QUESTION, [gout, *HITS], "", Run())
    assert answer.evidence[0].passage.id == "book:a#0"


async def test_without_evidence_it_abstains() -> None:
    answer = await ExtractiveComposer(GATE).conclude(QUESTION, [], "", Run())
    assert answer.grounding is Grounding.ABSTAINED


async def test_an_option_is_chosen_by_the_likelihood_of_its_text_not_its_letter() -> None:
    choice = Question("q", QUESTION.text, ("cetirizine", "adrenaline", "aspirin"))
    model = ScriptedModel([], scores={"adrenaline": 0.4, "cetirizine": 0.1, "aspirin": 0.2})
    answer = await ExtractiveComposer(GATE, model).conclude(choice, HITS, "", Run())
    assert answer.option == "B"
    assert "do not rely on it" in answer.note


async def test_chinese_is_quoted_in_chinese() -> None:
    text = "过敏性休克首选肌内注射肾上腺素。\n注意休息。"
    question = Question("q", "过敏性休克首选什么药物？", language="zh")
    quoting = ExtractiveComposer(GATE, statements=1)
    answer = await quoting.conclude(question, [hit(text, language="zh")], "", Run())
    assert answer.text == "过敏性休克首选肌内注射肾上腺素。[1]"


async def test_coverage_is_the_share_of_the_question_by_rarity() -> None:
    """ "anaphylaxis" tells 3, "drug" and "treats" 1 each: 3/5, 2/5 and all."""
    rare = {"anaphylaxis": 3.0}
    coverage = CoverageRelevance(lambda terms: {term: rare.get(term, 1.0) for term in terms})
    texts = ["anaphylaxis", "a drug that treats", "Drug treats anaphylaxis.", "tea"]
    found = await coverage.relevance("Which drug treats anaphylaxis?", texts)
    assert found == pytest.approx((0.6, 0.4, 1.0, 0.0))


@given(st.text(), st.lists(st.text(), max_size=4))
async def test_coverage_lies_between_nothing_and_all(question: str, texts: list[str]) -> None:
    found = await COVERAGE.relevance(question, texts)
    assert len(found) == len(texts)
    assert all(0 <= value <= 1 for value in found)
