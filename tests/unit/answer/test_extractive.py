"""Quotes instead of words, or the plain statement that nothing was said."""

from osler.answer.extractive import NOTE, Extractive
from osler.retrieve.relevance import Overlap
from osler.testing.scripted import ScriptedModel
from osler.trace import Run
from osler.types import Authorship, Grounding, Hit, Passage, Question

QUESTION = Question("q", "Which drug treats anaphylaxis first?")
TEXT = (
    "Anaphylaxis begins within minutes. Adrenaline is the first drug that treats anaphylaxis."
    " Sleep well."
)
HITS = [Hit(Passage("book:a#0", TEXT, "book", "Emergencies"), 1.0, 1, "q", "book")]
THRESHOLD = {"en": 0.3, "zh": 0.3}


async def test_relevant_sentences_are_quoted_and_each_is_cited() -> None:
    answer = await Extractive(Overlap(), THRESHOLD).conclude(QUESTION, HITS, "", Run())
    assert answer.authorship is Authorship.EXTRACTIVE
    assert answer.grounding is Grounding.GROUNDED
    assert "Adrenaline is the first drug that treats anaphylaxis." in answer.text
    assert "Sleep well." not in answer.text
    assert answer.note == NOTE["en"]
    assert all(TEXT[e.start : e.end] == e.quote for e in answer.evidence)


async def test_below_the_threshold_nothing_is_quoted_and_it_says_so() -> None:
    strict = Extractive(Overlap(), {"en": 1.1, "zh": 1.1})
    answer = await strict.conclude(QUESTION, HITS, "", Run())
    assert answer.grounding is Grounding.ABSTAINED
    assert answer.note == "The evidence does not say."


async def test_without_evidence_it_abstains() -> None:
    answer = await Extractive(Overlap(), THRESHOLD).conclude(QUESTION, [], "", Run())
    assert answer.grounding is Grounding.ABSTAINED


async def test_an_option_is_chosen_by_the_likelihood_of_its_text_not_its_letter() -> None:
    choice = Question("q", QUESTION.text, ("cetirizine", "adrenaline", "aspirin"))
    model = ScriptedModel([], scores={"adrenaline": 0.4, "cetirizine": 0.1, "aspirin": 0.2})
    answer = await Extractive(Overlap(), THRESHOLD, model).conclude(choice, HITS, "", Run())
    assert answer.option == "B"
    assert "do not rely on it" in answer.note


async def test_likelihood_settles_between_sentences_of_like_relevance() -> None:
    """Two equal sentences but for a word: relevance ties, likelihood decides which comes first."""
    text = "Adrenaline treats anaphylaxis first. Cetirizine treats anaphylaxis first."
    hits = [Hit(Passage("book:b#0", text, "book", ""), 1.0, 1, "q", "book")]
    model = ScriptedModel([], scores={"Cetirizine treats anaphylaxis first.": 0.9}, probability=0.1)
    one = Extractive(Overlap(), THRESHOLD, model, statements=1)
    assert (await one.conclude(QUESTION, hits, "", Run())).text == (
        "Adrenaline treats anaphylaxis first. [1]"
    ), "the more relevant order weighs twice as much as likelihood"


async def test_chinese_is_quoted_in_chinese() -> None:
    text = "过敏性休克首选肌内注射肾上腺素。注意休息。"
    hits = [Hit(Passage("book:z#0", text, "book", "急救", language="zh"), 1.0, 1, "q", "book")]
    question = Question("q", "过敏性休克首选什么药物？", language="zh")
    answer = await Extractive(Overlap(), THRESHOLD).conclude(question, hits, "", Run())
    assert answer.text == "过敏性休克首选肌内注射肾上腺素。 [1]"
