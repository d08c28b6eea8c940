"""The steps of TC-RAG's machine: one decision each, read out of replies; and its summaries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from osler.answer.abstention import read_draft
from osler.errors import MalformedOutput
from osler.llm.core.ask import complete
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.spans import span_tokens
from osler.llm.reading.actions import read_actions
from osler.methods.tcrag.actions import ParsedAction, move_of
from osler.methods.tcrag.monitor import Draft
from osler.methods.tcrag.moves import OfferedMoves
from osler.methods.tcrag.stack import MemoryStack
from osler.prompts import render_prompt
from osler.trace import Run
from osler.types import Language


class ActionReader(Protocol):
    """Parser of a reply into its one action, or its several. Raises `MalformedOutput`."""

    def __call__(
        self, reply: str, *, tools: Collection[str]
    ) -> ParsedAction | tuple[ParsedAction, ...]: ...


@dataclass(frozen=True, slots=True)
class MachineStep:
    """One decision, with the data to value and trace it."""

    i: int
    parsed: ParsedAction
    completion: Completion
    context: tuple[Message, ...]
    acted_on: bool = False
    """Whether another action of the same reply comes after it."""

    def monitored_draft(self) -> Draft:
        """The action's own text and tokens: its tag does not count for the state value (§5.2)."""
        start, end = self.parsed.start, self.parsed.end
        tokens = span_tokens(self.completion.tokens, (start, end))
        return Draft(self.completion.text[start:end], tokens, self.context)


def read_steps(
    read: ActionReader,
    completion: Completion,
    context: tuple[Message, ...],
    offer: OfferedMoves,
    first: int,
) -> tuple[MachineStep, ...]:
    """The steps of a reply, numbered from `first`, up to the first that is not offered.

    Raises `MalformedOutput` without any.
    """
    found = read(completion.text, tools=offer.tools)
    parsed = found if isinstance(found, tuple) else (found,)
    allowed = [*takewhile(lambda one: move_of(one.action) in offer.moves, parsed)]
    if not allowed:
        expected = f"one of {', '.join(sorted(offer.moves))}"
        raise MalformedOutput(completion.text, expected=expected)
    return tuple(
        MachineStep(first + n, one, completion, context, acted_on=n + 1 < len(allowed))
        for n, one in enumerate(allowed)
    )


async def write_summary(
    model: LanguageModel, memory: MemoryStack, sampling: Sampling, run: Run
) -> str:
    """A summary of the top of the memory by a model of its own."""
    question = memory.question
    prompt = render_prompt(
        "tcrag/summarise", question.language, question=question.text, text=memory.top.text
    )
    asked = [Message("user", prompt.text)]
    reply = await complete(model, asked, sampling, run, role="summariser", prompt=prompt.identity)
    return " ".join(reply.text.split())


async def ask_conclusion(
    model: LanguageModel,
    context: Sequence[Message],
    sampling: Sampling,
    run: Run,
    *,
    role: str,
    language: Language,
) -> str:
    """The Conclusion of a run whose steps are spent; empty where the model writes none.

    Raises `BudgetExceeded`.
    """
    prompt = render_prompt("tcrag/close", language)
    turns = [*context, Message("user", prompt.text)]
    reply = await complete(model, turns, sampling, run, role=role, prompt=prompt.identity)
    found = read_actions(reply.text, ())
    said = [one.text for one in found if one.kind in ("conclusion", "untagged")]
    return read_draft(said[-1], run) if said else ""
