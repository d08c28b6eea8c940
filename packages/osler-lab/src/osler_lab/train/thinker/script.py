"""A run of KAG-Thinker, written down: every prompt with its reply, and what was decided.

The trajectories are made by the solver itself (`osler.methods.kag`), whose speakers and focuser are
listened to. So what a model is trained on is what the solver really asks, reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from osler.llm.core.ask import REPAIRS
from osler.llm.core.base import Completion, Message
from osler.llm.core.grammar import Grammar
from osler.llm.core.speaker import Speaker
from osler.methods.kag.focus import Focus, Focuser
from osler.prompts import RenderedPrompt
from osler.trace import BoundaryChecked, Calculated, Event, Focused, FormSolved, FormsPlanned, Run
from osler.types import Hit, Language

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exchange:
    """Prompt with the reply that counted: the last one, where it was repaired."""

    prompt: str
    """Its identity, as "kag/attempt@1f3a9c2e"."""
    asked: str
    reply: str
    """Without its thinking."""
    thinking: str
    read: bool
    """Whether the reply could be read."""

    @property
    def kind(self) -> str:
        """The prompt's own name: "attempt", "focus", "deduce"."""
        return self.prompt.partition("@")[0].removesuffix(".zh").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FocusedReferences:
    """References of a search, before the focuser reads them."""

    question: str
    references: tuple[str, ...]
    passages: tuple[str, ...]
    """Ids of the passages."""


Told = BoundaryChecked | Focused | Calculated | FormSolved | FormsPlanned
Line = Exchange | FocusedReferences | Told


@dataclass(frozen=True)
class Script:
    """Record of exchanges and decisions, in order. One run writes into it, one step at a time."""

    lines: list[Line] = field(default_factory=list)

    def note_event(self, event: Event) -> None:
        """The sink of the run: keeps the events that decide something."""
        if isinstance(event, BoundaryChecked | Focused | Calculated | FormSolved | FormsPlanned):
            self.lines.append(event)


@dataclass(frozen=True)
class RecordedSpeaker(Speaker):
    """A speaker whose exchanges are written down."""

    script: Script = field(default_factory=Script)

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
        """Asks like `Speaker.ask`, and writes the exchange down."""
        replies: list[Completion] = []
        read = False

        def record_reply(reply: Completion) -> T:
            replies.append(reply)
            return parse(reply)

        try:
            value = await Speaker.ask(
                self,
                prompt,
                record_reply,
                run,
                grammar=grammar,
                top=top,
                shown=shown,
                repairs=repairs,
            )
            read = True
            return value
        # Also after an error: a reply that could not be read belongs to the record.
        finally:
            if replies:
                last = replies[-1]
                exchange = Exchange(prompt.identity, prompt.text, last.text, last.thinking, read)
                self.script.lines.append(exchange)


@dataclass(frozen=True)
class RecordedFocuser(Focuser):
    """A focuser whose references are written down, each before the verdict on them."""

    script: Script = field(default_factory=Script)

    async def focus(
        self, question: str, hits: Sequence[Hit], language: Language, run: Run
    ) -> Focus:
        """Focuses like `Focuser.focus`, after writing the references down."""
        references = tuple(self.list_references(question, hits))
        ids = tuple(hit.passage.id for hit in hits)
        # Before the call, so that the verdict (`Focused`) follows its references.
        self.script.lines.append(FocusedReferences(question, references, ids))
        return await Focuser.focus(self, question, hits, language, run)


def record_speaker(speaker: Speaker, script: Script) -> RecordedSpeaker:
    """Copies a speaker so that its exchanges are written into the script."""
    return RecordedSpeaker(**vars(speaker), script=script)
