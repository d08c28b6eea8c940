"""The drugs and diseases that a text names, each by all names under which another may have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from osler.retrieve import STOP_WORDS
from osler.retrieve.entity_names import (
    DISEASE,
    DRUG,
    NonproprietaryNames,
    ReadText,
    fold_words,
    packaged_names,
)
from osler.retrieve.lexicon import packaged_lexicon
from osler.retrieve.naming import find_respelt


@dataclass(frozen=True)
class DrugName:
    """A drug that a text names, by all names under which another text may have it."""

    written: str
    names: tuple[str, ...]
    classes: tuple[str, ...] = ()
    """By which a text may speak of it among others: "thiazides"."""

    def is_in(self, text: ReadText, *, itself: bool = False) -> bool:
        """Whether a text names it, or its class where `itself` is not asked for."""
        return text.has_any(self.names) or (not itself and text.has_any(self.classes))


def find_drugs(text: str) -> list[DrugName]:
    """The drugs that a text names, each once: by the tables of names, brands and name endings."""
    found: dict[str, DrugName] = {}
    lexicon = packaged_lexicon()
    entities = (*packaged_names().find_entities(text), *NonproprietaryNames().find_entities(text))
    for entity in entities:
        if entity.kind == DRUG:
            key = entity.written.casefold()
            known = found.get(key, DrugName(entity.written, ()))
            wider = [name for name in entity.also if _is_class(name)]
            own = (name for name in entity.names if name not in wider)
            names = tuple(dict.fromkeys((*known.names, *own)))
            classes = (*known.classes, *wider, *lexicon.find_classes(names))
            found[key] = DrugName(entity.written, names, tuple(dict.fromkeys(classes)))
    for one in lexicon.find_names(text):
        written = text[one.start : one.end]
        if lexicon.drugs.issuperset(name.casefold() for name in one.names):
            classes = lexicon.find_classes(one.names)
            # A brand's ingredient has names of its own: Epilim, sodium valproate, valproate.
            others = (other for name in one.names for other in _names_of(name))
            names = tuple(dict.fromkeys((written, *one.names, *others)))
            found.setdefault(written.casefold(), DrugName(written, names, classes))
    for start, end in lexicon.find_drugs(text):
        name = text[start:end]
        found.setdefault(name.casefold(), DrugName(name, (name,), lexicon.find_classes([name])))
    return _join_same(list(found.values()))


def find_asked_drugs(text: str) -> list[DrugName]:
    """The drugs that a question names, and the classes of drugs, whose members stand for them."""
    lexicon = packaged_lexicon()
    classes = [
        DrugName(written, (name, *lexicon.means.get(name, ())), members)
        for written, name, members in lexicon.find_named_classes(text)
    ]
    return _join_same([*find_drugs(text), *classes])


@cache
def _names_of(name: str) -> tuple[str, ...]:
    """Names in the tables of what a name names as a whole."""
    known = packaged_names().find_entities(name)
    return tuple(other for one in known if len(one.written) == len(name) for other in one.names)


def _is_class(name: str) -> bool:
    """Whether a wider name is a class's, and no drug's that a combination holds."""
    names = _names_of(name)
    return not names or any(map(packaged_lexicon().is_class, names))


def _join_same(drugs: Sequence[DrugName]) -> list[DrugName]:
    """The drugs, one that is named twice once."""
    kept: list[DrugName] = []
    for drug in drugs:
        names = {name.casefold() for name in drug.names}
        if not any(names & {name.casefold() for name in other.names} for other in kept):
            kept.append(drug)
    return kept


def find_diseases(text: str) -> list[tuple[str, ...]]:
    """The diseases that a text names, by the table or in lay words of one in it, each by all its
    names."""
    named = [one.names for one in packaged_names().find_entities(text) if one.kind == DISEASE]
    for said in packaged_lexicon().find_names(text):
        meant = (one for name in said.names for one in packaged_names().find_entities(name))
        written = text[said.start : said.end]
        named += [(written, *said.names, *one.names) for one in meant if one.kind == DISEASE]
    return named


def other_names(name: str) -> tuple[str, ...]:
    """Names of the lexicon and the tables that stand for the whole name."""
    lexicon = packaged_lexicon().find_names(name)
    whole = (one.names for one in lexicon if one.end - one.start >= len(name) - 1)
    known = packaged_names().find_entities(name)
    tables = (one.names for one in known if len(one.written) >= len(name) - 1)
    return tuple(dict.fromkeys(other for names in (*whole, *tables) for other in names))


def names_whole(name: str, others: Sequence[str], text: ReadText) -> bool:
    """Whether a text has the name, one of the others, or each word of the name."""
    if text.has_name(name) or text.has_any(others):
        return True
    words = [word for word in fold_words(name) if word not in STOP_WORDS]
    return all(word in text.words or find_respelt(word, text.words) for word in words)
