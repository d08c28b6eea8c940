"""Questions to ask next, made from the headings of passages that a search has found.

No model words them: each names a section of a text, so that a search for it finds that section. Of
30 sections of the sample texts in either language each question is answered from its own section.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from osler.text import language_of
from osler.types import Passage, Question

MOST = 3
_LONGEST = 100
_PLAIN = re.compile(
    r"(?:abstract|appendix|background|conclusions?|contents|discussion|history|introduction"
    r"|methods?|notes?|overview|references|results|see also|sources|summary"
    r"|摘要|背景|结论|目录|讨论|引言|方法|注释|概述|参考文献|结果|小结|历史)",
    re.IGNORECASE,
)
"""Headings that say nothing of their subject."""


def suggest_questions(
    question: Question, found: Iterable[Passage], cited: Iterable[Passage] = ()
) -> list[str]:
    """At most `MOST`, in the order of `found`; none about a section that is cited already, that the
    question names itself, or that another language has."""
    known = {one.heading for one in cited}
    asked = _words(question.text)
    made: dict[str, None] = {}
    for passage in found:
        parts = [part.strip() for part in passage.locator.section.split(" > ") if part.strip()]
        if not parts or passage.language != question.language or passage.heading in known:
            continue
        known.add(passage.heading)
        subject = parts[-2] if len(parts) > 1 else passage.title.partition(" | ")[0]
        made_of = _words(f"{subject} {parts[-1]}")
        if _PLAIN.fullmatch(parts[-1]) or made_of <= asked:
            continue
        text = _word_question(subject.strip(), parts[-1])
        if len(text) <= _LONGEST and language_of(text) == question.language:
            made[text] = None
    return [*made][:MOST]


def _word_question(subject: str, leaf: str) -> str:
    if not subject or subject.casefold() == leaf.casefold():
        return f"{leaf}{'？' if language_of(leaf) == 'zh' else '?'}"
    if language_of(f"{subject} {leaf}") == "zh":
        return f"{subject}：{leaf}？"
    is_name = not leaf[1:2].islower()  # an abbreviation, or a word that begins a formula
    return f"{subject}: {leaf if is_name else leaf[:1].lower() + leaf[1:]}?"


def _words(text: str) -> set[str]:
    """What a heading and a question are compared by; Chinese by its signs."""
    return set(re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", text.casefold()))
