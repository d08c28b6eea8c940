"""A model in one role, and asking it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from osler.llm.core.ask import REPAIRS, ask
from osler.llm.core.base import Adapted, Completion, LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar
from osler.prompts import RenderedPrompt
from osler.trace import Run

T = TypeVar("T")


@dataclass(frozen=True)
class Speaker:
    """A model, its role in a run, and its decoding settings."""

    model: LanguageModel
    role: str
    sampling: Sampling = field(default_factory=Sampling)
    constrains: bool = False
    """Set where the engine enforces grammars."""
    reasoning: int = 400
    """Characters that it may reason before an answer, under a grammar."""
    system: str = ""
    """Text of the system message; empty for none."""

    async def ask(
        self,
        prompt: RenderedPrompt,
        parse: Callable[[Completion], T],
        run: Run,
        *,
        grammar: Grammar | None = None,
        top: int = 0,
        shown: Sequence[Message] = (),
        repairs: int = REPAIRS,
    ) -> T:
        """Returns the parsed reply to one prompt. Raises `MalformedOutput` after the repairs of
        `ask`.

        `shown`: turns that stand before it, as examples.
        """
        enforced = grammar if self.constrains else None
        # A seed of its own for each call, drawn from the run: equal runs draw equal ones.
        sampling = replace(
            self.sampling,
            seed=run.rng.getrandbits(31),
            grammar=enforced,
            top=top,
            adapter=find_adapter(self.model, prompt),
        )
        before = [Message("system", self.system)] if self.system else []
        messages = [*before, *shown, Message("user", prompt.text)]
        return await ask(
            self.model,
            messages,
            parse,
            sampling,
            run,
            role=self.role,
            prompt=prompt.identity,
            repairs=repairs,
        )


def find_adapter(model: LanguageModel, prompt: RenderedPrompt) -> str:
    """Returns the name of the prompt where the model has an adapter for it; else nothing."""
    known = model.adapters if isinstance(model, Adapted) else frozenset()
    return prompt.name if prompt.name in known else ""
