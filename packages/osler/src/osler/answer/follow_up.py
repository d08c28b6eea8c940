"""Follow-up questions made to stand alone, by rule.

"And in pregnancy?" is searched for as the question before it, with what is new. The rule reads
the reader's own questions alone, never an answer, so that nothing a model or a passage wrote
becomes part of a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from osler.retrieve.asked import is_courtesy
from osler.retrieve.entity_names import EntityNames, NonproprietaryNames, packaged_names
from osler.retrieve.lexicon import packaged_lexicon
from osler.retrieve.naming import telling_words
from osler.sources.common_words import is_common, read_words
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
_AUXILIARY = "is|are|was|were|do|does|did|can|could|should|may|must|will|would|has|have"
_LINK = "for|with|of|to|from|in|on|by|about|against|than|like|after|before|while|when|if|and|or"
_QUALITY = (
    "safe|ok|okay|true|possible|dangerous|harmful|wise|necessary|better|best|bad|good|normal|likely"
)
# A person is no drug, nor is one thing several. "Is it safe to take ibuprofen?", "evidence that",
# "these days" and "those with asthma" point at nothing.
_PRONOUN = re.compile(
    r"\b(?P<person>he|she|him|her|his)\b|\b(?P<many>they|them|their)\b"
    rf"|\b(?P<it>its?)\b(?!\s+(?:{_QUALITY})\s+(?:that\b|to\s+\w+\s+(?!(?:{_LINK})\b)\w))"
    r"|\b(?P<noun>(?:this|these|those)\s+(?:drug|disease|condition|medicine|treatment|test)s?)\b"
    rf"|(?:^|[,:;]\s*|\b(?:{_AUXILIARY}|{_LINK}|how|why)\s+)(?P<that>that\s+(?:drug|disease"
    rf"|condition|medicine|treatment|test)\b|(?:this|that|these|those(?!\s+(?:{_LINK})\b))(?=\s+(?:"
    rf"{_AUXILIARY}|{_LINK}|{_QUALITY}|not|a|an|the|done|given|\w+(?:ed|able|ible|ous|ful))\b))"
    r"|\b(?P<last>this|that|these|those)(?=\s*(?:[?.!,;]|$))",
    re.IGNORECASE,
)
_VERB = re.compile(rf"\b(?:{_AUXILIARY}|treat|give)\b", re.IGNORECASE)
_ZH_OPENING = re.compile(
    r"^(?P<adds>那么|那|还有|另外|此外|然后|而且|但是|但|再问|请问)*(?:如果|若|要是)*[，,]?"
)
_ZH_CLOSING = re.compile(r"(?:呢|啊|吗)?[？?。！!\s]*$")
# In "他汀" and "布美他尼" stands nobody, and "这孩子" is named.
_ZH_PRONOUN = re.compile(
    r"(?P<person>她们?|(?<!其)他(?:们|(?=[的能会可需应该吃喝是有还要怎如，。？]|$)))|(?P<case>这种?情况|这时)"
    r"|(?P<it>它们?|(?<![尤极与])其(?![他它中实余])|(?:这(?:个|种)?|该|此)(?:药物?|病|疾病)"
    r"|这(?:个|种)?(?=[是能会可有需要应安严危正怎如和与对吗呢，。？]|$))"
)
# Where a clause ends, a name before it may be what a pronoun means: "metformin: is it safe".
_BOUNDARY = re.compile(
    r"[,:;.?!，：；。？]|及(?=其)"
    r"|\b(?:but|if|when|because|while|that|which|who|(?:and|or)(?!\s+(?:it|this|that|them)\b))\b"
)
_PERSON = re.compile(
    r"\b(?:patients?|people|person|adults?|child(?:ren)?|baby|infants?|boys?|girls?|m[ae]n|wom[ae]n"
    r"|mother|father|son|daughter|wife|husband)\b|患者|病人|孩|妈|爸|儿子|女儿|妻|丈夫|孕妇|老人"
)
_WORD = re.compile(r"[A-Za-z]{6,}")
# From this likeness on an unknown word is a known one, misspelt.
_LIKE = 0.86
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
    asked = [text for text in earlier[-REACH:] if _asks(text)]
    before = asked[-1] if asked and len(asked[-1]) <= LONGEST else ""  # a case stands for itself
    if not before or not _asks(question) or stands_alone(question, tables):
        return Standalone(question)
    # What was added to a question before gives place to what is added now.
    heads = filter(None, (_END.sub("", text) for text in asked))
    added = (one for one in heads if before.startswith((f"{one}：", f"{one}: ")))
    before = min(added, key=len, default=before)
    is_chinese = has_cjk(question)
    subject = _find_subject(asked, is_chinese, tables)
    if subject and has_cjk(before) != is_chinese:
        before = subject
    rewrite = _rewrite_chinese if is_chinese else _rewrite_english
    made = rewrite(question.strip(), _END.sub("", before), subject, tables)
    return Standalone(made, "rule") if made != question else Standalone(question)


def _asks(text: str) -> bool:
    """Whether there is more than thanks, and than words that open a question."""
    return not is_courtesy(_OPENING.sub("", text))


def stands_alone(question: str, tables: Sequence[EntityNames] = ()) -> bool:
    """Whether it names a subject, and neither points back nor opens as an addition."""
    if has_cjk(question):
        opening = _ZH_OPENING.match(question)
        adds = (opening and opening["adds"]) or question.rstrip("？? ").endswith("呢")
    else:
        adds = _OPENING.match(question)
    points_back = adds or next(_find_pronouns(question, tables), None)
    return not points_back and bool(name_entities(question, tables))


def _find_pronouns(text: str, tables: Sequence[EntityNames]) -> Iterator[re.Match[str]]:
    """Pronouns whose meaning does not stand before them in the text."""
    for found in (_ZH_PRONOUN if has_cjk(text) else _PRONOUN).finditer(text):
        start = found.start(found.lastgroup or 0)
        ends = (one.end() for one in _BOUNDARY.finditer(text) if one.end() <= start)
        is_person = found.lastgroup in ("person", "many") and _PERSON.search(text, 0, start)
        if not is_person and not name_entities(text[: max(ends, default=0)], tables):
            yield found


def name_entities(
    text: str, tables: Sequence[EntityNames] = (), is_chinese: bool | None = None
) -> list[str]:
    """Drugs, diseases and tests that a text names, and words that are in no list.

    As it writes them; with `is_chinese` by their name in that language, where they have one.
    """
    known: tuple[EntityNames, ...] = (packaged_names(), NonproprietaryNames(), *tables)
    found = [entity for table in known for entity in table.find_entities(text)]
    written = " ".join(one.written for one in found)
    names = [
        one.written
        if is_chinese in (None, has_cjk(one.written))
        else next((name for name in one.names if has_cjk(name) is is_chinese), one.written)
        for one in found
    ]
    names += [word for word in _WORD.findall(text) if word not in written and _is_name(word)]
    return [name for name in dict.fromkeys(names) if telling_words(name)]


def _is_name(word: str) -> bool:
    """Whether a word is a drug's name, or one that is neither known nor a known one misspelt."""
    lower, lexicon = word.casefold(), packaged_lexicon()
    if is_common(word) or lower in lexicon.words:
        return lower in lexicon.drugs
    return not get_close_matches(lower, [w for w in read_words() if w[:2] == lower[:2]], 1, _LIKE)


def _find_subject(asked: Sequence[str], is_chinese: bool, tables: Sequence[EntityNames]) -> str:
    """What the newest question with a name is about; else the telling words of the newest."""
    for text in reversed(asked):
        if names := name_entities(text, tables, is_chinese):
            return ("、" if is_chinese else " and ").join(names[:2])
    return "" if has_cjk(asked[-1]) else " ".join(telling_words(asked[-1])[:4])


def _put_subject(text: str, subject: str, tables: Sequence[EntityNames]) -> str:
    """The text with the subject in place of the first pronoun that can mean it; "" without."""
    for found in _find_pronouns(text, tables) if subject else ():
        kind = found.lastgroup or ""
        several = " and " in subject or subject.endswith("s")
        if kind not in ("person", "case") and (kind != "many" or several):
            start, end = found.span(kind)
            owner = f"{subject}'s" if found[kind].lower() in ("its", "their") else subject
            return f"{text[:start]}{owner}{text[end:]}"
    return ""


def _rewrite_english(
    question: str, before: str, subject: str, tables: Sequence[EntityNames]
) -> str:
    bare = _END.sub("", _OPENING.sub("", question))
    if made := _put_subject(bare, subject, tables):
        return f"{_capitalise(made)}?"
    adds = len(bare.split()) <= _FRAGMENT and not _VERB.search(bare)
    if adds or not subject:
        return f"{before}: {bare}?"
    return f"{_capitalise(bare)} ({subject})?"


def _rewrite_chinese(
    question: str, before: str, subject: str, tables: Sequence[EntityNames]
) -> str:
    bare = _ZH_CLOSING.sub("", _ZH_OPENING.sub("", question))
    if made := _put_subject(bare, subject, tables):
        return f"{made}？"
    if question.rstrip("？? ").endswith("呢") or not subject:
        return f"{before}：{bare}？"
    return f"{subject}：{bare}？"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]
