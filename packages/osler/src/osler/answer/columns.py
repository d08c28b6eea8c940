"""Which column of a table a question asks for, where it names the row.

A row is a passage "drug: Ibuprofen; max daily dose: 1.2 g", whose title is its key. What is left of
the question without the key is compared with the columns of the table, and with what else may be
asked of such a thing (`columns.txt`): where that is nearer, or the row's cell of the column is
empty, the row does not answer, however well it is named. So the question's row and column decide
together with the judge, which was fitted on prose and counts a row that is named as an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log
from typing import Protocol

from osler.answer.sentences import QuoteCandidate
from osler.kb.search.sparse import stem_terms
from osler.retrieve import STOP_WORDS
from osler.retrieve.asked import AskedQuestion
from osler.retrieve.entity_names import fold_words
from osler.retrieve.lexicon import packaged_lexicon
from osler.retrieve.naming import find_respelt
from osler.sources.catalogue import TABLE
from osler.text import has_cjk, read_packaged
from osler.types import Hit, Language

_CELL = re.compile(r"(?:^|(?<=; ))([^;:\n]{1,80}): (.*?)(?=; [^;:\n]{1,80}: |$)", re.MULTILINE)
_BIAS, _JUDGED, _MARGIN = 2.1, 0.26, 3.7
"""Of a logistic regression over 171 questions whose row is named: logit of the probability so far,
and how much nearer the best column is than the best of what else may be asked."""
_EMPTY, _CONDITION = -1.5, 0.6
"""In place of that margin where the row has no cell in the column; taken from it where the row says
nothing of what the question tells of the patient, as of children."""
_APART = 0.3
"""By which the best column is nearer than the next, so that its cell alone is quoted: 94 of 94."""
_SURE = 0.999
_ALONE, _LEAST = 0.12, 0.35
"""By which a row's relevance in Chinese is above the next one's, and its least, where it is asked
of, by whatever name: 68 rows of 80 questions, no other row, and 11 of 20 without an answer."""


class Nearness(Protocol):
    """How near texts are to a question, on one scale for all."""

    async def __call__(self, asked: str, texts: Sequence[str], /) -> Sequence[float]: ...


@dataclass(frozen=True)
class NamedRow:
    """A quote of a row that the question names, and the columns of its table."""

    quote: QuoteCandidate
    asked: str
    """The question without the row's name."""
    columns: tuple[str, ...]
    is_whole: bool
    """Whether it is named with all its words, and not only what it is a kind of."""

    @property
    def cells(self) -> dict[str, tuple[int, int]]:
        """Start and end in the passage of each cell, with its column's name."""
        return {m[1]: m.span() for m in _CELL.finditer(self.quote.hit.passage.text)}

    def weigh(self, nearness: Sequence[float], others: float) -> QuoteCandidate:
        """The quote with its probability, narrowed to one cell where that is asked for alone."""
        ranked = sorted(zip(nearness, self.columns, strict=True), reverse=True)
        (best, column), second = ranked[0], ranked[1][0] if len(ranked) > 1 else -1.0
        cell = self.cells.get(column)
        lacks = _CONDITION if "condition" in self.quote.failed else 0.0
        margin = best - others - lacks if cell else _EMPTY
        share = min(max(self.quote.relevance, 1 - _SURE), _SURE)
        logit = _BIAS + _JUDGED * log(share / (1 - share)) + _MARGIN * margin
        likely = 1 / (1 + exp(-logit))
        if not self.is_whole:
            return replace(self.quote, relevance=min(likely, self.quote.relevance))
        weighed = replace(self.quote, relevance=likely)
        is_said = frozenset() < _words(column) <= _words(self.asked)
        if cell and margin > 0 and (is_said or best - second >= _APART):
            weighed = replace(weighed, start=cell[0], end=cell[1])
        return weighed


async def weigh_rows(
    asked: AskedQuestion,
    found: Sequence[QuoteCandidate],
    hits: Sequence[Hit],
    nearness: Nearness,
    language: Language,
    alone: str = "",
) -> list[QuoteCandidate]:
    """The sentences anew where the first is a row that the question names, or the one that stands
    `alone`: others of its table are at most as likely, and what is not of a table comes before it
    where that is likelier. Beside a row that the question names, others of its table go."""
    found = _without_others(asked, found)
    row = _read_row(asked, found, hits, alone)
    if row is None:
        return list(found)
    others = _other_columns(language)
    count = len(row.columns)
    scores = await nearness(row.asked, [*row.columns, *others])
    near, more = list(scores[:count]), dict(zip(others, scores[count:], strict=True))
    for at, column in enumerate(row.columns):  # what else is asked may be a column here
        same = [one for one in more if any(part in column for part in one.split("，"))]
        near[at] = max([near[at], *map(more.pop, same)])
    first = row.weigh(near, max(more.values()))
    rest = [
        replace(one, relevance=min(one.relevance, first.relevance)) if _is_row(one.hit) else one
        for one in found[1:]
    ]
    # Stable: of equal ones the order stays.
    likelier = [one for one in rest if one.relevance > first.relevance and not _is_row(one.hit)]
    return [*likelier, first, *(one for one in rest if one not in likelier)]


def stands_alone(found: Sequence[QuoteCandidate]) -> str:
    """Id of the passage of the first sentence, where it is a row far above the next."""
    first = found[0]
    next_ = max((one.relevance for one in found if one.hit != first.hit), default=0.0)
    is_alone = _is_row(first.hit) and first.relevance >= max(_LEAST, next_ + _ALONE)
    return first.hit.passage.id if is_alone else ""


def names_row(asked: AskedQuestion, hits: Sequence[Hit]) -> bool:
    """Whether a row that was found is named in Chinese; in English this won one and lost one."""
    return has_cjk(asked.text) and any(
        _is_row(one) and _names(asked, one.passage.title) for one in hits
    )


def _without_others(asked: AskedQuestion, found: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    names = {one.hit: _read_name(one.hit) for one in found if _is_row(one.hit)}
    named = [(_table_of(hit), _words(name)) for hit, name in names.items() if _names(asked, name)]

    def may_stay(one: QuoteCandidate) -> bool:
        # "Metformin" stands for "Metformin modified release", too.
        title, table = _words(one.hit.passage.title), _table_of(one.hit)
        own = [words <= title for of, words in named if of == table and one.hit in names]
        return any(own) or not own

    kept = [one for one in found if may_stay(one)]
    # In Chinese half a name is enough: it may be another's, and the first stays first.
    return kept if kept[:1] == [*found[:1]] or not has_cjk(asked.text) else list(found)


def _read_row(
    asked: AskedQuestion, found: Sequence[QuoteCandidate], hits: Sequence[Hit], alone: str
) -> NamedRow | None:
    if not found or not _is_row(found[0].hit):
        return None
    first = found[0].hit.passage
    names = [_read_name(one.hit) for one in found if _is_row(one.hit)]
    # "Metformin" stands for "Metformin modified release", too.
    named = [one for one in names if _names(asked, one) and _words(one) <= _words(first.title)]
    is_alone = first.id == alone
    if not (named or is_alone):
        return None
    is_named = _names(asked, first.title) or (names[0] in named and names.count(names[0]) == 1)
    of_table = [hit.passage for hit in hits if _table_of(hit) == _table_of(found[0].hit)]
    cells = [(cell[1], cell[2], one.title) for one in of_table for cell in _CELL.finditer(one.text)]
    keys = {column for column, value, title in cells if _begins(title, value)}
    columns = tuple(dict.fromkeys(column for column, _, _ in cells if column not in keys))
    left = _without_name(asked.text, first.title)
    return NamedRow(found[0], left, columns, is_alone or is_named) if columns else None


def _table_of(hit: Hit) -> tuple[str, str]:
    return hit.passage.source, hit.passage.locator.section


def _is_row(hit: Hit) -> bool:
    return hit.passage.locator.kind == TABLE


def _read_name(hit: Hit) -> str:
    """What a row is called: its title, or the first of the columns that its title is made of."""
    cells = _CELL.finditer(hit.passage.text)
    title = hit.passage.title
    return next((one[2] for one in cells if _begins(title, one[2])), title)


def _begins(title: str, value: str) -> bool:
    return title == value or title.startswith(f"{value}, ")


def _names(asked: AskedQuestion, title: str) -> bool:
    """Whether a question names a row whole, by any name or misspelt; in Chinese by half of it."""
    if has_cjk(title):
        return 2 * sum(map(len, _shared(asked.text, title))) >= len(title)
    said = frozenset(fold_words(asked.full))
    wanted = [_telling(one) for one in (title, *_other_names(title))]
    return any(words and all(find_respelt(w, said) for w in words) for words in wanted)


def _without_name(text: str, title: str) -> str:
    if has_cjk(title):
        for one in _shared(text, title):
            text = text.replace(one, "")
        return text
    names = {word for one in (title, *_other_names(title)) for word in _telling(one)}
    kept = (one for one in text.split() if not (w := fold_words(one)) or not names.issuperset(w))
    return " ".join(kept)


def _shared(text: str, title: str) -> list[str]:
    """The stretches of two characters or more that both have, the longest first."""
    shared = list[str]()
    for n in range(len(title), 1, -1):
        for at in range(len(title) - n + 1):
            if (one := title[at : at + n]) in text and "\0" not in one:
                shared.append(one)
                title = title.replace(one, "\0" * n, 1)
    return shared


@cache
def _other_names(title: str) -> tuple[str, ...]:
    whole = (o for o in packaged_lexicon().find_names(title) if o.end - o.start >= len(title) - 1)
    return tuple(name for one in whole for name in one.names)


def _telling(text: str) -> list[str]:
    return [word for word in fold_words(text) if word not in STOP_WORDS]


@cache
def _words(text: str) -> frozenset[str]:
    """Stems of the telling words."""
    words = _telling(text)
    return frozenset(stem_terms(words).get(word, word) for word in words)


@cache
def _other_columns(language: Language) -> tuple[str, ...]:
    """What else may be asked of a drug, a test or a disease."""
    lines = read_packaged(__package__, "columns.txt").splitlines()
    told = (name for line in lines if not line.startswith("#") for name in line.split("|") if name)
    return tuple(name for name in told if has_cjk(name) == (language == "zh"))
