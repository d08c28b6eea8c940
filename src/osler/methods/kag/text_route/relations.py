"""Relations that questions chain and texts state, as `relations.toml` describes them (English)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_SUBJECT = "{subject}"
_UPPER = r"[^\W\d_a-zß-öø-ÿ]"
_WORD = (
    rf"(?:(?:Jr|Sr|St|Dr|Mr|Mrs|Lt)\.|(?:{_UPPER}\.)+(?= ?{_UPPER}|,)|{_UPPER}[\w'’&/]*(?:- ?\w+)*)"
)
_SMALL = (
    r"(?:of the|de la|de|del|della|der|den|van|von|zu|of|the|bin|bint|ibn|al|el|la|le|du|di|da|dos"
    r"|y|und|no|mac|ap)"
)
_RANK = r"(?:\d+(?:st|nd|rd|th) )?(?:Grand )?(?:Prince|Princess|Duke|Duchess|Count|Countess|King"
_RANK += r"|Queen|Lord|Lady|Earl|Baronet|Baron|Baroness|Margrave|Landgrave|Elector"
_RANK += r"|Marquess|Marquis|Infante)"
NAME = rf"{_WORD}(?:[ -](?:{_SMALL}[ -])?{_WORD})*"
TITLED = rf"{NAME}(?:,? {_RANK}\b(?: (?:of|de|in) {NAME})?)?"
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.?"
)
# Tokenisers glue dates: "28 October 19133 June 1996".
_YEAR = rf"(?:\d{{4}}(?=\d{{1,2}} {_MONTH})|\d{{3,4}}(?!\d))"
DATE = (
    rf"(?<!\d)(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? ?{_YEAR}"
    rf"|{_MONTH} ?\d{{1,2}}(?:st|nd|rd|th)?,? ?{_YEAR}|{_MONTH},? ?{_YEAR}|{_YEAR})"
)
_LINKS = (
    r"(?:in|at|on|to|for|from|into|by|with|and|or|but|who|which|that|during|after|before|of|until|as"
    r"|is|was|were|when|while|until|since|he|she|they|it)\b"
)
_NO_NAME = (
    r"(?:He|She|They|It|The|This|That|In|On|At|A|An|His|Her|Their|As|When|After|Before|For|From|By"
    r"|With|However|During|Since|While|But|And)(?! [A-Z])|" + _MONTH.removesuffix(r"\.?")
)
_STYLES = (
    "King|Queen|Duke|Count|Rabbi|Baron|President|Director|Producer|Singer|Actor|Actress|Lord|Lady"
)
_UNTIL = r"(?=[.,;()]|$| (?:at|in|on|and|while|after|which|that|during|when|two|three)\b)"


@dataclass(frozen=True, slots=True)
class TextRelation:
    """A relation, the words that ask for it, and the patterns by which texts state it."""

    name: str
    nouns: tuple[str, ...]
    asks: tuple[re.Pattern[str], ...]
    """Whole questions and relative clauses; group 1 is the subject."""
    says: tuple[str, ...]
    """Best first; the group `answer` is the value, or `start` and `until` are two dates."""
    about: tuple[str, ...]
    """As `says`, before {subject} is filled in."""

    def own_patterns(self) -> tuple[re.Pattern[str], ...]:
        """`says`, compiled when a text is first read for it: all take a second."""
        return _compile_all(self.says)

    def about_patterns(self, subject: str) -> list[re.Pattern[str]]:
        """The patterns for texts about something else that name `subject`."""
        return [re.compile(each.replace(_SUBJECT, re.escape(subject))) for each in self.about]


@cache
def _compile_all(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, patterns))


@dataclass(frozen=True, slots=True)
class Comparator:
    """Words that compare two things by the value of a relation."""

    words: re.Pattern[str]
    relation: str
    order: str


@dataclass(frozen=True)
class TextVocabulary:
    relations: Mapping[str, TextRelation]
    nouns: Mapping[str, tuple[str, ...]]
    """By noun in small letters: the relations to follow, in order."""
    noun: str
    """A pattern for any of the nouns."""
    comparators: tuple[Comparator, ...]
    countries: Mapping[str, str]
    """Names and adjectives of countries, each with the country."""


def fill_pattern(
    pattern: str, countries: Iterable[str] = (), adjectives: Iterable[str] = ()
) -> str:
    """A pattern of `says` with its placeholder as the group `answer`."""
    demonym = _any_of(adjectives)
    people = rf"(?:{demonym})(?:- ?(?:{demonym}|born))*"
    lead = rf"(?:(?:{people}|(?!{_LINKS})[a-z][\w-]*)[ ]+){{0,7}}?(?!(?:{people}|{_NO_NAME})\b)"
    lead += rf"(?:(?:{_STYLES}) )?"
    one = {
        "name": NAME,
        "place": rf"{_WORD}(?: (?:{_SMALL} )?{_WORD}){{0,4}}(?:, {_WORD}(?: {_WORD})*)?",
        "date": DATE,
        "year": r"\d{4}(?!\d)",
        "country": rf"(?:{_any_of(countries)})(?!\w)",
        "demonym": rf"(?:{demonym})(?!\w| (?:Columbia|Ocean|Republic|Sea))"
        rf"(?:[-–/ ]+(?:{demonym})\b)*",
        "phrase": rf"\w[\w' -]{{1,50}}?{_UNTIL}",
        "organism": r"[A-Z][a-z]+(?:\. ?[a-z]+| [a-z]+)|[A-Z][\w-]+ virus(?: \w)?|[a-z]+virus",
        "award": rf"(?:{_WORD} )*(?:Award|Prize|Medal|Oscar|Grammy|Fellowship)s?"
        rf"(?: (?:for|of|in) {NAME})?|Order of {NAME}",
    }

    def fill(match: re.Match[str]) -> str:
        kind, _, listed = match[1].partition(":")
        if match[0] == _SUBJECT:
            return _SUBJECT
        if kind == "other":
            return f"(?:{TITLED})"
        if kind in ("from", "until"):
            return f"(?P<{'start' if kind == 'from' else 'until'}>{DATE})"
        if kind == "number":
            numbers = r"\d[\d.,]*(?: ?(?:to|and|–|-) ?\d[\d.,]*)?"
            return rf"(?P<answer>{numbers}[ -]?(?:{listed})\b)"
        if kind == "person":
            return f"{lead}(?P<answer>{TITLED})"
        if listed:
            ahead = rf"(?:{_WORD} )+" if kind == "name" else r"\b"
            return rf"(?P<answer>{ahead}(?:{listed})\b)"
        return f"(?P<answer>{one[kind]})"

    return re.sub(r"\{([a-z]\w*(?::[^}]*)?)\}", fill, pattern)


@cache
def read_text_vocabulary() -> TextVocabulary:
    """The vocabulary that comes with Osler."""
    folder = files(__package__)
    tables = tomllib.loads(folder.joinpath("relations.toml").read_text(encoding="utf-8"))
    countries, adjectives = _read_countries(folder.joinpath("countries.tsv").read_text("utf-8"))
    nouns: dict[str, tuple[str, ...]] = {}
    relations = {}
    for name, row in tables["relation"].items():
        for noun in row["noun"]:
            nouns.setdefault(noun, (name,))
        says = [fill_pattern(each, countries, adjectives) for each in row["says"]]
        relations[name] = TextRelation(
            name,
            tuple(row["noun"]),
            tuple(_ask_pattern(each) for each in row.get("asks", ())),
            tuple(says),
            tuple(fill_pattern(each, countries, adjectives) for each in row.get("about", ())),
        )
    nouns.update({noun: tuple(path) for noun, path in tables["expand"].items()})
    comparators = tuple(
        Comparator(
            re.compile(rf"(?i)\b(?:{_any_of(row['words'])})\b"), row["relation"], row["order"]
        )
        for row in tables["compare"]
    )
    return TextVocabulary(
        relations, nouns, f"(?:{_any_of(nouns)})", comparators, {**adjectives, **countries}
    )


def _read_countries(table: str) -> tuple[dict[str, str], dict[str, str]]:
    """Names and adjectives, each with the first name of its country."""
    countries: dict[str, str] = {}
    adjectives: dict[str, str] = {}
    for line in table.splitlines():
        names, _, words = line.partition("\t")
        first, *_ = names.split("|")
        countries.update(dict.fromkeys(names.split("|"), first))
        adjectives.update(dict.fromkeys(words.split("|"), first))
    return countries, adjectives


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True))) or "(?!)"


def _ask_pattern(form: str) -> re.Pattern[str]:
    return re.compile(re.escape(form).replace(r"\{\}", "(.+)"), re.IGNORECASE)
