"""Whether a passage bears out a statement: by words, names, numbers, directions and negations.

The whole passage counts, with its heading. A statement is **borne out** when enough of its words
of content stand there, and nothing of it is missing that would make it another statement:

- its names of drugs and diseases (by any of their names), its abbreviations and codes;
- its amounts, in their unit, and its other numbers, near a word that they stand near to;
- its words that point somewhere (`opposites.toml`): the same way, beside the same words, and not
  more closely the other way;
- its negations, of the same words; and what it affirms is not only denied there.

Measured by `benchmarks/citations.py`. It is no inference: a conclusion that a passage has only in
numbers is not borne out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache

from osler.answer.directions import (
    PlacedWord,
    is_negation,
    read_poles,
    read_words,
    stem_words,
    words_near,
)
from osler.answer.disagreement import other_numbers, read_amounts
from osler.answer.read_passages import ReadPassage, number_of, spell_amounts
from osler.retrieve.entity_names import NonproprietaryNames, defined_abbreviations, packaged_names
from osler.retrieve.lexicon import packaged_lexicon
from osler.text import split_words, word_set

LEAST_SHARE = 0.5
"""Share of a statement's words of content, common ones counting less, that a passage must have."""
_COMMON_WEIGHT = 0.3
_REACH, _CLOSE = 6, 2
"""Words of content around one that say what it is said of."""
_SAME_WORD, _SENTENCE = 0.5, 0.1
"""What the very word counts, and each further word of the statement in its sentence."""
_FEW = 3
"""Words of content of a statement that must all stand there."""
_VERBS = word_set(
    "is are was were be been can could may might should must will would has have had does"
    " do did cannot"
)
"""Words before which the subject stands."""
_LEAST_ADDED = 2
_LABELS = word_set("type stage phase grade class day week month group category level factor part")
"""Words whose number stands behind them."""
_OVER = word_set("over above more older greater higher longer")
_UNDER = word_set("under below less younger fewer lower shorter")
_CLAUSE_ENDS = re.compile(r"[,;:，；：、—]|\s(?:and|but)\s")
_DENIED, _LEAST_DENIED = 3, 2
"""Words behind a negation that say what it denies; and words that a passage must deny before it
contradicts a statement that does not."""
_LED = re.compile(r"^\s*(?:yes\b|no\s*[,.:;-])[\s,.:;-]*", re.IGNORECASE)
"""A reply to a question, which "No difference was seen" does not begin with."""
_PRONOUN = re.compile(
    r"(?:it|its|they|their|these|those|this|he|she|such)\b|[它其这该]", re.IGNORECASE
)
_CODE = re.compile(r"\b(?=[\w-]*[A-Z\d])[A-Za-z][\w-]*\b")
_ROMAN = re.compile(r"[IVX]+")
_COMMON = (
    "study studies result finding suggest suggested patient conclusion conclude concluded"
    " show reason showed shown found find data evidence trial significant significantly associated"
    " association"
    " may might used use using based research further future need needed important indicate"
    " indicated report reported demonstrate demonstrated observed therefore thus although present"
    " case group effect treatment clinical including include included well compared analysis method"
    " possible potential various several role factor considered consider appear seem provide help"
    " given known called related type number various person people overall furthermore moreover"
    " however addition summary taken together etc administered stand who whom whose which"
)


@dataclass(frozen=True, slots=True)
class Support:
    """How far a passage bears out a statement."""

    share: float
    """Of the statement's words of content, common ones counting less, 0 to 1."""
    lacks: tuple[str, ...]
    """What the passage lacks or has otherwise, in the statement's words: names, numbers, words
    that point another way, negations."""

    @property
    def is_enough(self) -> bool:
        return not self.lacks and self.share >= LEAST_SHARE


def find_support(statement: str, passage: ReadPassage, about: str = "") -> Support:
    """How far the passage bears out the statement; one that begins with a pronoun is about
    what `about` names. Blocks, for milliseconds."""
    said = spell_amounts(_LED.sub("", statement))
    words = read_words(said)
    if passage.has_sentences(words):
        return Support(1.0, ())
    covered, missing_names = _match_names(said, passage)
    units = {word for amount in read_amounts(said) for word in split_words(amount.words)}
    asked = {stem: one for stem, one in _content_of(words).items() if one.word not in units}
    meant = _content_of(read_words(about)) if _PRONOUN.match(said) else {}
    had = {stem for stem, one in asked.items() if stem in covered or passage.has_word(one)}
    whole = sum(map(_weight_of, asked))
    share = sum(map(_weight_of, had)) / whole if whole else 0.0
    lacks = (
        *missing_names,
        *_missing_subject(words, asked, had),
        *_missing_meant(meant, passage),
        *(_missing_asked(asked, had, about) if passage.heading else ()),
        *_added_clauses(said, {*had, *covered, *stem_words(list(units)).values()}),
        *_missing_codes(said, covered, passage),
        *_missing_numbers(said, words, passage),
        *_missing_directions(words, passage),
        *_missing_negations(words, passage),
    )
    return Support(share, tuple(dict.fromkeys(lacks)))


def _missing_subject(
    words: Sequence[PlacedWord], asked: Mapping[str, PlacedWord], had: Set[str]
) -> list[str]:
    """The words of its subject where none is had, and of a statement of a few words any lost that
    is not common."""
    verb = next((one.at for one in words if one.word in _VERBS), 0)
    subject = {
        stem: one.word
        for stem, one in asked.items()
        if one.at < verb and one.sentence == 0 and _weight_of(stem) == 1.0
    }
    if subject and had.isdisjoint(subject):
        return list(subject.values())
    if len(asked) > _FEW:
        return []
    return [one.word for stem, one in asked.items() if stem not in had and _weight_of(stem) == 1.0]


def _missing_meant(meant: Mapping[str, PlacedWord], passage: ReadPassage) -> list[str]:
    """The words that a pronoun stands for, where the passage has none of them."""
    told = [one for stem, one in meant.items() if _weight_of(stem) == 1.0]
    return [] if any(map(passage.has_word, told)) else [one.word for one in told]


def _missing_asked(asked: Mapping[str, PlacedWord], had: Set[str], about: str) -> list[str]:
    """Words of the question that the statement repeats and a passage lacks: it is of another
    subject. One without a heading may be a piece whose subject stood before it."""
    shared = asked.keys() & _content_of(read_words(about)).keys() - had
    return [one.word for stem, one in asked.items() if stem in shared and _weight_of(stem) == 1.0]


def _added_clauses(said: str, had: Set[str]) -> Iterator[str]:
    """Clauses of which the passage has no word: what was added to what it says."""
    for clause in _CLAUSE_ENDS.split(said):
        told = [one for one in _content_of(read_words(clause)) if _weight_of(one) == 1.0]
        if len(told) >= _LEAST_ADDED and had.isdisjoint(told):
            yield clause.strip()


def _content_of(words: Sequence[PlacedWord]) -> dict[str, PlacedWord]:
    """Words of content by stem, without those that are looked at apart."""
    poles = read_poles()
    found: dict[str, PlacedWord] = {}
    for one in words:
        apart = one.word in poles or is_negation(one.word) or number_of(one.word)
        if one.is_content and not apart:
            found.setdefault(one.stem, one)
    return found


@cache
def _common_stems() -> frozenset[str]:
    return frozenset(stem_words(_COMMON.split()).values())


def _weight_of(stem: str) -> float:
    return _COMMON_WEIGHT if stem in _common_stems() else 1.0


def _match_names(said: str, passage: ReadPassage) -> tuple[set[str], list[str]]:
    """Stems of the names that the passage has, and the names that it lacks."""
    covered: list[str] = []
    missing = []
    for written, names in _names_in(said):
        if any(map(passage.has_name, names)) or passage.has_initials_of(written):
            covered += split_words(written)
        else:
            missing.append(written)
    for other in packaged_lexicon().find_names(said):
        if any(map(passage.has_name, other.names)):
            covered += split_words(said[other.start : other.end])
    stems = {*stem_words(covered).values()}
    return stems, [name for name in missing if not stems.issuperset(_stems_of(name))]


def _stems_of(text: str) -> frozenset[str]:
    return frozenset(stem_words(split_words(text)).values())


def _names_in(said: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Drugs, diseases and tests that a statement names, with all names of each but wider ones."""
    for one in (
        *packaged_names().find_entities(said),
        *NonproprietaryNames().find_entities(said),
    ):
        yield one.written, (one.written, *(name for name in one.names if name not in one.also))
    lexicon = packaged_lexicon()
    for start, end in lexicon.find_drugs(said):
        yield said[start:end], (said[start:end],)


def _missing_codes(said: str, covered: Set[str], passage: ReadPassage) -> Iterator[str]:
    """Abbreviations and codes ("CD40", "IL-6") that the passage has in no form."""
    own = defined_abbreviations([said])
    for code in _CODE.findall(said):
        capitals = sum(char.isupper() or char.isdigit() for char in code)
        if capitals < 2 or _ROMAN.fullmatch(code) or _stems_of(code) <= covered:
            continue
        if not passage.has_code(code) and not (code in own and passage.has_name(own[code])):
            yield code


def _missing_numbers(said: str, words: Sequence[PlacedWord], passage: ReadPassage) -> Iterator[str]:
    measured = read_amounts(said)
    for amount in measured:
        if not any(amount.lies_within(other) for other in passage.amounts):
            yield amount.words
    plain = other_numbers(said)
    for one in words:
        value = number_of(one.word)
        there = passage.numbers.get(value, [])
        # "4000 mg" may be written "4 g", and "once daily" "daily".
        is_amount = bool(measured) and one.word not in plain and (value == "1" or not there)
        if not value or not one.word[0].isdecimal() or is_amount:
            continue
        if not any(_is_number_of(one, words, other, passage) for other in there):
            yield one.word


def _is_number_of(
    one: PlacedWord, words: Sequence[PlacedWord], other: PlacedWord, passage: ReadPassage
) -> bool:
    """Whether a number of the statement stands near the same words in the passage, and behind the
    same word where that says what it is the number of ("type 2")."""
    label = words[one.at - 1].word if one.at else ""
    if label in _LABELS and (other.at == 0 or passage.words[other.at - 1].word != label):
        return False
    bounds = {_bound_of(one, words), _bound_of(other, passage.words)}
    if bounds == {1, -1}:
        return False
    near = words_near(words, one, _REACH)
    return not near or bool(near & words_near(passage.words, other, _REACH))


def _bound_of(one: PlacedWord, words: Sequence[PlacedWord]) -> int:
    """1 for "over 12", -1 for "under 12" and "younger than 12", else 0."""
    before = [each.word for each in words[max(0, one.at - 2) : one.at] if each.word != "than"][-1:]
    return len(_OVER.intersection(before)) - len(_UNDER.intersection(before))


def _missing_directions(words: Sequence[PlacedWord], passage: ReadPassage) -> Iterator[str]:
    """Words that point a way for which the passage has no word, or a nearer one against it."""
    for one in words:
        for axis, pole in read_poles().get(one.word, {}).items():
            if pole.opposes and not _points_alike(one, axis, words, passage):
                yield one.word


def _points_alike(
    one: PlacedWord, axis: str, words: Sequence[PlacedWord], passage: ReadPassage
) -> bool:
    poles, ahead = read_poles(), axis == "time"
    around = _Surroundings.of_word(one, words, ahead=ahead)
    alike = against = 0.0
    for other in passage.pointing.get(axis, ()):
        pole = poles[other.word][axis]
        fit = around.fit(other, passage)
        if (pole.way == poles[one.word][axis].way) == (other.negated == one.negated):
            alike = max(alike, fit + _SAME_WORD * (other.stem == one.stem))
        elif pole.opposes:
            against = max(against, fit)
    return alike > against


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What a word of a statement stands beside."""

    near: tuple[frozenset[str], frozenset[str]]
    every: frozenset[str]
    ahead: bool

    @classmethod
    def of_word(
        cls, one: PlacedWord, words: Sequence[PlacedWord], *, ahead: bool = False
    ) -> _Surroundings:
        every = frozenset(each.stem for each in words if each.is_content)
        return cls(_near_and_close(words, one, ahead), every, ahead)

    def fit(self, other: PlacedWord, passage: ReadPassage) -> float:
        """How far a word of the passage stands beside the same words."""
        theirs = _near_and_close(passage.words, other, self.ahead)
        shared = sum(len(a & b) for a, b in zip(self.near, theirs, strict=True))
        return shared + _SENTENCE * len(self.every & passage.stems_of[other.sentence])


def _near_and_close(
    words: Sequence[PlacedWord], one: PlacedWord, ahead: bool
) -> tuple[frozenset[str], frozenset[str]]:
    return (
        words_near(words, one, _REACH, ahead=ahead),
        words_near(words, one, _CLOSE, ahead=ahead),
    )


def _missing_negations(words: Sequence[PlacedWord], passage: ReadPassage) -> Iterator[str]:
    """Negations whose next words the passage does not deny as well, or affirms nearer by; and
    what it only denies."""
    denying = [one for one in words if is_negation(one.word)]
    for one in denying:
        behind = (each for each in words[one.at + 1 :] if each.sentence == one.sentence)
        reach = 1 if one.word == "without" else _DENIED
        denied = [each for each in behind if each.negated and each.is_content][:reach]
        if not denied:  # "never before, because …": the word alone
            if one.stem not in passage.by_stem:
                yield one.word
        elif not any(_is_denied(each, words, passage) for each in denied):
            yield one.word
    if not denying:
        yield from _only_denied(words, passage)
    for one in words:
        beside = next((each for each in words[one.at + 1 :] if each.is_content), one)
        there = passage.by_stem.get(beside.stem, ()) if one.word == "with" else ()
        if there and not beside.negated and all(other.negated for other in there):
            yield one.word


def _is_denied(one: PlacedWord, words: Sequence[PlacedWord], passage: ReadPassage) -> bool:
    around = _Surroundings.of_word(one, words)
    fits: dict[bool, float] = {True: 0.0, False: 0.0}
    for other in passage.by_stem.get(one.stem, ()):
        fits[other.negated] = max(fits[other.negated], around.fit(other, passage))
    return fits[True] > fits[False]


def _only_denied(words: Sequence[PlacedWord], passage: ReadPassage) -> list[str]:
    found = []
    for stem, one in _content_of(words).items():
        there = passage.by_stem.get(stem)
        if there and all(other.negated for other in there):
            found.append(one.word)
    return found if len(found) >= _LEAST_DENIED else []
