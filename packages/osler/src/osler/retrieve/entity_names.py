"""Names of drugs, diseases and tests in a question, with the other names of each.

The packaged table (`entity_names.tsv`) has common ones in English and Chinese, brands included;
other drugs are known by how their names are built (`NonproprietaryNames`), and a concept graph of
the user's adds its own names and synonyms (`GraphNames`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING, Protocol

from osler.retrieve import STOP_WORDS
from osler.text import has_cjk, read_packaged, split_words

if TYPE_CHECKING:
    from osler.graph.link import Recogniser
    from osler.graph.store import Graph

DRUG, DISEASE = "drug", "disease"
# Words of the longest name in the table.
_LONGEST = 6
# Words that may stand between those of a name in another order.
_BETWEEN = 2
# Letters of a name that may be written as one word, and of an abbreviation known by initials.
_JOINED, _INITIALS = 8, 4
# Letters of an abbreviation, which is compared in its case: "AIDS" is not "aids".
_ABBREVIATED = 5
_WORDS = re.compile(r"(?:(?![\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])[^\W_])+")
# Parts of the graphs' semantic types that mean a drug (UMLS, Hetionet, PrimeKG, Chinese graphs).
_DRUG_TYPES = ("drug", "pharmac", "antibiotic", "compound", "药")


@dataclass(frozen=True, slots=True)
class NamedEntity:
    """A drug, disease or test that a text names."""

    written: str
    """As the text has it."""
    names: tuple[str, ...]
    """Names by which a passage may call it, `written` among them."""
    kind: str = ""
    """`drug`, `disease` or `test`; empty when unknown."""
    also: tuple[str, ...] = ()
    """Of the names, those that are wider: a class, a part of a combination."""


class EntityNames(Protocol):
    """A source of names: the packaged table, a concept graph."""

    def find_entities(self, text: str) -> list[NamedEntity]:
        """The entities that the text names, in order, none inside another. Blocks."""


@dataclass(frozen=True, slots=True)
class NameGroup:
    """Names of one thing."""

    kind: str
    names: tuple[str, ...]
    """By which a question names it."""
    also: tuple[str, ...] = ()
    """Wider names, by which a passage may speak of it: "statins" of simvastatin."""


@dataclass(frozen=True)
class NameTable:
    """Groups of names, found in a text the longest first."""

    groups: Sequence[NameGroup]
    _latin: Mapping[tuple[str, ...], NameGroup] = field(init=False, repr=False, compare=False)
    _han: Mapping[str, NameGroup] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named = [(name, group) for group in self.groups for name in group.names]
        latin = {tuple(fold_words(name)): group for name, group in named if not has_cjk(name)}
        han = {fold_text(name): group for name, group in named if has_cjk(name)}
        longest = sorted(han, key=lambda name: (-len(name), name))
        object.__setattr__(self, "_latin", latin)
        object.__setattr__(self, "_han", {name: han[name] for name in longest})

    def find_entities(self, text: str) -> list[NamedEntity]:
        """The entities of the table that the text names; Chinese names come last."""
        return [
            NamedEntity(written, group.names + group.also, group.kind, group.also)
            for written, group in (*self._find_latin(text), *self._find_han(text))
        ]

    def _find_latin(self, text: str) -> Iterator[tuple[str, NameGroup]]:
        words = [word for word in _WORDS.findall(text) if word != "s"]
        folded = [fold_word(word) for word in words]
        place = 0
        while place < len(words):
            end = place + 1
            for stop in range(min(place + _LONGEST, len(words)), place, -1):
                group = self._latin.get(tuple(folded[place:stop]))
                written = " ".join(words[place:stop])
                if group is not None and _is_meant(group, written):
                    yield written, group
                    end = stop
                    break
            place = end

    def _find_han(self, text: str) -> Iterator[tuple[str, NameGroup]]:
        left = fold_text(text)
        for name, group in self._han.items():
            if name in left:
                yield name, group
                left = left.replace(name, " ")


def _is_meant(group: NameGroup, written: str) -> bool:
    """Whether it is the name, and no word that differs from an abbreviation by its case alone."""
    words = fold_words(written)
    same = [name for name in group.names if fold_words(name) == words]
    return any(not _is_abbreviation(name) or written in (name, f"{name}s") for name in same)


@cache
def packaged_names() -> NameTable:
    """The table that comes with the package."""
    lines = read_packaged(__package__, "entity_names.tsv")
    groups = []
    for line in lines.splitlines():
        if line and not line.startswith("#"):
            kind, names, *also = line.split("\t")
            wider = also[0].split("|") if also else ()
            groups.append(NameGroup(kind, tuple(names.split("|")), tuple(wider)))
    return NameTable(groups)


# Ends of drugs' names by which the WHO tells their kind (stems of international nonproprietary
# names); those that other words have as well ("-one", "-ine") are left out.
_STEMS = re.compile(
    r"\b[a-z]{2,}(?:mab|nib|ciclib|parib|zomib|rafenib|prazole|sartan|vastatin|dipine|gliptin"
    r"|gliflozin|glutide|glitazone|cillin|floxacin|conazole|fungin|tegravir|previr|buvir|navir"
    r"|ciclovir|vudine|xaban|gatran|parin|triptan|setron|lukast|oxetine|azepam|barbital|dronate"
    r"|fibrate|zolid|cycline|thiazide|semide|tropium|olol|sentan|vaptan|profen|coxib|tercept"
    r"|gepant|orexant|siran|nersen|degib|lisib)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class NonproprietaryNames:
    """Words that are built like a drug's international nonproprietary name: "-mab", "-sartan"."""

    def find_entities(self, text: str) -> list[NamedEntity]:
        return [NamedEntity(found[0], (found[0],), DRUG) for found in _STEMS.finditer(text)]


@dataclass(frozen=True)
class GraphNames:
    """Names and synonyms of a concept graph."""

    graph: Graph
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""

    def find_entities(self, text: str) -> list[NamedEntity]:
        from osler.graph.link import Dictionary

        recogniser = self.recogniser or Dictionary(self.graph, STOP_WORDS)
        found = []
        for mention in recogniser.find_mentions(text):
            concepts = [c for id in mention.concepts if (c := self.graph.get_concept(id))]
            written = text[mention.start : mention.end]
            names = dict.fromkeys([written, *(n for concept in concepts for n in concept.names)])
            types = " ".join(kind for concept in concepts for kind in concept.types).casefold()
            kind = DRUG if any(part in types for part in _DRUG_TYPES) else ""
            found.append(NamedEntity(written, tuple(names), kind))
        return found


class ReadText:
    """A text in the forms in which names are looked for in it."""

    def __init__(self, text: str) -> None:
        self.raw = text
        self._folded = fold_text(text)
        self._line = f" {' '.join(fold_words(text))} "

    @cached_property
    def words(self) -> frozenset[str]:
        """The text's words, each in one spelling."""
        return frozenset(self._line.split())

    def has_name(self, name: str) -> bool:
        """Whether the text has the name; an abbreviation in its own case.

        The words of a longer name may stand in another order, close together, or be written as
        one: "acute myocardial infarction", "infarction, acute myocardial", "nonHodgkin".
        """
        if has_cjk(name):
            return fold_text(name) in self._folded
        if _is_abbreviation(name):
            # Chinese characters may stand beside it without a space.
            return re.search(rf"(?a:(?<!\w){re.escape(name)}s?(?!\w))", self.raw) is not None
        words = fold_words(name)
        if not words:
            return False
        if f" {' '.join(words)} " in self._line:
            return True
        return len(words) > 1 and (self._has_near(words) or self._has_joined(words))

    def _has_near(self, words: Sequence[str]) -> bool:
        """Whether all words stand in one stretch that has few others."""
        wanted, said = set(words), self._line.split()
        if not wanted.issubset(said):
            return False
        places = [i for i, word in enumerate(said) if word in wanted]
        return any(wanted.issubset(said[i : i + len(words) + _BETWEEN]) for i in places)

    def _has_joined(self, words: Sequence[str]) -> bool:
        joined = "".join(words)
        return len(joined) >= _JOINED and f" {joined} " in self._line

    def has_initials(self, short: str) -> bool:
        """Whether words in a row, function words aside, begin with an abbreviation's letters."""
        if len(short) < _INITIALS:
            return False
        words = [word for word in self._line.split() if word not in STOP_WORDS]
        return short.casefold() in "".join(word[0] for word in words)

    def has_any(self, names: Iterable[str]) -> bool:
        return any(map(self.has_name, names))


def fold_text(text: str) -> str:
    """Folds case and width, and takes out white space, which parts no Chinese words."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def fold_words(text: str) -> list[str]:
    """The text's words in one spelling, without a possessive's "s"."""
    return [fold_word(word) for word in split_words(text) if word != "s"]


@cache
def fold_word(word: str) -> str:
    """One spelling of a word: American, singular, lower case."""
    word = word.casefold().replace("ae", "e").replace("oe", "e").replace("sulph", "sulf")
    word = _singular(word)
    for british, american in _BRITISH:
        if len(word) > len(british) + 1 and word.endswith(british):
            return word.removesuffix(british) + american
    return word


# Ends of British words, longest first; "hour" and "four" are too short to be meant.
_BRITISH = (("isation", "ization"), ("our", "or"), ("tre", "ter"), ("bre", "ber"))


def _singular(word: str) -> str:
    if len(word) <= 3 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("stases", "noses", "roses", "yses")):
        return f"{word[:-2]}is"
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1]


def _is_abbreviation(name: str) -> bool:
    return len(name) <= _ABBREVIATED and name.isascii() and name.isupper() and name.isalpha()


_DEFINED = re.compile(r"([^().;:!?\n]{3,120}?)\s*[(（]([A-Za-z][A-Za-z0-9-]{1,9})[)）]")


def defined_abbreviations(texts: Iterable[str]) -> dict[str, str]:
    """Abbreviations that the texts define: "chronic kidney disease (CKD)" gives CKD its name.

    By Schwartz and Hearst (PSB 2003): the letters of the short form, read backwards, are found in
    the words before it, its first letter at the beginning of a word.
    """
    found: dict[str, str] = {}
    for text in texts:
        for match in _DEFINED.finditer(text):
            short = match[2]
            if sum(char.isupper() for char in short) < 2:
                continue
            if long := _long_form(match[1], short):
                found.setdefault(short, long)
    return found


def _long_form(before: str, short: str) -> str:
    """The words that the short form stands for; empty when they are not those before it."""
    words = before.split()[-2 * len(short) :]
    text = " ".join(words)
    at = len(text)
    for place in range(len(short) - 1, -1, -1):
        char = short[place].casefold()
        if not char.isalnum():
            continue
        at -= 1
        while at >= 0 and not (
            text[at].casefold() == char and (place > 0 or at == 0 or not text[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return ""
    long = text[at:]
    return long if " " in long or "-" in long else ""
