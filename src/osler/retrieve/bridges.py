"""What a question of several hops still lacks: names to look up beside the question itself.

A question names some things and asks through others that it does not name: "the director of the
film X", "X's father". What it names is found by one search, as documents whose titles stand in the
question; what it does not name stands in the beginning of their text, mostly near a word of the
question. A case that names a drug asks through the drugs that the best passages give for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from osler.retrieve.entity_names import DRUG, NonproprietaryNames, ReadText, packaged_names
from osler.retrieve.naming import has_no_one_subject
from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.types import Hit, Passage, Question

AND = " + "
"""Between two names of which a passage must have both."""
MOST = 4
"""Names that are looked up beside one question."""
_PARENTHESES = re.compile(r"\s*[(（][^()（）]*[)）]\s*")
_CAPITAL = r"[A-Z\u00c0-\u00de][\w.'’-]*"
_NAME = re.compile(
    rf"{_CAPITAL}(?:\s+(?:(?:of|the|de|la|le|du|van|von|da|di)\s+){{0,2}}{_CAPITAL})+"
)
_STEM = 5
"""Letters by which a word of the question is known again: director, directed."""
_READ, _BEFORE = 3, 4
"""Sentences of a document that are read for names, and words before a name that say what it is."""
_ALIKE = 0.85
"""Likeness from which a name is the document's own in another spelling."""
_SHORTEST = 4


def missing_names(question: Question, hits: Sequence[Hit]) -> tuple[str, ...]:
    """At most `MOST` names to look up after a search for the question found `hits`; none for
    most questions."""
    documents = named_titles(question.text, hits)
    names = [
        name
        for document in documents
        for name in bridge_names(question.text, document, any_name=len(documents) == 1)[:1]
    ]
    if not names and has_no_one_subject(question.text):
        names = _pairs_of_drugs(question.text, hits)
    return tuple(dict.fromkeys(names))[:MOST]


def named_titles(question: str, hits: Iterable[Hit]) -> list[Passage]:
    """The documents whose titles stand in the question, each by the first passage found; of titles
    that lie in each other the longest."""
    asked = f" {_fold(question)} "
    found: dict[str, Passage] = {}
    for hit in hits:
        title = plain_title(hit.passage)
        if len(title) >= _SHORTEST and f" {title} " in asked:
            found.setdefault(title, hit.passage)
    return [one for title, one in found.items() if sum(title in other for other in found) == 1]


def bridge_names(question: str, document: Passage, *, any_name: bool = True) -> list[str]:
    """Names in a document's beginning that the question has not: those behind "by", or behind a
    word of the question which is not the title's, the nearest first; then any others."""
    own = plain_title(document)
    known = f" {_fold(question)} {own} "
    words = {term[:_STEM] for term in content_terms(question) if term not in own}
    ranked: dict[str, tuple[bool, int, bool, int]] = {}
    for start, end in split_sentences(document.text)[:_READ]:
        sentence = document.text[start:end]
        for match in _NAME.finditer(sentence):
            name = match[0].strip(" .'’")
            folded = _fold(name)
            if f" {folded} " in known or SequenceMatcher(None, folded, own).ratio() > _ALIKE:
                continue
            before = sentence[: match.start()].casefold().split()[: -_BEFORE - 1 : -1]
            far = next((n for n, word in enumerate(before) if word[:_STEM] in words), _BEFORE)
            not_by, away = before[:1] != ["by"], far == _BEFORE
            if any_name or not (not_by and away):
                ranked.setdefault(name, (not_by or away, far, not_by, len(ranked)))
    return sorted(ranked, key=lambda name: ranked[name])


def _pairs_of_drugs(question: str, hits: Sequence[Hit]) -> list[str]:
    """A drug of the question's with each of the first that the best passages name; none where a
    passage has two drugs of the question's: then it asks about these."""
    given = _drugs_in(question)
    read = [ReadText(hit.passage.text) for hit in hits] if len(given) > 1 else []
    if any(sum(map(text.has_name, given)) > 1 for text in read):
        return []
    others = [
        drug
        for hit in hits[:2]
        for drug in _drugs_in(hit.passage.text)
        if not ReadText(question).has_name(drug)
    ]
    return [f"{one}{AND}{other}" for one in given for other in dict.fromkeys(others)]


def _drugs_in(text: str) -> list[str]:
    tables = (packaged_names(), NonproprietaryNames())
    found = [one for table in tables for one in table.find_entities(text) if one.kind == DRUG]
    return list(dict.fromkeys(one.written.casefold() for one in found))


def is_looked_up(hit: Hit) -> bool:
    """Whether the passage is what its query names: by its title, or by both names of a pair."""
    if AND in hit.query:
        return all(ReadText(hit.passage.text).has_name(name) for name in hit.query.split(AND))
    return _fold(hit.query) in {plain_title(hit.passage)} - {""}


def plain_title(document: Passage) -> str:
    """The title's words as a text would have them, folded: without what tells it apart from others
    of the name."""
    return _fold(_PARENTHESES.sub(" ", document.title))


def _fold(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
