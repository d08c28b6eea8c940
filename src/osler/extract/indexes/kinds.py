"""The kinds of indexes, and the texts under which each of them holds a chunk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, get_args

from osler.extract.items import Item, Relation, Table
from osler.extract.patterns import TOGETHER
from osler.text import language_of, one_line, sentences
from osler.types import Passage

Kind = Literal["knowledge_unit", "atomic_query", "outline", "summary", "table"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Those that hold texts of their own. "chunk" is the passages themselves, "graph" their names."""

VERSION = 1
"""Raised when the same items would give other texts: an index of another one is made anew."""
_LONGEST = 1000
"""Characters of an entry: a chunk has no more."""
_ROW = re.compile(r"\s*\|\s*|\t+")
"""What stands between the cells of a table in plain text."""
_RULE = re.compile(r"[\s|:+-]+")


def entries(kind: Kind, passage: Passage, items: Sequence[Item]) -> list[str]:
    """The texts of a chunk in one index, none twice; what a model wrote, else what the text shows.

    | index | of the items | where there are none |
    |---|---|---|
    | knowledge_unit | points; each stated relation is one too | sentences with a name |
    | atomic_query | related questions of the points | questions that the relations answer |
    | outline | titles of its parts | title and headings above it |
    | summary | the summary | the first sentence |
    | table | tables | rows of cells between bars or tabs |
    """
    found = (one_line(text)[:_LONGEST] for text in _texts(kind, passage, items))
    return list(dict.fromkeys(filter(None, found)))


def _texts(kind: Kind, passage: Passage, items: Sequence[Item]) -> Iterator[str]:
    match kind:
        case "knowledge_unit":
            yield from _units(passage, items)
        case "atomic_query":
            asked = [q for item in items if item.kind == "point" for q in item.questions]
            yield from asked or _questions(items)
        case "outline":
            parts = [item.title for item in items if item.kind == "heading"]
            yield from (f"{passage.title} > {part}" for part in parts)
            if not parts:
                yield passage.heading
        case "summary":
            said = [item.text for item in items if item.kind == "summary"]
            yield from (_titled(passage, text) for text in said or [_opening(passage.text)])
        case "table":
            tables = [item for item in items if isinstance(item, Table)]
            yield from map(_flat, tables or written(passage.text))


def _units(passage: Passage, items: Sequence[Item]) -> Iterator[str]:
    points = [item for item in items if item.kind == "point"]
    for point in points:
        yield " ".join(filter(None, (f"{point.name}:", point.content, point.structured)))
    if not points:
        starts = [item.start for item in items if item.kind == "entity"]
        for begin, end in sentences(passage.text):
            if any(begin <= start < end for start in starts):
                yield _titled(passage, passage.text[begin:end])
    for relation in _stated(items):
        words = relation.subject, relation.predicate, relation.object, relation.constraint
        yield _joined(words)


def _titled(passage: Passage, text: str) -> str:
    """A sentence alone does not say its subject."""
    return f"{passage.title}: {text}" if passage.title else text


def _questions(items: Sequence[Item]) -> Iterator[str]:
    """Of a relation the question after either end. Its predicate is a verb with its ending."""
    for relation in _stated(items):
        if language_of(relation.predicate) == "zh":
            yield f"{_joined((relation.subject, relation.predicate))}什么？"
            yield f"什么{_joined((relation.predicate, relation.object))}？"
        else:
            yield f"{relation.subject} {relation.predicate} what?"
            yield f"What {relation.predicate} {relation.object}?"


def _stated(items: Sequence[Item]) -> Iterator[Relation]:
    """Without those of which only is known that their ends stand together."""
    known = TOGETHER.values()
    for item in items:
        if item.kind == "relation" and item.predicate not in known:
            yield item


def _joined(words: Sequence[str]) -> str:
    """Chinese without blanks between, as it is written."""
    every = [word for word in words if word]
    return ("" if all(language_of(word) == "zh" for word in every) else " ").join(every)


def _opening(text: str) -> str:
    for start, end in sentences(text):
        if one_line(text[start:end]):
            return text[start:end]
    return text


def written(text: str) -> list[Table]:
    """Tables that stand in a text: at least two lines, one below the other, of several cells."""
    found: list[Table] = []
    rows: list[tuple[str, ...]] = []
    begin = place = 0
    for line in [*text.split("\n"), ""]:
        cells = tuple(_ROW.split(line.strip().strip("|").strip()))
        if len(cells) > 1 and any(cells):
            begin = begin if rows else place
            rows += [] if _RULE.fullmatch(line) else [cells]
        else:
            if len(rows) > 1:
                found.append(Table("", rows[0], tuple(rows[1:]), begin, place - 1))
            rows = []
        place += len(line) + 1
    return found


def _flat(table: Table) -> str:
    """Each cell under its heading, so that a row says what it holds."""
    rows = [
        ", ".join(
            f"{head}: {cell}" if head else cell
            for head, cell in zip_longest(table.header, row, fillvalue="")
            if cell
        )
        for row in table.rows
    ]
    return "; ".join(filter(None, (table.title, *rows)))
