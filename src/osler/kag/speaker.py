"""A model in one role, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from osler.errors import MalformedOutput
from osler.llm.ask import ask
from osler.llm.base import Completion, LanguageModel, Message, Sampling
from osler.llm.grammar import Grammar
from osler.llm.spans import answer_span, tagged
from osler.prompts import Rendered
from osler.trace import Run

T = TypeVar("T")

UNKNOWN = frozenset({"", "unknown", "未知", "不知道", "i don't know"})
"""How a model says that what it was given does not tell."""
ECHOES = frozenset({"your answer", "the answer", "true/false", "你的答案", "答案"})
"""What stands in the boxes of the prompts themselves: small models give it back."""


@dataclass(frozen=True)
class Speaker:
    model: LanguageModel
    role: str
    sampling: Sampling = field(default_factory=Sampling)
    constrains: bool = False
    """Whether the engine takes a grammar."""
    reasoning: int = 400
    """Characters that it may reason before an answer, under a grammar."""

    async def ask(
        self,
        prompt: Rendered,
        parse: Callable[[Completion], T],
        run: Run,
        *,
        grammar: Grammar | None = None,
        top: int = 0,
        shown: Sequence[Message] = (),
    ) -> T:
        """The parsed reply to one prompt. Raises `MalformedOutput` after the repairs of `ask`.

        `shown`: turns that stand before it, as examples.
        """
        held = grammar if self.constrains else None
        sampling = replace(self.sampling, seed=run.rng.getrandbits(31), grammar=held, top=top)
        messages = [*shown, Message("user", prompt.text)]
        return await ask(
            self.model, messages, parse, sampling, run, role=self.role, prompt=prompt.identity
        )


def said(completion: Completion) -> str:
    r"""The reply's answer: inside `\boxed{}`, else inside `<answer>`; empty for "unknown", and
    where the prompt's own box is repeated.

    Raises `MalformedOutput` when there is neither.
    """
    text = completion.text
    span = answer_span(text) or tagged(text, "answer")
    if span is None:
        raise MalformedOutput(text, expected=r"<answer>\boxed{…}</answer>")
    answer = " ".join(text[slice(*span)].split())
    return "" if answer.casefold().rstrip(".。") in UNKNOWN | ECHOES else answer
