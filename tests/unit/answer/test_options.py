"""Choosing an option by texts, by letters, or by what was written."""

import pytest

from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate
from osler.answer.options import OptionLetters, OptionTexts, letter_grammar
from osler.llm.core.base import Message
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Asked, Noted, Run
from osler.types import Hit, Language, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, TextOnly

QUESTION = Question(
    "q", "Which drug treats anaphylaxis first?", ("cetirizine", "adrenaline", "x y")
)
HITS = [Hit(Passage("book:a#0", "Adrenaline is first.", "book", "t"), 1.0, 1, "q", "book")]


async def test_texts_are_compared_by_their_mean_so_that_length_does_not_count() -> None:
    model = ScriptedModel([], scores={"x y": 0.5, "adrenaline": 0.4, "cetirizine": 0.3})
    run = Run()
    assert await OptionTexts(model).choose_option(QUESTION, HITS, run) == "C"
    assert [e.reply for e in run.events if isinstance(e, Asked)] == list(QUESTION.options)


async def test_letters_are_compared_where_the_model_scores() -> None:
    model = ScriptedModel([], scores={"A": 0.1, "B": 0.6, "C": 0.2})
    run = Run()
    assert await OptionLetters(model).choose_option(QUESTION, HITS, run) == "B"
    (prompt,) = {e.prompt for e in run.events if isinstance(e, Asked)}
    assert prompt.startswith("answer/letters@")


async def test_a_model_that_cannot_score_says_a_letter_under_its_grammar() -> None:
    script = ScriptedModel(["<answer>C</answer>"])
    assert await OptionLetters(TextOnly(script)).choose_option(QUESTION, HITS, Run()) == "C"
    assert script.samplings[0].grammar == letter_grammar("ABC")
    assert "A. cetirizine" in script.seen[0][0].content
    assert "Adrenaline is first." in script.seen[0][0].content


async def test_a_letter_is_written_under_the_grammar_where_that_is_wanted() -> None:
    """The model could be scored, and would then choose B."""
    script = ScriptedModel(["<answer>A</answer>"], scores={"B": 0.9})
    run = Run()
    assert await OptionLetters(script, written=True).choose_option(QUESTION, HITS, run) == "A"
    assert script.samplings[0].grammar == letter_grammar("ABC")
    assert [event.kind for event in run.events if isinstance(event, Asked)] == ["complete"]


async def test_model_without_grammars_is_asked_again_until_it_names_a_letter() -> None:
    script = ScriptedModel(["I would say adrenaline perhaps", "<answer>B</answer>"])
    chooser = OptionLetters(TextOnly(script), constrains=False)
    assert await chooser.choose_option(QUESTION, HITS, Run(), said="It is urgent.") == "B"
    assert script.samplings[0].grammar is None
    assert script.seen[0][1] == Message("assistant", "It is urgent.\n")


async def test_no_letter_is_no_option_and_it_is_said() -> None:
    run = Run()
    chooser = OptionLetters(TextOnly(ScriptedModel(["none"] * 3)), constrains=False)
    assert await chooser.choose_option(QUESTION, HITS, run) is None
    assert next(e.text for e in run.events if isinstance(e, Noted)).startswith("no option")


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_an_answer_says_how_its_option_was_chosen(language: Language) -> None:
    gate = EvidenceGate(OverlapRelevance())
    question = Question("q", "Which drug?", ("a", "b"), language)
    model = ScriptedModel([], scores={"B": 0.9})
    quoting = ExtractiveComposer(gate, model, options=OptionLetters(model))
    answer = await quoting.conclude(question, HITS, "", Run())
    assert answer.option == "B"
    assert OptionLetters(model).selection_note(language) in answer.note
