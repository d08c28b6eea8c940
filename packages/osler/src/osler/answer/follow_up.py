"""Follow-up questions made to stand alone, by rule.

"And in pregnancy?" is searched for as the question before it, with what is new. The rule reads
the reader's own questions alone, never an answer, so that nothing a model or a passage wrote
becomes part of a question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from osler.retrieve.entity_names import EntityNames, NonproprietaryNames, packaged_names
from osler.retrieve.naming import telling_words
from osler.text import has_cjk

RewriteOrigin = Literal["", "rule", "user"]

# Questions before the last that are looked through for a subject.
REACH = 5
# Words of a question that only adds something to the one before it: "And in patients with cancer?"
_FRAGMENT = 6
# Characters of a question that another may be added to.
LONGEST = 400
_OPENING = re.compile(
    r"^(?:(?:and|but|so|then|also|or|now|ok(?:ay)?|what about|how about|what if|and if)\b[\s,]*)+",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|him|her|his)\b"
    r"(?:\s+(?:drugs?|diseases?|conditions?|medicines?|treatments?|tests?|patients?)\b)?",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|do|does|did|can|could|should|may|must|will|would|has|have|treat|give)\b",
    re.IGNORECASE,
)
_ZH_OPENING = re.compile(
    r"^(?:那么|那|还有|另外|此外|然后|而且|但是|但|再问|请问|如果|若|要是)+[，,]?"
)
_ZH_CLOSING = re.compile(r"(?:呢|啊|吗)?[？?。！!\s]*$")
_ZH_PRONOUN = re.compile(
    r"(?:它们?|(?<!其)他们?|她们?|其(?![他它中实余])|这(?:个|种)?(?:药物?|病|疾病|情况)?|该(?:药物?|病|疾病)|此(?:药|病))"
)
_END = re.compile(r"[\s?？.。!！]+$")


@dataclass(frozen=True, slots=True)
class Standalone:
    """A question that can be searched without the conversation."""

    text: str
    by: RewriteOrigin = ""
    """Who rewrote it; empty where it stood alone."""


def rewrite_follow_up(
    question: str, earlier: Sequence[str], tables: Sequence[EntityNames] = ()
) -> Standalone:
    """The question with the subject of those before it, where it has none of its own.

    `earlier` are the reader's questions, the oldest first, as they were searched for. `tables`:
    names of the user's beside the packaged ones. Pure; the same question in another conversation
    is another question.
    """
    before = next((text for text in reversed(earlier[-REACH:]) if text.strip()), "")
    before = before if len(before) <= LONGEST else ""  # a case report stands for itself
    if not before or stands_alone(question, tables):
        return Standalone(question)
    # What was added to a question before gives place to what is added now.
    heads = filter(None, (_END.sub("", text) for text in earlier[-REACH:]))
    added = (one for one in heads if before.startswith((f"{one}：", f"{one}: ")))
    before = min(added, key=len, default=before)
    rewrite = _rewrite_chinese if has_cjk(question) else _rewrite_english
    made = rewrite(question.strip(), _END.sub("", before), _find_subject(earlier, tables))
    return Standalone(made, "rule") if made != question else Standalone(question)


def stands_alone(question: str, tables: Sequence[EntityNames] = ()) -> bool:
    """Whether it names a subject, and neither points back nor opens as an addition."""
    if has_cjk(question):
        points_back = _ZH_OPENING.match(question) or _ZH_PRONOUN.search(question)
    else:
        points_back = _OPENING.match(question) or _PRONOUN.search(question)
    return not points_back and bool(name_entities(question, tables))


def name_entities(text: str, tables: Sequence[EntityNames] = ()) -> list[str]:
    """Drugs, diseases and tests that a text names, as it writes them."""
    known: tuple[EntityNames, ...] = (packaged_names(), NonproprietaryNames(), *tables)
    found = [entity.written for table in known for entity in table.find_entities(text)]
    return [name for name in dict.fromkeys(found) if telling_words(name)]


def _find_subject(earlier: Sequence[str], tables: Sequence[EntityNames]) -> str:
    """What the newest question with a name is about; else the telling words of the newest."""
    for text in reversed(earlier[-REACH:]):
        if names := name_entities(text, tables):
            return ("、" if has_cjk(text) else " and ").join(names[:2])
    words = telling_words(earlier[-1])
    return "" if has_cjk(earlier[-1]) else " ".join(words[:4])


def _rewrite_english(question: str, before: str, subject: str) -> str:
    bare = _END.sub("", _OPENING.sub("", question))
    if subject and (pointed := _PRONOUN.search(bare)):
        owner = f"{subject}'s" if pointed[0].lower() in ("its", "their", "his", "her") else subject
        return f"{_capitalise(bare[: pointed.start()] + owner + bare[pointed.end() :])}?"
    adds = len(bare.split()) <= _FRAGMENT and not _VERB.search(bare)
    if adds or not subject:
        return f"{before}: {bare}?"
    return f"{_capitalise(bare)} ({subject})?"


def _rewrite_chinese(question: str, before: str, subject: str) -> str:
    bare = _ZH_CLOSING.sub("", _ZH_OPENING.sub("", question))
    if subject and (pointed := _ZH_PRONOUN.search(bare)):
        return f"{bare[: pointed.start()]}{subject}{bare[pointed.end() :]}？"
    if question.rstrip("？? ").endswith("呢") or not subject:
        return f"{before}：{bare}？"
    return f"{subject}：{bare}？"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
