"""Asks a judge, greedily, and once more where its verdict cannot be read.

A judgement must repeat, so that chance has no part in it. What could not be read twice is no
verdict: it is noted in the run with the reply and its reason, and never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from osler.errors import MalformedOutput
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, Sampling
from osler.llm.core.grammar import Grammar
from osler.prompts import RenderedPrompt
from osler.trace import Noted, Run

T = TypeVar("T")

TOKENS = 1_000
"""Tokens of a judgement with its reasons; what the model thinks before it has its own allowance."""
UNREAD = "a verdict could not be read: "
"""What the note of such a one begins with."""


def judge_sampling(tokens: int = TOKENS, *, seed: int = 0) -> Sampling:
    """The sampling of every judge; `tokens` where the settings allow for more."""
    return Sampling(0.0, max(tokens, TOKENS), seed=seed, top=0)


async def ask_judge(
    judge: Speaker,
    prompt: RenderedPrompt,
    parse: Callable[[Completion], T],
    run: Run,
    *,
    grammar: Grammar | None = None,
) -> T | None:
    """The judgement; `None` where it could not be read twice, which is noted with the reply."""
    try:
        return await judge.ask(prompt, parse, run, grammar=grammar, repairs=1)
    except MalformedOutput as error:
        run.emit(Noted(f"{UNREAD}{error.message}"))
        return None


def unread_verdicts(run: Run) -> tuple[str, ...]:
    """The verdicts of a run that could not be read: what was expected, and the reply."""
    notes = (event.text for event in run.events if isinstance(event, Noted))
    return tuple(note.removeprefix(UNREAD) for note in notes if note.startswith(UNREAD))
