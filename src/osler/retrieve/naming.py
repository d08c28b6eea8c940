"""Whether a passage speaks of what a question is about: its drug, disease or test.

Coverage and cosine let a passage through that says the right kind of thing of another disease.
Here the question's names decide. Names that a table or a graph knows, or that are built like a
drug's, must be there, by any of their synonyms. In a question without such names the rarest of the
words that are not generic ("treatment", "patients") must be there, or half of them by rarity.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise

from osler.kb.search.lexicon import stem_terms
from osler.retrieve.entity_names import (
    DRUG,
    EntityNames,
    NamedEntity,
    NonproprietaryNames,
    ReadText,
    defined_abbreviations,
    fold_text,
    fold_words,
    packaged_names,
)
from osler.retrieve.words import STOP_WORDS, content_terms
from osler.sources.patients.identifiers.words import is_common, read_words
from osler.text import has_cjk, split_sentences, split_words

_WORD = re.compile(r"[^\W_]+")


def share_of_pairs(question: str, texts: Sequence[str]) -> list[float | None]:
    """The share of the question's pairs that each text has, compared by their stems.

    A pair is two neighbours of which none is a stop word and one at least is telling
    (`naming.telling_words`). `None` for each text where the question has no pair.
    """
    pairs = _asked_pairs(question)
    if not pairs:
        return [None] * len(texts)
    return [len(pairs & _neighbours(text)) / len(pairs) for text in texts]


def _asked_pairs(question: str) -> frozenset[tuple[str, str]]:
    words, telling = _words_of(question), set(telling_words(question))
    stems = stem_words(sorted(set(words)))
    return frozenset(
        (stems[a], stems[b])
        for a, b in pairwise(words)
        if not STOP_WORDS & {a, b} and telling & {a, b}
    )


@lru_cache(maxsize=512)
def _neighbours(text: str) -> frozenset[tuple[str, str]]:
    words = _words_of(text)
    stems = stem_words(sorted(set(words)))
    found = [stems[word] for word in words]
    return frozenset(pairwise(found))


def _words_of(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


NAMED = 0.5
"""Least value of a passage that speaks of the question's subject."""
# Telling words of a question that has one subject; of Chinese, whose terms overlap, three times.
_LONGEST = 12
# Letters from which a word may differ from another by one edit: misspelt, or British.
_SPELT = 7
_DESIGNATED = re.compile(
    r"\b(type|stage|grade|class|group|factor|vitamin|hepatitis)\s+(\d{1,2}[a-z]?|[ivx]{1,4}|[a-z])\b",
    re.IGNORECASE,
)
_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4", "v": "5", "vi": "6", "vii": "7", "viii": "8"}
_LATIN = re.compile(r"[A-Za-z]+")
# Shorter words are abbreviations as often as names.
_NAME = 6
_ENDING = re.compile(r"(s|ed|ing|ly)$")
_ABBREVIATION = re.compile(r"\b[A-Z]{4,6}(?=s?\b)")


_TOGETHER = re.compile(
    r"\binteract|\btogether\b|\bco-?administ"
    r"|\b(?:can|may|could|should|is it|safe)\b.*\b(?:with|while (?:on|taking)|alongside)\b"
    r"|一起|合用|同服|同用|联用|相互作用",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class NamingRelevance:
    """A `Relevance` in [0, 1]: 1 where a text names what the question is about, 0 where not.

    Between them is the share, by rarity, of the question's words that are not generic. A question
    without names and telling words gives 1, and so does a case history: it has no one subject.
    """

    rarity: Callable[[Sequence[str]], Mapping[str, float]]
    """Inverse document frequency of each term, from the knowledge base."""
    tables: tuple[EntityNames, ...] = ()
    """Graphs of the user's, beside the packaged table."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return await asyncio.to_thread(self.score_texts, query, texts) if texts else ()

    def score_texts(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """What `relevance` gives, without waiting for another thread."""
        if has_no_one_subject(query):
            return (1.0,) * len(texts)
        words = telling_words(query)
        read = [ReadText(text) for text in with_definitions(texts, query)]
        if entities := self.find_entities(query):
            # A question about a drug needs the drug, not only the disease that it is given for.
            needed = [one for one in entities if one.kind == DRUG] or entities
            unknown = find_unknown_names(query, entities)
            groups = _ask_for_both(query, needed)
            named = [all(text.has_any(names) for names in groups) for text in read]
            if unknown:
                stems = _stem_texts([text.raw for text in read])
                missing = [not all(_has_word(word, each) for word in unknown) for each in stems]
                named = [a and not b for a, b in zip(named, missing, strict=True)]
            return tuple(map(float, named))
        rare = self.rarity(words) if words else {}
        telling = {word: rare[word] for word in sorted(words, key=lambda word: -rare[word])}
        stems = _stem_texts([text.raw for text in read])
        return tuple(_telling_score(telling, found) for found in stems)

    def find_entities(self, query: str) -> list[NamedEntity]:
        """What tables and graphs know of the query's names; generic words are none."""
        tables: list[EntityNames] = [packaged_names(), NonproprietaryNames(), *self.tables]
        found = [entity for table in tables for entity in table.find_entities(query)]
        return [one for one in found if not _is_generic(one.written)]


@dataclass(frozen=True)
class SubjectRelevance:
    """A `Relevance` in [0, 1]: the share of a question's subject that a text, or a heading, has.

    The share, by rarity, of the words that are not generic ("treatment", "patients") and of
    designators ("type IV"). A name that a table or a graph knows is there by any of its synonyms.
    A question without such words gives 0.
    """

    naming: NamingRelevance

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return await asyncio.to_thread(self.score_texts, query, texts) if texts else ()

    def score_texts(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        words, forms = telling_words(query), _designators(query)
        rare = dict(self.naming.rarity(words)) if words else {}
        # "type 4" weighs as much as a word: it tells one disease from its look-alikes.
        usual = sum(rare.values()) / len(rare) if rare else 1.0
        whole = sum(rare.values()) + usual * len(forms)
        entities = [(one, telling_words(one.written)) for one in self.naming.find_entities(query)]
        shares = []
        for text, stems in zip(texts, _stem_texts(texts), strict=True):
            read = ReadText(text)
            # A synonym stands for the words of its name, and for no other.
            named = {w for one, own in entities if read.has_any(one.names) for w in own}
            share = sum(rare[word] for word in words if word in named or _has_word(word, stems))
            share += usual * len(forms & _designators(text))
            shares.append(min(1.0, share / whole) if whole else 0.0)
        return tuple(shares)


def _designators(text: str) -> frozenset[str]:
    """Forms of a disease or a substance that a text names: "type 4" of "type IV"."""
    found = ((kind.casefold(), which.casefold()) for kind, which in _DESIGNATED.findall(text))
    return frozenset(f"{kind} {_ROMAN.get(which, which)}" for kind, which in found)


def _telling_score(telling: Mapping[str, float], stems: frozenset[str]) -> float:
    """1 with the rarest of the telling words, which is their first; else their share by rarity."""
    whole = sum(telling.values())
    here = [word for word in telling if _has_word(word, stems)]
    if not whole or next(iter(telling)) in here:
        return 1.0
    return sum(telling[word] for word in here) / whole


def _has_word(word: str, stems: frozenset[str]) -> bool:
    if has_cjk(word):
        return word in stems
    stem = _stem(word)
    return stem in stems or (
        len(stem) >= _SPELT and any(_is_respelt(stem, other) for other in stems)
    )


def find_respelt(word: str, said: Collection[str]) -> str:
    """The one of these words that is this one, or this one in another spelling; empty for none.

    "Microcephaly" is no misspelt "macrocephaly", nor "Pearson" a person.
    """
    if word in said or len(word) < _SPELT:
        return word if word in said else ""
    apart = {"micro", "macro"}
    return next(
        (
            other
            for other in sorted(said)
            if abs(len(word) - len(other)) <= 1
            and word[0] == other[0]
            and {word[:5], other[:5]} != apart
            and _is_respelt(word, other)
            and not _is_generic(other)
        ),
        "",
    )


def _is_respelt(word: str, other: str) -> bool:
    """Whether one edit, not in the first letter, makes one word of the other."""
    if word[0] != other[:1] or abs(len(word) - len(other)) > 1:
        return False
    short, long = sorted((word, other), key=len)
    same = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), None)
    if same is None:
        return True
    rest = short[same:] if len(short) < len(long) else short[same + 1 :]
    swapped = len(short) == len(long) and (
        short[same : same + 2] == long[same : same + 2][::-1]
        and short[same + 2 :] == long[same + 2 :]
    )
    return rest == long[same + 1 :] or swapped


def _ask_for_both(query: str, needed: Sequence[NamedEntity]) -> list[tuple[str, ...]]:
    """Names of which a passage must have one of each group: all names together, but where it is
    asked if two drugs may be given together, which no passage on one of them says."""
    by_drug: dict[str, tuple[str, ...]] = {}
    for one in needed:
        key = one.written.casefold()
        by_drug[key] = (*by_drug.get(key, ()), *one.names)
    drugs = all(one.kind == DRUG for one in needed)
    both = drugs and len(by_drug) == 2 and _TOGETHER.search(query)
    groups = list(by_drug.values())
    return groups if both else [tuple(name for names in groups for name in names)]


def find_unknown_names(question: str, known: Sequence[NamedEntity]) -> tuple[str, ...]:
    """Telling English words that no open text has, in any spelling: names that nothing here knows.

    Of "What does zorblaxine do in gout?" a passage on gout alone says nothing. Capitals within a
    sentence are left to people's names, and endings of verbs and adverbs are no name's.
    """
    telling = set() if has_cjk(question) else set(telling_words(question))
    telling -= {word for one in known for word in telling_words(one.written)}
    words = [word for word in _LATIN.findall(question) if word.casefold() in telling]
    return tuple(
        word.casefold()
        for at, word in enumerate(words)
        if len(word) >= _NAME
        and (word.islower() or (at == 0 and question.startswith(word)))
        and not _ENDING.search(word)
        and not is_common(word)
        and not any(_is_respelt(word.casefold(), other) for other in _words_like(word.casefold()))
    )


def _words_like(word: str) -> list[str]:
    """Words of open texts with the same first letter, of about the same length."""
    lengths = range(len(word) - 1, len(word) + 2)
    return [one for length in lengths for one in _words_by_shape().get((word[0], length), ())]


@cache
def _words_by_shape() -> Mapping[tuple[str, int], list[str]]:
    shapes: dict[tuple[str, int], list[str]] = defaultdict(list)
    for word in sorted(read_words()):
        shapes[word[0], len(word)].append(word)
    return shapes


def with_definitions(texts: Sequence[str], query: str) -> list[str]:
    """The texts, each with the long forms of its abbreviations and the reverse.

    An abbreviation that one passage defines is known in all that were found with it; one of the
    question's is known by the initials of words in a row.
    """
    defined = defined_abbreviations(texts)
    asked = _ABBREVIATION.findall(query)
    longer = []
    for text in texts:
        read = ReadText(text)
        added = [
            other
            for short, long in defined.items()
            for name, other in ((short, long), (long, short))
            if read.has_name(name)
        ]
        added += [short for short in asked if read.has_initials(short)]
        longer.append(" ; ".join((text, *added)))
    return longer


def has_no_one_subject(question: str) -> bool:
    """Whether it is a letter or a case history: many telling words, or several sentences."""
    words = telling_words(question)
    most = _LONGEST * 3 if words and has_cjk(words[0]) else _LONGEST
    return len(words) > most or len(split_sentences(question)) > 1


def telling_words(text: str) -> list[str]:
    """Content words that are not generic; of Chinese the pairs of characters between generics."""
    generic = _generic_words()
    left = fold_text(text) if has_cjk(text) else text
    for word in generic.han if has_cjk(text) else ():
        left = left.replace(word, " ")
    terms = (term for term in content_terms(left) if len(term) > 1 and not term.isdigit())
    return [term for term in terms if has_cjk(term) or not generic.latin.issuperset({_stem(term)})]


def _is_generic(name: str) -> bool:
    return not telling_words(name) and not any(char.isdigit() for char in name)


@dataclass(frozen=True, slots=True)
class _Generic:
    latin: frozenset[str]
    """Stems."""
    han: tuple[str, ...]
    """The longest first."""


@cache
def _generic_words() -> _Generic:
    """Words of questions that name no subject."""
    text = files(__package__).joinpath("generic_words.txt").read_text(encoding="utf-8")
    words = text.split()
    latin = frozenset(stem_words([word for word in words if not has_cjk(word)]).values())
    return _Generic(latin, tuple(sorted(filter(has_cjk, words), key=lambda word: -len(word))))


@lru_cache(maxsize=10_000)
def _stem(word: str) -> str:
    return stem_words([word])[word]


def stem_words(words: Sequence[str]) -> dict[str, str]:
    """Each word's stem, by the tokenizer of the full-text index and in one spelling."""
    spelt = {word: "".join(fold_words(word)) or word for word in words}
    stemmed = stem_terms(list(dict.fromkeys(spelt.values())))
    return {word: stemmed.get(fold, fold) for word, fold in spelt.items()}


def _stem_texts(texts: Sequence[str]) -> list[frozenset[str]]:
    """The stems of each text's words; of Chinese its characters and pairs."""
    cut = [frozenset(split_words(text)) for text in texts]
    stems = stem_words(sorted({word for words in cut for word in words if not has_cjk(word)}))
    return [frozenset(stems.get(word, word) for word in words) for words in cut]
