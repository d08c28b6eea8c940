"""What is asked in what was typed: courtesies, misspelt words and other names.

A greeting and thanks are no part of a question. A word that the knowledge base lacks is mended to
the nearest of its words, and the reader sees which. Brands, lay words and abbreviations get the
names that texts use beside them. All of this widens a search; nothing is filtered by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING

from osler.kb.encoders.base import scale_to_unit
from osler.kb.search.sparse import stem_terms
from osler.retrieve import content_terms
from osler.retrieve.entity_names import packaged_names
from osler.retrieve.lexicon import Lexicon, OtherNames, packaged_lexicon
from osler.sources.common_words import is_common
from osler.text import has_cjk, language_of

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder, Vectors

_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|night|day)|greetings"
    r"|how are you(?: doing)?(?: today)?|(?:i )?hope you(?:['’]re| are) (?:well|fine|ok))\b(?!-\w)"
    r"(?: (?:there|all|doctor|doc|dr|team|everyone|everybody|sir|madam|folks))*[\s,.!?:;-]*",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?<![\s,.!;-])[\s,.!;-]*\b(?:many thanks|thanks|thank you|thx|cheers|(?<=[,.!?] )(?-i:[Tt]a)"
    r"|please help|much appreciated)\b"
    r"(?: (?:so|very) much| in advance| a lot| for (?:your|any) (?:help|reply|answer|time))*"
    r"(?:,? (?:doctor|doc|dr|nurse|all|everyone|everybody|team|sir|madam))*[\s.!]*$",
    re.IGNORECASE,
)
_COURTESY_ZH = re.compile(
    r"^[\s，。！]*(?:您好|你好|医生好|医生您好|大夫好|大夫您好|请问一下|请问|想问一下|咨询一下)"
    r"[\s，。！、:：]*|(?<![\s，。！])[\s，。！]*(?:谢谢|多谢|感谢)(?:您|你|了|医生|大夫|啦)*[\s。！]*$"
)
_SHORTEST, _LIKE, _ALIKE = 6, 0.86, 0.92
"""Letters from which a word may be misspelt; likeness of the word of a knowledge base that was
meant, and of one of the lexicon: names of drugs differ by little."""
_WORD = re.compile(r"\b[A-Za-z]{6,}\b(?!['’]t)")
_MARKS = " .,;:!?()'’\""
_CLASSES = 2
"""Classes of a drug that are searched for as well. Of 894 seen questions 713 have a right first
quote and 782 one in three; 706 and 774 where only drugs asked about together had theirs."""
_NAMES = 3
"""Other names that are put beside a word."""


class BaseVocabulary:
    """The words of a knowledge base, for spelling: which of its terms are near to a word."""

    def __init__(
        self,
        rarity: Callable[[Sequence[str]], Mapping[str, float]],
        near: Callable[[str], Sequence[str]],
        is_found: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`rarity` gives inverse document frequencies; `near` terms that begin like a word, of
        which those that `is_found` denies are not told."""
        self._near, self._is_found = near, is_found
        self._rarity = rarity

    def mend_word(self, word: str) -> str:
        """The term that a misspelt word meant; "" where it is known, or nothing is near."""
        plain = word.casefold()
        unknown, rarest = self._rarity([plain])[plain], self._rarity(["zq"])["zq"]
        if unknown < rarest:
            return ""
        meant = map(_whole_word, get_close_matches(plain, self._near(plain), 3, _LIKE))
        return next(filter(self._is_found, meant), "")


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """What was typed, and what is searched for."""

    written: str
    text: str
    """What is asked, spelt right and without courtesies."""
    names: tuple[str, ...] = ()
    """Other names of what it names."""
    expanded: str = ""
    """The text, each name followed by its other names in brackets; "" if absent."""
    called: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each name as it stands in the text, with its other names."""
    mended: tuple[tuple[str, str], ...] = ()
    """Words as typed, and as they were searched for."""

    @property
    def spelt(self) -> str:
        """What was typed, with the mended words."""
        return replace_words(self.written, self.mended)

    @property
    def full(self) -> str:
        """The text with other names, where it has any."""
        return self.expanded or self.text


@dataclass(frozen=True)
class QuestionReader:
    """Reads what was typed; `vocabulary` mends words to those of a knowledge base."""

    vocabulary: BaseVocabulary | None = None
    lexicon: Lexicon | None = None
    """`None` = the packaged one."""

    def read(self, written: str) -> AskedQuestion:
        """Never empty: what has no question in it is read as it stands. Blocks."""
        text, mended = self._mend_words(strip_courtesies(written))
        return _read_names(self.lexicon or packaged_lexicon(), written, text, mended)

    def _mend_words(self, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        if language_of(text) != "en":
            return text, ()
        known = self.lexicon or packaged_lexicon()
        mended = {}
        for word in dict.fromkeys(_WORD.findall(text)):
            if len(word) < _SHORTEST or is_common(word) or _is_name(known, word):
                continue
            if meant := _mend_name(known, word) or self._mend_by_base(word):
                mended[word] = meant
        return replace_words(text, tuple(mended.items())), tuple(mended.items())

    def _mend_by_base(self, word: str) -> str:
        return self.vocabulary.mend_word(word) if self.vocabulary else ""


def _is_name(lexicon: Lexicon, word: str) -> bool:
    """Whether a word is a name that is known, which no other drug's name may take the place of."""
    if lexicon.find_names(word) or word.casefold() in lexicon.drugs:
        return True
    return bool(packaged_names().find_entities(word))


@lru_cache(maxsize=4_096)
def _mend_name(lexicon: Lexicon, word: str) -> str:
    """The word of the lexicon that was meant; "" where none is that near."""
    plain = word.casefold()
    like = [one for one in lexicon.words if one[:2] == plain[:2]]
    meant = get_close_matches(plain, like, 1, _ALIKE)
    meant = meant or [one for one in like if _is_shortened(plain, one)]
    return meant[0] if len(meant) == 1 and meant[0] != plain else ""


def _is_shortened(word: str, name: str) -> bool:
    """Whether it is the name with some letters left out between its ends: "testerone"."""
    left = iter(name)
    missing = len(name) - len(word)
    ends = word[:4] == name[:4] and word[-4:] == name[-4:]
    return ends and len(word) > 7 and missing < 4 and all(letter in left for letter in word)


def read_query(reader: QuestionReader | None, query: str) -> AskedQuestion:
    """What is asked in a query; without a reader, all of it as it stands."""
    return reader.read(query) if reader else AskedQuestion(query, query)


@lru_cache(maxsize=512)
def _read_names(
    lexicon: Lexicon, written: str, text: str, mended: tuple[tuple[str, str], ...]
) -> AskedQuestion:
    if language_of(text) == "zh":
        found = _names_in_mixed(text)
    else:
        found = _add_classes(lexicon, text, lexicon.find_names(text))
        found += _names_in_mixed(text) if has_cjk(text) else []
    names = tuple(dict.fromkeys(name for one in found for name in one.names))
    called = tuple((text[one.start : one.end], one.names) for one in found)
    return AskedQuestion(written, text, names, _put_names(text, found), called, mended)


def _whole_word(stem: str) -> str:
    """The known word with this stem, since the index holds stems; the stem where none is known."""
    like = [word for word in packaged_lexicon().words if word.startswith(stem[:4])]
    stems = stem_terms(like) if like else {}
    return next((word for word in like if stems.get(word) == stem), stem)


def asked_vector(encoder: Encoder, asked: AskedQuestion) -> Vectors:
    """Shape (1, dimension): between the vectors of the question and of it with other names."""
    vectors = encoder.encode([asked.text], kind="query")
    if asked.expanded:
        vectors = scale_to_unit(vectors + encoder.encode([asked.expanded], kind="query"))
    return vectors


def replace_words(text: str, mended: Sequence[tuple[str, str]]) -> str:
    """The text with each first word of a pair replaced by the second."""
    for word, meant in mended:
        text = re.sub(rf"\b{word}\b", meant, text)
    return text


def find_mended(typed: str, searched: str) -> list[str]:
    """The words of a query that stand for misspelt ones of what was typed."""
    pairs = list(zip(typed.split(), searched.split(), strict=False))
    if len(pairs) < len(searched.split()) or len(pairs) < len(typed.split()):
        return []
    changed = [(one.strip(_MARKS), two.strip(_MARKS)) for one, two in pairs if one != two]
    alike = all(get_close_matches(one.casefold(), [two], 1, _LIKE) for one, two in changed)
    return [two for _, two in changed] if alike else []


def strip_courtesies(written: str) -> str:
    """What was typed on one line, without greetings and thanks; these alone stay as they are."""
    text = " ".join(written.split())
    return _strip_all(text) or text


def _strip_all(text: str) -> str:
    """What is left without them, however many; "" where there is nothing else."""
    before, left = "", text
    while left != before:
        before = left
        for courtesy in (_GREETING, _THANKS, _COURTESY_ZH):
            left = courtesy.sub("", left).strip()
    return left


def asks_something(written: str) -> bool:
    """Whether there is a word to search for, beside greetings and thanks."""
    text = _strip_all(" ".join(written.split()))
    return any(not term.replace(".", "").isdigit() for term in content_terms(text))


def is_courtesy(written: str) -> bool:
    """Whether there is nothing but greetings and thanks."""
    return not _strip_all(" ".join(written.split()))


def _add_classes(lexicon: Lexicon, text: str, found: Sequence[OtherNames]) -> list[OtherNames]:
    """The names, and of drugs their classes as well: what is said of a class holds for each."""
    inside = [range(one.start, one.end) for one in found]
    plain = [
        OtherNames(start, end, ())
        for start, end in lexicon.find_drugs(text)
        if not any(start in one for one in inside)
    ]
    classes = {
        one: lexicon.find_classes((text[one.start : one.end], *one.names))[:_CLASSES]
        for one in (*found, *plain)
    }
    widened = (replace(one, names=(*one.names, *more)) for one, more in classes.items())
    return sorted((one for one in widened if one.names), key=lambda one: one.start)


def _put_names(text: str, found: Sequence[OtherNames]) -> str:
    """The text with other names in brackets behind each name; "" without any."""
    if not found:
        return ""
    for one in sorted(found, key=lambda one: -one.end):
        text = f"{text[: one.end]} ({', '.join(one.names[:_NAMES])}){text[one.end :]}"
    return text


def _names_in_mixed(text: str) -> list[OtherNames]:
    """Other names in the text's language, of Chinese names also where they stand in English."""
    language, found = language_of(text), []
    for entity in packaged_names().find_entities(text):
        start = text.find(entity.written)
        others = [n for n in entity.names if language_of(n) == language and n != entity.written]
        if start >= 0 and others and "zh" in (language, language_of(entity.written)):
            found.append(OtherNames(start, start + len(entity.written), tuple(others)))
    return found
