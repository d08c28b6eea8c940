"""Indexes over extracted items: other ways to the chunks that are cited.

KAG's index types (KAG-Thinker §3.4): knowledge units, atomic queries, outlines, summaries and
tables, each with words and vectors of its own, and the graph of names and chunks
(`entity_graph`). An index always finds chunks. Here are the kinds and the texts by which each of
them finds a chunk; `store` makes and has their rows, `search` searches them, and `canon` resolves
names to entities.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Literal, get_args

from osler.extract.dictionary import TOGETHER
from osler.extract.items import EntityRelation, Item, TextTable
from osler.text import language_of, one_line, split_sentences
from osler.types import Passage

Kind = Literal["knowledge_unit", "atomic_query", "outline", "summary", "table"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Indexes with texts of their own. "chunk" is the passages themselves, "graph" their names."""

VERSION = 1
"""Increased when equal items would give other texts; an index of another version is made anew."""
# Characters of an entry; a chunk has no more.
_LONGEST = 1000
# Separator of cells in a plain-text table.
_ROW = re.compile(r"\s*\|\s*|\t+")
_RULE = re.compile(r"[\s|:+-]+")


def entry_texts(kind: Kind, passage: Passage, items: Sequence[Item]) -> list[str]:
    """The distinct texts of a chunk in one index: those a model wrote, else those found in the
    text.

    | index | of the items | where there are none |
    |---|---|---|
    | knowledge_unit | points; each stated relation is one too | sentences with a name |
    | atomic_query | related questions of the points | questions that the relations answer |
    | outline | titles of its parts | title and headings above it |
    | summary | the summary | the first sentence |
    | table | tables | rows of cells between bars or tabs |
    """
    found = (one_line(text)[:_LONGEST] for text in _kind_texts(kind, passage, items))
    return list(dict.fromkeys(filter(None, found)))


def _kind_texts(kind: Kind, passage: Passage, items: Sequence[Item]) -> Iterator[str]:
    match kind:
        case "knowledge_unit":
            yield from _unit_texts(passage, items)
        case "atomic_query":
            asked = [q for item in items if item.kind == "point" for q in item.questions]
            yield from asked or _relation_questions(items)
        case "outline":
            parts = [item.title for item in items if item.kind == "heading"]
            yield from (f"{passage.title} > {part}" for part in parts)
            if not parts:
                yield passage.heading
        case "summary":
            said = [item.text for item in items if item.kind == "summary"]
            yield from (
                _with_title(passage, text) for text in said or [_opening_text(passage.text)]
            )
        case "table":
            tables = [item for item in items if isinstance(item, TextTable)]
            yield from map(_flatten_table, tables or written_tables(passage.text))


def _unit_texts(passage: Passage, items: Sequence[Item]) -> Iterator[str]:
    points = [item for item in items if item.kind == "point"]
    for point in points:
        yield " ".join(filter(None, (f"{point.name}:", point.content, point.structured)))
    if not points:
        starts = [item.start for item in items if item.kind == "entity"]
        for begin, end in split_sentences(passage.text):
            if any(begin <= start < end for start in starts):
                yield _with_title(passage, passage.text[begin:end])
    for relation in _stated_relations(items):
        words = relation.subject, relation.predicate, relation.object, relation.constraint
        yield _join_words(words)


def _with_title(passage: Passage, text: str) -> str:
    """Prefixes a sentence with the passage's title, since it may not name its subject."""
    return f"{passage.title}: {text}" if passage.title else text


def _relation_questions(items: Sequence[Item]) -> Iterator[str]:
    """Two questions per relation, one for either end; its predicate is an inflected verb."""
    for relation in _stated_relations(items):
        if language_of(relation.predicate) == "zh":
            yield f"{_join_words((relation.subject, relation.predicate))}什么？"
            yield f"什么{_join_words((relation.predicate, relation.object))}？"
        else:
            yield f"{relation.subject} {relation.predicate} what?"
            yield f"What {relation.predicate} {relation.object}?"


def _stated_relations(items: Sequence[Item]) -> Iterator[EntityRelation]:
    """The relations that a text states, without mere co-mentions."""
    known = TOGETHER.values()
    for item in items:
        if item.kind == "relation" and item.predicate not in known:
            yield item


def _join_words(words: Sequence[str]) -> str:
    """Joins words by spaces, Chinese ones directly."""
    every = [word for word in words if word]
    return ("" if all(language_of(word) == "zh" for word in every) else " ").join(every)


def _opening_text(text: str) -> str:
    for start, end in split_sentences(text):
        if one_line(text[start:end]):
            return text[start:end]
    return text


def written_tables(text: str) -> list[TextTable]:
    """Plain-text tables in a text: two or more consecutive lines of several cells."""
    found: list[TextTable] = []
    rows: list[tuple[str, ...]] = []
    begin = place = 0
    for line in [*text.split("\n"), ""]:
        cells = tuple(_ROW.split(line.strip().strip("|").strip()))
        if len(cells) > 1 and any(cells):
            begin = begin if rows else place
            # The rule below a Markdown header is no row.
            rows += [] if _RULE.fullmatch(line) else [cells]
        else:
            if len(rows) > 1:
                found.append(TextTable("", rows[0], tuple(rows[1:]), begin, place - 1))
            rows = []
        place += len(line) + 1
    return found


def _flatten_table(table: TextTable) -> str:
    """The table as one text with each cell labelled by its column heading."""
    rows = [
        ", ".join(
            f"{head}: {cell}" if head else cell
            for head, cell in zip_longest(table.header, row, fillvalue="")
            if cell
        )
        for row in table.rows
    ]
    return "; ".join(filter(None, (table.title, *rows)))
