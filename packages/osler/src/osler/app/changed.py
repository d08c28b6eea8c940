"""Evidence of a recorded answer that has changed in the knowledge base since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from osler.build.online_sources import cached_passage
from osler.errors import UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.types import Answer, Passage


@dataclass(frozen=True, slots=True)
class ChangedEvidence:
    """A cited passage that is no longer what was cited."""

    number: int
    """Of the evidence, from 1."""
    passage: str
    state: Literal["changed", "gone"]
    """changed: the quoted words are not in it any more; gone: there is no such passage."""

    def __str__(self) -> str:
        return (
            f"[{self.number}] this evidence changed since: {self.passage}"
            if self.state == "changed"
            else f"[{self.number}] this evidence is gone since: {self.passage}"
        )


def find_changed(
    settings: Settings, kb: KnowledgeBase, answer: Answer
) -> tuple[ChangedEvidence, ...]:
    """The evidence that changed, in order. Blocks.

    Passages of sources that the knowledge base does not hold (the graph, online services) are not
    compared: nothing is known of them.
    """
    held = set(kb.sources)
    found = []
    for number, one in enumerate(answer.evidence, 1):
        if one.passage.source not in held:
            continue
        now = _read_now(settings, kb, one.passage.id)
        if now is None:
            found.append(ChangedEvidence(number, one.passage.id, "gone"))
        elif one.quote not in now.text:
            found.append(ChangedEvidence(number, one.passage.id, "changed"))
    return tuple(found)


def _read_now(settings: Settings, kb: KnowledgeBase, id: str) -> Passage | None:
    try:
        return kb.get(id)
    except UnknownPassage:
        return cached_passage(settings, id)
