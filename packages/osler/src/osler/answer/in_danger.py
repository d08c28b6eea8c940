"""Quotations below a notice to a person in danger, never as the answer.

The notice says whom to call. What the texts answer stands below it, labelled as such, and nothing
that is merely near; to somebody who may have taken too much, or may harm themself, only what is
about poisoning.
"""

from __future__ import annotations

import re
from dataclasses import replace

from osler.answer import NOTHING_SAID
from osler.types import Answer, Authorship, DangerNotice, Evidence, Language, Question, Statement

_LEAD: dict[Language, str] = {
    "en": "This does not replace the call. What the texts say of it:",
    "zh": "以下内容不能代替呼救。资料中的相关原文：",
}
_TAKEN = re.compile(
    r"\boverdos|\btoo (?:many|much)\b|\b(?:took|taken|swallowed|drank|ate|ingested)\b|\bpoison"
    r"|过量|中毒|误服|吞|吃了|喝了|服了",
    re.IGNORECASE,
)
_POISONING = re.compile(
    r"\boverdos|\bpoison|\btoxic|\bantidote|\bingest|\bacetylcysteine|\bactivated charcoal"
    r"|过量|中毒|解毒|洗胃|活性炭",
    re.IGNORECASE,
)


def answer_below_notice(answer: Answer, question: Question, notice: DangerNotice | None) -> Answer:
    """A quoted answer as it stands below a notice; without one, and where a model wrote it, as it
    is."""
    quoted = answer.authorship is Authorship.EXTRACTIVE
    if notice is None or not quoted or not answer.evidence:
        return answer
    # What is merely near misleads: of a drooping face the ice pack that is laid on a drooping lid.
    kept = tuple(one for one in answer.evidence if one.use != "nearest")
    if "self-harm" in notice.kinds or _TAKEN.search(question.text):
        kept = tuple(filter(_is_about_poisoning, kept))
    if not kept:
        return Answer(note=NOTHING_SAID[answer.language], language=answer.language)
    numbers = {answer.evidence.index(one) + 1: n for n, one in enumerate(kept, 1)}
    said = (
        replace(one, cites=tuple(numbers[n] for n in one.cites if n in numbers))
        for one in answer.statements
        if numbers.keys() & set(one.cites)
    )
    return replace(
        answer,
        statements=(Statement(_LEAD[answer.language]), *said),
        evidence=tuple(replace(one, use="nearest") for one in kept),
        note="",
        sureness=None,
    )


def _is_about_poisoning(one: Evidence) -> bool:
    return _POISONING.search(f"{one.passage.heading} {one.quote}") is not None
