"""Identifiers in a model's words: only those that the passages found have are shown.

A model invents references that look right. What stands in none of the passages is taken out of the
sentence, and a caution says how many there were; quoted sentences are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer.cautions import Review, ReviewingComposer
from osler.sources.citable import find_citable_ids
from osler.types import Answer, Authorship, Caution, Hit, Language, Question, Statement

_INSTEAD = {"en": "[reference not found]", "zh": "[文献未找到]"}
_LEFT_OUT = {
    "en": "Identifiers of works in the model's words that none of the passages found has: {n}."
    " They were left out.",
    "zh": "模型的文字中有 {n} 个文献标识不见于任何检索到的段落，已略去。",
}


@dataclass(frozen=True)
class ReferenceCheckingComposer(ReviewingComposer):
    """A composer whose written answers name no work that was not found."""

    async def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], Review]:
        return (
            hits,
            lambda answer: (
                drop_unknown_ids(answer, hits)
                if answer.authorship is Authorship.WRITTEN
                else answer
            ),
        )


def drop_unknown_ids(answer: Answer, hits: Sequence[Hit]) -> Answer:
    """The answer without identifiers that no passage has; with one caution where there were any."""
    known = _known_ids((*hits, *(one.hit for one in answer.evidence)))
    dropped = 0
    statements: list[Statement] = []
    for statement in answer.statements:
        text, count = _drop_ids(statement.text, known, answer.language)
        dropped += count
        if text:
            statements.append(replace(statement, text=text))
    if not dropped:
        return answer
    caution = Caution("reference", _LEFT_OUT[answer.language].format(n=dropped), ())
    return replace(answer, statements=tuple(statements), cautions=(*answer.cautions, caution))


def _known_ids(hits: Sequence[Hit]) -> set[tuple[str, str]]:
    known: set[tuple[str, str]] = set()
    for hit in hits:
        one = hit.passage
        name = one.id.partition("#")[0].partition(":")[2]
        text = " ".join((one.locator.code, one.locator.url, name, one.title, one.text))
        known.update((found.kind, found.value) for found in find_citable_ids(text))
    return known


def _drop_ids(text: str, known: set[tuple[str, str]], language: Language) -> tuple[str, int]:
    """The text without unknown identifiers, and how many there were."""
    unknown = [
        one
        for one in find_citable_ids(text)
        if not one.is_valid or (one.kind, one.value) not in known
    ]
    count = len(unknown)
    for one in sorted(unknown, key=lambda each: -each.start):
        start = text.rfind("http", 0, one.start + 4)
        # An address goes with the identifier in it.
        begin = start if start >= 0 and not re.search(r"\s", text[start : one.start]) else one.start
        text = f"{text[:begin]}{_INSTEAD[language]}{text[one.end :].lstrip('/')}"
    lone = re.escape(_INSTEAD[language])
    bare = re.sub(rf"\s*[(（\[]\s*(?:{lone}[\s,;，；]*)+[)）\]]", "", text)
    return ("" if bare.strip(" .。") == _INSTEAD[language] else bare), count
