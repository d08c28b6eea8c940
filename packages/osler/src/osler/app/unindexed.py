"""Vectors that are still to be made: how long that takes, and what an answer says meanwhile."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from osler.answer import NOTHING_SAID
from osler.types import Grounding, Language, Solution

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase
    from osler.kb.encoders.base import Encoder

# Passages whose encoding is timed: with MiniLM about a second.
_TIMED = 32

_WORDS: dict[Language, str] = {
    "en": "Passages without a vector yet, searched by words alone: {:,}.",
    "zh": "{:,} 个段落还没有向量：对它们只按词语检索。",
}


def note_unindexed(solution: Solution, count: int) -> Solution:
    """The solution, whose note names the passages that were found by words alone, if any."""
    if not count:
        return solution
    answer = solution.answer
    words = _WORDS[answer.language].format(count)
    abstained = answer.grounding is Grounding.ABSTAINED
    said = answer.note or (NOTHING_SAID[answer.language] if abstained else "")
    note = f"{said} {words}" if said else words
    return replace(solution, answer=replace(answer, note=note))


def estimate_seconds(kb: KnowledgeBase, encoder: Encoder, source: str, count: int) -> float:
    """Seconds that this machine needs for `count` vectors, by timing some of `source`."""
    passages = islice(chain.from_iterable(kb.read_documents(source)), _TIMED)
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    encoder.encode(texts[:1], kind="passage")  # what is loaded at the first call is no part of it
    began = time.perf_counter()
    encoder.encode(texts, kind="passage")
    return (time.perf_counter() - began) * count / max(1, len(texts))
