"""The rules file: what it may say, and a clear error for what it may not."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from osler.danger.phrases import WORD, BadPhrase, PhraseFinder, Span, Spelling
from osler.errors import BadConfig, read_settings_text
from osler.text import read_packaged
from osler.types import DangerKind

_Phrases = tuple[str, ...]
# Names of lists, of which one will do.
_AnyOf = tuple[str, ...]
_BUT_NOT = "\x00but not "


class _FileTable(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _PhraseList(_FileTable):
    en: _Phrases = ()
    zh: _Phrases = ()
    but_not: _Phrases = ()

    @model_validator(mode="after")
    def _check_content(self) -> _PhraseList:
        if not self.en and not self.zh:
            raise ValueError("has no phrases: write en = [...] or zh = [...]")
        return self


class LookAlike(_FileTable):
    """Words that rule danger out, unless others rule it in."""

    any: Annotated[_Phrases, Field(min_length=1)]
    unless: _Phrases = ()


class _KindTable(_FileTable):
    none: _Phrases = ()


class _RuleTable(_FileTable):
    name: Annotated[str, Field(min_length=1)]
    kind: DangerKind
    all: Annotated[tuple[str, ...], Field(min_length=1, max_length=6)]
    within: Annotated[int, Field(ge=1, le=200)]
    none: _Phrases = ()
    even_in: _Phrases = ()


class _CharactersTable(_FileTable):
    from_: Annotated[str, Field(alias="from")] = ""
    to: str = ""

    @model_validator(mode="after")
    def _check_lengths(self) -> _CharactersTable:
        if len(self.from_) != len(self.to):
            raise ValueError(
                f"from has {len(self.from_)} characters and to has {len(self.to)}: one for one"
            )
        return self


class _RealWordsTable(_FileTable):
    en: str = ""


class _RulesFile(_FileTable):
    spellings: dict[str, str] = {}
    characters: _CharactersTable = _CharactersTable()
    real_words: _RealWordsTable = _RealWordsTable()
    lists: dict[str, _PhraseList]
    look_alikes: dict[str, LookAlike] = {}
    kinds: dict[DangerKind, _KindTable] = {}
    rules: Annotated[tuple[_RuleTable, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class DangerRule:
    name: str
    kind: DangerKind
    all: tuple[_AnyOf, ...]
    within: int
    """Words between a phrase of the first entry and one of each other."""
    none: tuple[str, ...]
    """Look-alikes in which it stays silent."""


@dataclass(frozen=True)
class DangerRules:
    """A rules file, compiled: texts in, rules that apply out."""

    rules: tuple[DangerRule, ...]
    look_alikes: dict[str, LookAlike]
    finder: PhraseFinder

    def match(self, text: str) -> list[DangerRule]:
        """The rules that apply to the text, in the file's order."""
        found = _drop_exceptions(self.finder.find(text))
        silent = {
            name
            for name, one in self.look_alikes.items()
            if _has_any(found, one.any) and not _has_any(found, one.unless)
        }
        return [
            rule for rule in self.rules if silent.isdisjoint(rule.none) and _has_all(found, rule)
        ]


def _has_any(found: dict[str, list[Span]], names: _AnyOf) -> bool:
    return any(name in found for name in names)


def _has_all(found: dict[str, list[Span]], rule: DangerRule) -> bool:
    if not all(_has_any(found, names) for names in rule.all):
        return False
    entries = [
        sorted({span for name in names for span in found.get(name, ())}) for names in rule.all
    ]
    near = [_Nearest(spans) for spans in entries[1:]]
    reach = rule.within * WORD
    return any(all(one.is_near(span, reach) for one in near) for span in entries[0])


class _Nearest:
    """Spans by their start, asked for increasing places."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._at = 0

    def is_near(self, span: Span, reach: int) -> bool:
        """Whether one of them lies beside `span`, within `reach` half words."""
        spans = self._spans
        # Phrases are short: one that starts far before cannot reach here, now or later.
        while self._at < len(spans) and spans[self._at].end < span.start - reach:
            self._at += 1
        # A phrase's own words are not two phrases: what overlaps does not count.
        for at in range(self._at, len(spans)):
            other = spans[at]
            if other.start > span.end + reach:
                return False
            if other.start >= span.end or other.end <= span.start:
                return True
        return False


def _drop_exceptions(found: dict[str, list[Span]]) -> dict[str, list[Span]]:
    """The lists without what lies inside a phrase of their `but_not`."""
    kept = {}
    for name, spans in found.items():
        if name.startswith(_BUT_NOT):
            continue
        others = found.get(_BUT_NOT + name, ())
        covered = {place for other in others for place in range(other.start, other.end)}
        left = [one for one in spans if not covered.issuperset(range(one.start, one.end))]
        if left:
            kept[name] = left
    return kept


@cache
def packaged_rules() -> DangerRules:
    """The rules that come with Osler."""
    return parse_rules(read_packaged(__package__, "rules.toml"), "rules.toml")


@cache
def read_rules(path: Path) -> DangerRules:
    """Custom rules. Raises `BadConfig` that names file, rule and field."""
    text = read_settings_text(path, "danger.rules: ", "name a file that exists")
    return parse_rules(text, str(path))


def parse_rules(text: str, name: str) -> DangerRules:
    """The rules of a file `name` with this text. Raises `BadConfig`."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"{name}: not TOML: {error}", fix="correct that line") from error
    try:
        given = _RulesFile.model_validate(tables)
    except ValidationError as error:
        raise _explain_error(error, tables, name) from error
    _check_names(given, name)
    return _compile_rules(given, name)


def _explain_error(error: ValidationError, tables: dict[str, Any], name: str) -> BadConfig:
    first = error.errors()[0]
    place = list(first["loc"])
    where = ".".join(map(str, place))
    if len(place) >= 2 and place[0] == "rules" and isinstance(place[1], int):
        rule = tables["rules"][place[1]]
        title = rule.get("name", "") if isinstance(rule, dict) else ""
        known = f'"{title}"' if title else f"number {place[1] + 1}"
        where = f"rule {known}: {'.'.join(map(str, place[2:]))}"
    message = first["msg"].removeprefix("Value error, ")
    return BadConfig(f"{name}: {where}: {message}", fix="correct it: docs/guide/danger.md")


def _check_names(given: _RulesFile, name: str) -> None:
    """Raises `BadConfig` where something is named that the file does not have."""
    rules = [(f'rule "{rule.name}"', rule) for rule in given.rules]
    for where, rule in rules:
        for entry in rule.all:
            _require_known(name, f"{where}: all", _split_names(entry), given.lists, "list")
        silent = (*rule.none, *rule.even_in)
        _require_known(name, f"{where}: none", silent, given.look_alikes, "look-alike")
    for title, look in given.look_alikes.items():
        where = f'look-alike "{title}"'
        _require_known(name, where, (*look.any, *look.unless), given.lists, "list")
    for kind, table in given.kinds.items():
        _require_known(name, f"kind {kind}: none", table.none, given.look_alikes, "look-alike")


def _require_known(
    name: str, where: str, wanted: tuple[str, ...], known: dict[str, Any], what: str
) -> None:
    for one in wanted:
        if one not in known:
            raise BadConfig(f"{name}: {where}: there is no {what} {one!r}", fix=f"add the {what}")


def _split_names(entry: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in entry.split("|"))


def _compile_rules(given: _RulesFile, name: str) -> DangerRules:
    phrases: dict[str, tuple[str, ...]] = {}
    for title, one in given.lists.items():
        phrases[title] = one.en + one.zh
        phrases[_BUT_NOT + title] = one.but_not
    spelling = Spelling(
        given.spellings,
        dict(zip(given.characters.from_, given.characters.to, strict=True)),
        frozenset(given.real_words.en.split()),
    )
    try:
        finder = PhraseFinder(phrases, spelling)
    except BadPhrase as error:
        raise BadConfig(
            f"{name}: list {str(error).replace(_BUT_NOT, '')}",
            fix="write it as docs/guide/danger.md says",
        ) from error
    return DangerRules(
        tuple(_compile_rule(rule, given) for rule in given.rules),
        given.look_alikes,
        finder,
    )


def _compile_rule(rule: _RuleTable, given: _RulesFile) -> DangerRule:
    usual = given.kinds[rule.kind].none if rule.kind in given.kinds else ()
    silent = tuple(one for one in (*usual, *rule.none) if one not in rule.even_in)
    entries = tuple(_split_names(entry) for entry in rule.all)
    return DangerRule(rule.name, rule.kind, entries, rule.within, silent)
