"""What a state value is read from: a reply's tokens, a second reading, or attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log

import pytest

from osler.errors import CapabilityMissing
from osler.llm.core.base import Attended, Message, TokenScore
from osler.methods.tcrag.monitor import (
    AttentionMonitor,
    Cppl,
    Draft,
    EntropyMonitor,
    Metric,
    TokenMonitor,
    low_probability,
    mean_uct,
)
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.testing.scripted import ScriptedModel, tokens_of
from osler.trace import Asked, Run
from osler.types import Question

QUESTION = Question("q", "What does amiodarone do to warfarin?")
TEXT = "It slows the clearance of warfarin."
CONTEXT = (Message("user", QUESTION.text),)


@dataclass
class Watching:
    """Reads a text with its attention: each token looks at the one before it alone."""

    read: list[tuple[object, str]] = field(default_factory=list)

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        self.read.append((context, text))
        tokens = tokens_of(text, 0.5)
        weights = tuple(tuple(float(j == i - 1) for j in range(i)) for i in range(len(tokens)))
        return Attended(tokens, (0.5,) * len(tokens), weights)


def memory() -> MemoryStack:
    stack = MemoryStack(QUESTION)
    stack.push(FrameKind.OBSERVATION, f"[1] Interactions: {TEXT}")
    return stack


async def test_perplexity_is_conditioned_on_the_query_alone() -> None:
    """Eq. 4's M_bottom. The model copies: after the observation it would be surer of the text."""
    model, run = ScriptedModel([], scores={TEXT: 1 / 4}), Run()
    valued = await Cppl(model).state_value(Draft(TEXT), memory(), run)
    assert valued.value == pytest.approx(4.0)
    whole = "\n".join(frame.text for frame in memory().frames)
    copied = await model.score(whole, TEXT)
    assert sum(t.logprob for t in copied.tokens) > len(copied.tokens) * log(1 / 4)


async def test_generated_tokens_are_not_read_again() -> None:
    model, run = ScriptedModel([]), Run()
    draft = Draft(TEXT, tokens_of(TEXT, 0.5), CONTEXT)
    valued = await TokenMonitor(model).state_value(draft, memory(), run)
    assert valued.value == pytest.approx(len(draft.tokens) / 2 * log(2))
    assert run.events == []


async def test_text_that_was_not_generated_is_scored_in_its_conversation() -> None:
    model, run = ScriptedModel([], scores={TEXT: 0.05}), Run()
    monitor = TokenMonitor(model, "low-prob", low_probability)
    valued = await monitor.state_value(Draft(TEXT, (), CONTEXT), memory(), run)
    assert valued.value == 1.0
    assert [(e.role, e.prompt) for e in run.events if isinstance(e, Asked)] == [
        ("monitor", "low-prob")
    ]


async def test_the_mean_variant_does_not_grow_with_the_text() -> None:
    monitor = TokenMonitor(ScriptedModel([]), "uct-mean", mean_uct)
    values = [
        (await monitor.state_value(Draft(text, tokens_of(text, 0.5)), memory(), Run())).value
        for text in (TEXT, TEXT * 5)
    ]
    assert values == pytest.approx([log(2) / 2] * 2)


async def test_entropy_is_exact_where_the_distributions_are_shown() -> None:
    model = Watching()
    valued = await EntropyMonitor(model).state_value(Draft(TEXT, (), CONTEXT), memory(), Run())
    assert (valued.value, valued.exact) == (0.5 * len(tokens_of(TEXT, 0.5)), True)
    assert model.read == [(CONTEXT, TEXT)]


async def test_entropy_from_the_likeliest_tokens_is_marked_as_an_estimate() -> None:
    tokens = (TokenScore("It", 0, 2, log(0.5), (("It", log(0.5)), ("He", log(0.5)))),)
    monitor = EntropyMonitor(ScriptedModel([]))
    valued = await monitor.state_value(Draft("It", tokens), memory(), Run())
    assert valued.value == pytest.approx(log(2))
    assert not valued.exact


@pytest.mark.parametrize("metric", ["uct", "uct-entropy"])
async def test_without_tokens_and_a_second_reading_there_is_no_value(metric: Metric) -> None:
    monitor = EntropyMonitor(object()) if metric == "uct-entropy" else TokenMonitor(object())
    with pytest.raises(CapabilityMissing, match=f"{metric} needs"):
        await monitor.state_value(Draft(TEXT), memory(), Run())


async def test_attention_is_the_share_of_tokens_that_nothing_looks_back_at() -> None:
    model = Watching()
    valued = await AttentionMonitor(model).state_value(Draft(TEXT, (), CONTEXT), memory(), Run())
    # Seven tokens: six are looked at, by one of the 6, 5, … 1 after them; shares 1/6 to 1.
    received = [1 / n for n in range(6, 0, -1)]
    mean = sum(received) / 6
    assert valued.value == pytest.approx(sum(r / mean < 0.6 for r in received) / 6)
    assert 0 < valued.value < 1
