"""Prompt → reply → value. The only repair loop in the house."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from osler.errors import MalformedOutput
from osler.llm.base import Completion, LanguageModel, Likelihood, Message, Sampling, Scored
from osler.trace import Asked, Run

T = TypeVar("T")

REPAIRS = 2
"""How often a reply that does not parse is asked for again."""


async def complete(
    model: LanguageModel,
    messages: Sequence[Message],
    sampling: Sampling,
    run: Run,
    *,
    role: str,
    prompt: str,
    repaired: str = "",
) -> Completion:
    """One completion, paid for and traced. `prompt` is the prompt's identity."""
    completion = await model.complete(messages, sampling)
    run.spend(completion.usage)
    run.emit(Asked(role, "complete", prompt, completion.text, completion.usage, repaired))
    return completion


async def score(
    model: Likelihood,
    context: Sequence[Message] | str,
    text: str,
    run: Run,
    *,
    role: str,
    prompt: str = "",
) -> Scored:
    """Scores a given text, paid for and traced."""
    scored = await model.score(context, text)
    run.spend(scored.usage)
    run.emit(Asked(role, "score", prompt, text, scored.usage))
    return scored


async def ask(
    model: LanguageModel,
    messages: Sequence[Message],
    parse: Callable[[Completion], T],
    sampling: Sampling,
    run: Run,
    *,
    role: str,
    prompt: str,
) -> T:
    """The parsed reply. A malformed one is shown to the model with what was expected.

    Raises `MalformedOutput` after `REPAIRS` further tries.
    """
    said, wrong = list(messages), ""
    for attempt in range(REPAIRS + 1):
        completion = await complete(
            model, said, sampling, run, role=role, prompt=prompt, repaired=wrong
        )
        try:
            return parse(completion)
        except MalformedOutput as error:
            if attempt == REPAIRS:
                raise
            wrong = error.message
            # Another seed: at temperature 0 as above it the same reply would come again.
            sampling = replace(sampling, seed=sampling.seed + 1)
            said = [
                *messages,
                Message("assistant", completion.text),
                Message("user", f"That reply could not be read: {wrong}. Write it again."),
            ]
    raise AssertionError("unreachable: the last attempt returns or raises")
