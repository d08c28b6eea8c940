"""What a plain question asks about, whole: "Lynch syndrome" of "Is Lynch syndrome inherited?".

A question that asks one thing of one subject names it whole, and what speaks of that subject names
it so too, or by a name that is known for it. One word of the name is not enough: alpha- and
beta-mannosidosis, the types of a disease, and its familial and sporadic forms share most words.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from osler.retrieve.entity_names import DRUG, NamedEntity, ReadText, fold_words
from osler.retrieve.naming import (
    NamingRelevance,
    find_respelt,
    has_no_one_subject,
    telling_words,
    with_definitions,
)

_ASPECT = (
    r"(?:symptoms?|signs?|treatments?|therap(?:y|ies)|causes?|complications?|stages?"
    r"|genetic changes|outlook|prognosis|life expectancy|risk factors?|prevalence|incidence"
    r"|diagnosis|prevention|management|definition|inheritance|genetics)"
)
_DONE = r"(?:treated|diagnosed|prevented|managed|inherited|cured)"
_FRAMES = tuple(
    re.compile(rf"\W*{frame}\W*", re.IGNORECASE)
    for frame in (
        rf"(?:what|which) (?:is|are) (?:the )?(?:\w+ )?{_ASPECT}(?: (?:and|or) {_ASPECT})?"
        r" (?:of|for|related to|in|to) (?P<subject>.+?)",
        r"(?:what(?:'s| is| are|s)(?: \(are\))?|define|explain) (?P<defined>.+?)",
        r"what does (?P<defined>.+?) mean",
        r"what causes (?P<subject>.+?)",
        r"how (?:to|do (?:you|i|we|doctors)|can (?:you|i|we|one))"
        r" (?:diagnose|prevent|treat|manage|cure) (?P<subject>.+?)",
        rf"how (?:is|are|can) (?P<subject>.+?) (?:be )?{_DONE}",
        r"(?:is|are) (?P<subject>.+?) (?:inherited|hereditary|genetic|curable|contagious)",
        r"how many people are affected by (?P<subject>.+?)",
        r"who is at risk (?:for|of) (?P<subject>.+?)",
        r"what to do for (?P<subject>.+?)",
        r"do you have (?:any )?information about (?P<subject>.+?)",
        r"what research (?:\(or clinical trials\) )?is being done (?:for|on) (?P<subject>.+?)",
    )
)
# "What is the target of X?" asks of two things, and names neither whole.
_RELATES = re.compile(
    r"\b(?:of|for|in|with|without|between|from|to|used|caused|by|on|after|during|at|among|against"
    r"|as|marked|that|which)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:an?|the|my) ", re.IGNORECASE)
_WHOSE = re.compile(r"\b(?:in|during|after|among)\b", re.IGNORECASE)


def find_asked_subject(question: str) -> str:
    """The name of what a question asks about; empty where it is not asked so plainly."""
    said = " ".join(question.split())
    for frame in _FRAMES:
        if found := frame.fullmatch(said):
            ((kind, name),) = ((k, v) for k, v in found.groupdict().items() if v)
            plain = kind == "subject" or not _RELATES.search(name)
            return _ARTICLE.sub("", name).strip(" ?.") if plain else ""
    return ""


@dataclass(frozen=True)
class WholeNaming:
    """A `Relevance` in [0, 1]: 1 where a text names the asked subject whole, 0 where not.

    By a synonym, by an abbreviation that one of the texts defines, or misspelt in one letter, it is
    named as well. What is asked of a drug, and what is not asked plainly, `naming` decides.
    """

    naming: NamingRelevance

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return await asyncio.to_thread(self.score_texts, query, texts) if texts else ()

    def score_texts(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """What `relevance` gives, without waiting for another thread."""
        subject = "" if has_no_one_subject(query) else find_asked_subject(query)
        entities = self.naming.find_entities(subject) if telling_words(subject) else []
        if not telling_words(subject) or any(one.kind == DRUG for one in entities):
            return self.naming.score_texts(query, texts)
        names = [subject, *_other_names(subject, entities)]
        read = [ReadText(text) for text in with_definitions(texts, query)]
        return tuple(float(_names_whole(names, one)) for one in read)


def _other_names(subject: str, entities: Iterable[NamedEntity]) -> Iterator[str]:
    """The subject's name with each known name in it replaced by its synonyms."""
    for one in entities:
        if one.written in subject:
            yield from (subject.replace(one.written, name) for name in one.names)


def _names_whole(names: Sequence[str], text: ReadText) -> bool:
    return any(map(text.has_name, names)) or _names_parts(names[0], text)


def _names_parts(subject: str, text: ReadText) -> bool:
    """Whether each part of "asthma in pregnancy" is named; words that any question has are none."""
    parts = [part for part in _WHOSE.split(subject) if telling_words(part)]
    return all(text.has_name(part) or text.has_name(_respell(part, text)) for part in parts)


def _respell(name: str, text: ReadText) -> str:
    """The name as the text spells it."""
    return " ".join(find_respelt(word, text.words) or word for word in fold_words(name))
