"""What a state value is read from: a reply's tokens, or a second reading."""

from __future__ import annotations

from math import log

import pytest

from osler.errors import CapabilityMissing
from osler.llm.core.base import Message
from osler.methods.tcrag.stack import Cppl, Draft, FrameKind, MemoryStack, SurenessMonitor, Uct
from osler.trace import Asked, Run
from osler.types import Answer, Question, Sureness
from osler_lab.testing.scripted import ScriptedModel, tokens_of

QUESTION = Question("q", "What does amiodarone do to warfarin?")
TEXT = "It slows the clearance of warfarin."
CONTEXT = (Message("user", QUESTION.text),)
SURE = Answer(sureness=Sureness(0.9, "test@0"))


def memory() -> MemoryStack:
    stack = MemoryStack(QUESTION)
    stack.push(FrameKind.OBSERVATION, f"[1] Interactions: {TEXT}")
    return stack


async def test_perplexity_is_conditioned_on_the_query_alone() -> None:
    """Eq. 4's M_bottom. The model copies: after the observation it would be surer of the text."""
    model, run = ScriptedModel([], scores={TEXT: 1 / 4}), Run()
    valued = await Cppl(model).state_value(Draft(TEXT), memory(), run)
    assert valued == pytest.approx(4.0)
    whole = "\n".join(frame.text for frame in memory().frames)
    copied = await model.score(whole, TEXT)
    assert sum(t.logprob for t in copied.tokens) > len(copied.tokens) * log(1 / 4)


async def test_generated_tokens_are_not_read_again() -> None:
    model, run = ScriptedModel([]), Run()
    draft = Draft(TEXT, tokens_of(TEXT, 0.5), CONTEXT)
    valued = await Uct(model).state_value(draft, memory(), run)
    assert valued == pytest.approx(len(draft.tokens) / 2 * log(2))
    assert run.events == []


async def test_text_that_was_not_generated_is_scored_in_its_conversation() -> None:
    model, run = ScriptedModel([], scores={TEXT: 0.5}), Run()
    valued = await Uct(model).state_value(Draft(TEXT, (), CONTEXT), memory(), run)
    assert valued == pytest.approx(len(tokens_of(TEXT, 0.5)) / 2 * log(2))
    assert [(e.role, e.prompt) for e in run.events if isinstance(e, Asked)] == [("monitor", "uct")]


async def test_without_tokens_and_a_second_reading_there_is_no_value() -> None:
    with pytest.raises(CapabilityMissing, match="uct needs"):
        await Uct(object()).state_value(Draft(TEXT), memory(), Run())


@pytest.mark.parametrize(("answer", "value"), [(None, 1.0), (Answer(), 1.0), (SURE, 0.1)])
async def test_sureness_is_how_likely_the_evidence_does_not_answer(
    answer: Answer | None, value: float
) -> None:
    """A text that no expert judges is not sure at all."""
    draft = Draft(TEXT, answer=answer)
    assert await SurenessMonitor().state_value(draft, memory(), Run()) == pytest.approx(value)
