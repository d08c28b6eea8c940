"""Chinese graphs: CMeKG's annotated triples, KAG's tables of nodes, and lists of entities."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource
from osler.graph.formats.base import read_table, text_lines
from osler.graph.formats.zh_disease import KINDS, SOURCE
from osler.graph.items import Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import plain_head, read_json
from osler.sources.records import Drop
from osler.text import language_of, one_line

# Separators of a list of aliases, in Chinese and Latin script.
_ALIASES = re.compile(r"[,，、;；|]")


class Cmekg:
    """`[{"text": …, "spo_list": [[subject, predicate, object], …]}]`, or such a record a line.

    A name is its own identifier, as in plain triples.
    """

    name = "cmekg"

    def matches(self, path: Path, head: bytes) -> bool:
        begin = plain_head(head)
        return begin.startswith((b"[", b"{")) and b'"spo_list"' in begin

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of all records; an array is read as a whole, lines one by one."""
        with open_file(path) as file:
            lines = plain_head(file.peek(4096)).startswith(b"{")
            records = _by_line(file, path.name) if lines else _read_array(file, path.name)
            for where, record in records:
                yield from (
                    _read_record(record, where, path.stem)
                    if record is not None
                    else [Drop(where, "not JSON")]
                )


def _by_line(file: Any, name: str) -> Iterator[tuple[str, Any]]:
    for line in text_lines(file, name):
        if isinstance(line, Drop):
            yield line.where, None
            continue
        number, text = line
        try:
            yield f"{name}:{number}", json.loads(text)
        except (ValueError, RecursionError):
            yield f"{name}:{number}", None


def _read_array(file: Any, name: str) -> Iterator[tuple[str, Any]]:
    for number, record in enumerate(read_json(file, name)):
        yield f"{name}: record {number}", record


def _read_record(record: Any, where: str, source: str) -> Iterator[Item]:
    triples = record.get("spo_list") if isinstance(record, dict) else None
    if not isinstance(triples, list):
        yield Drop(where, "malformed record")
        return
    for triple in triples:
        cells = triple if isinstance(triple, list) else []
        if len(cells) != 3 or not all(isinstance(cell, str) for cell in cells):
            yield Drop(where, "wrong number of columns")
            continue
        one, predicate, other = map(one_line, cells)
        yield from triple_items(one, predicate, other, source, "", where)


def triple_items(
    one: str, predicate: str, other: str, source: str, note: str, where: str
) -> Iterator[Item]:
    """The names and the relation of a triple; a name is its own identifier, "_" a space in it."""
    if not (one and predicate and other):
        yield Drop(where, "empty cell")
        return
    for name in (one, other):
        yield Name(f"term:{name}", name.replace("_", " "), source, 0, language_of(name), where)
    if one == other:
        yield Drop(where, "relation to itself")
    else:
        yield Relation(f"term:{one}", predicate, f"term:{other}", source, note, where)


class KagNodes:
    """KAG's tables of nodes, one kind a file: `idx,title,text,alias`, or `id` alone, where
    "内科-内分泌科" is narrower than "内科" (hypernymPredicate: isA)."""

    name = "kag-nodes"

    def matches(self, path: Path, head: bytes) -> bool:
        first = plain_head(head).split(b"\n", 1)[0].strip()
        return first in (b"idx,title,text,alias", b"id,title,text,alias", b"id")

    def read(self, path: Path) -> Iterator[Item]:
        with open_file(path) as file:
            titled = b"title" in file.readline()
        kind = path.name.partition(".")[0]
        for row in read_table(path, ("title", "text") if titled else ("id",)):
            if isinstance(row, Drop):
                yield row
            elif titled:
                yield from _entity_items(row.cells, kind, row.where)
            else:
                yield from _place_items(one_line(row.cells["id"]), kind, row.where)


def _entity_items(cells: dict[str, str], kind: str, where: str) -> Iterator[Item]:
    name = one_line(cells["title"])
    if not name:
        yield Drop(where, "no name")
        return
    id = f"kag.{kind}:{name}"
    yield Name(id, name, "KAG", 0, language_of(name), where)
    yield SemanticType(id, kind, where)
    for alias in filter(None, map(one_line, _ALIASES.split(cells.get("alias", "")))):
        yield Name(id, alias, "KAG", 1, language_of(alias), where)
    if text := one_line(cells["text"]):
        yield Definition(id, text, "KAG", where)


def _place_items(path: str, kind: str, where: str) -> Iterator[Item]:
    above, _, name = path.rpartition("-")
    if not name:
        yield Drop(where, "no name")
        return
    id = f"kag.{kind}:{path}"
    yield Name(id, name, "KAG", 0, language_of(name), where)
    yield SemanticType(id, kind, where)
    if above:
        yield Relation(id, "is_a", f"kag.{kind}:{above}", "KAG", "", where)


class EntityList:
    """The dictionaries of the Chinese disease graph: one entity a line, the file names its
    kind."""

    name = "zh-entities"

    def matches(self, path: Path, head: bytes) -> bool:
        named = path.suffix == ".txt" and path.stem in {*KINDS, "deny"}
        return named and b"\t" not in head and any(byte > 127 for byte in head)

    def read(self, path: Path) -> Iterator[Item]:
        kind = path.stem
        if kind != "deny" and kind not in KINDS:
            raise MalformedSource(
                f"{path.name} names no kind of entity", fix=f"one of: {', '.join(KINDS)}, deny"
            )
        with open_file(path) as file:
            for line in text_lines(file, path.name):
                if isinstance(line, Drop):
                    yield line
                    continue
                number, text = line
                name, where = one_line(text), f"{path.name}:{number}"
                if kind == "deny":
                    yield Drop(where, "word of denial, no entity", number)
                    continue
                yield Name(f"zh.{kind}:{name}", name, SOURCE, 1, language_of(name), where)
                yield SemanticType(f"zh.{kind}:{name}", KINDS[kind], where)
