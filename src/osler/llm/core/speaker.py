"""A model in one role, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.prompts import RenderedPrompt
from osler.trace import Run

T = TypeVar("T")


@dataclass(frozen=True)
class Speaker:
    model: LanguageModel
    role: str
    sampling: Sampling = field(default_factory=Sampling)
    constrains: bool = False
    """Whether the engine takes a grammar."""
    reasoning: int = 400
    """Characters that it may reason before an answer, under a grammar."""
    system: str = ""
    """What a system message says first; empty for none."""

    async def ask(
        self,
        prompt: RenderedPrompt,
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
        before = [Message("system", self.system)] if self.system else []
        messages = [*before, *shown, Message("user", prompt.text)]
        return await ask(
            self.model, messages, parse, sampling, run, role=self.role, prompt=prompt.identity
        )
