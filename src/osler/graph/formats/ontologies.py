"""OBO 1.2 and 1.4, OBO graphs in JSON, and mappings in SSSOM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource
from osler.graph import curies
from osler.graph.formats.base import read_table
from osler.graph.items import ConceptMapping, Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file

# The line reader of the parser that makes passages of the same files.
from osler.sources.formats.obo import (
    Tags,
    _first_value,
    _quoted_text,
    _term_definition,
    _term_name,
    read_stanzas,
)
from osler.sources.formats.reading import decode_text, extension_of, plain_head, read_whole
from osler.sources.records import Drop
from osler.text import language_of

_SCOPE = re.compile(r'"\s+(EXACT|NARROW|BROAD|RELATED)')
_SCOPES = {"EXACT": 1, "hasExactSynonym": 1}
_EXACT = frozenset({"skos:exactMatch", "owl:equivalentClass", "owl:sameAs"})


class OboImporter:
    name = "obo"

    def matches(self, path: Path, head: bytes) -> bool:
        begin = plain_head(head)
        return begin.startswith((b"format-version:", b"[Term]")) or (
            extension_of(path.name) == ".obo" and b"id:" in begin
        )

    def read(self, path: Path) -> Iterator[Item]:
        namespace, terms = "", 0
        with open_file(path) as file:
            for kind, number, tags in read_stanzas(file, path.name):
                if not kind:
                    namespace = _first_value(tags, "default-namespace")
                elif kind == "Term":
                    terms += 1
                    yield from _term_items(tags, f"{path.name}:{number}", namespace)
        if not terms:
            yield Drop(path.name, "no term")


def _term_items(tags: Tags, where: str, namespace: str) -> Iterator[Item]:
    id, name = curies.parse_curie(_first_value(tags, "id")), _term_name(tags)
    if not id:
        yield Drop(where, "no id")
    elif _first_value(tags, "is_obsolete") == "true":
        yield Drop(f"{where}: {id}", "obsolete term")
    elif not name:
        yield Drop(f"{where}: {id}", "no name")
    else:
        vocabulary = curies.name_vocabulary(id)
        yield Name(id, name, vocabulary, 0, language_of(name), where)
        for value in tags.get("synonym", []):
            if text := _quoted_text(value):
                scope = _SCOPE.search(value)
                rank = _SCOPES.get(scope[1] if scope else "", 2)
                yield Name(id, text, vocabulary, rank, language_of(text), where)
        if text := _term_definition(tags):
            yield Definition(id, text, vocabulary, where)
        if kind := _first_value(tags, "namespace") or namespace:
            yield SemanticType(id, kind, where)
        yield from _relation_items(id, tags, vocabulary, where)


def _relation_items(id: str, tags: Tags, vocabulary: str, where: str) -> Iterator[Item]:
    stated = [("is_a", value) for value in tags.get("is_a", [])]
    for value in tags.get("relationship", []):
        predicate, _, target = value.partition(" ")
        stated.append((predicate, target.strip()))
    for predicate, value in stated:
        other = curies.parse_curie(value.split(maxsplit=1)[0]) if value else ""
        if other == id:
            yield Drop(f"{where}: {id}", "relation to itself")
        elif other:
            yield Relation(id, predicate, other, vocabulary, "", where)
        else:
            yield Drop(f"{where}: {id}", "relation to no identifier")
    for tag in ("xref", "alt_id"):
        for value in tags.get(tag, []):
            if other := curies.parse_curie(value.split(maxsplit=1)[0] if value else ""):
                yield ConceptMapping(id, other, tag, where)


class OboGraphs:
    name = "obo-graphs"

    def matches(self, path: Path, head: bytes) -> bool:
        return re.match(rb'\{\s*"graphs"\s*:', plain_head(head)) is not None

    def read(self, path: Path) -> Iterator[Item]:
        """A file of at most 64 MiB."""
        with open_file(path) as file:
            text = decode_text(read_whole(file, path.name), path.name)
        try:
            found = json.loads(text)
            graphs = [(graph.get("nodes", []), graph.get("edges", [])) for graph in found["graphs"]]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise MalformedSource(
                f"{path.name} is not an OBO graph in JSON", fix="fetch it again"
            ) from error
        for nodes, edges in graphs:
            labels = {
                node["id"]: node["lbl"]
                for node in nodes
                if isinstance(node, dict)
                and isinstance(node.get("id"), str)
                and isinstance(node.get("lbl"), str)
            }
            for number, node in enumerate(nodes):
                yield from _read_guarded(_node_items, node, labels, f"{path.name}: node {number}")
            for number, edge in enumerate(edges):
                yield from _read_guarded(_edge_items, edge, labels, f"{path.name}: edge {number}")


def _read_guarded(read: Any, value: Any, labels: dict[str, str], where: str) -> Iterator[Item]:
    """What one node or edge says, wholly, or a drop where its shape is another."""
    try:
        items = list(read(value, labels, where))
    except (KeyError, TypeError, AttributeError):
        items = [Drop(where, "malformed record")]
    yield from items


def _node_items(node: Any, labels: dict[str, str], where: str) -> Iterator[Item]:
    if node.get("type", "CLASS") != "CLASS":
        return
    id, name, meta = curies.parse_curie(node["id"]), node.get("lbl") or "", node.get("meta") or {}
    if meta.get("deprecated"):
        yield Drop(where, "obsolete term")
        return
    if not id or not name:
        yield Drop(where, "no name" if id else "no id")
        return
    vocabulary = curies.name_vocabulary(id)
    yield Name(id, name, vocabulary, 0, language_of(name), where)
    for synonym in meta.get("synonyms", []):
        text = synonym["val"]
        rank = _SCOPES.get(synonym.get("pred", ""), 2)
        yield Name(id, text, vocabulary, rank, language_of(text), where)
    if definition := meta.get("definition"):
        yield Definition(id, definition["val"], vocabulary, where)
    for value in meta.get("basicPropertyValues", []):
        if value["pred"].endswith("#hasOBONamespace"):
            yield SemanticType(id, value["val"], where)
    for xref in meta.get("xrefs", []):
        if other := curies.parse_curie(xref["val"]):
            yield ConceptMapping(id, other, "xref", where)


def _edge_items(edge: Any, labels: dict[str, str], where: str) -> Iterator[Item]:
    one, other, predicate = (
        curies.parse_curie(edge["sub"]),
        curies.parse_curie(edge["obj"]),
        edge["pred"],
    )
    kind = labels.get(predicate, predicate.rsplit("/", 1)[-1].rsplit("#", 1)[-1])
    if not (one and other and kind):
        yield Drop(where, "no id")
    elif one == other:
        yield Drop(where, "relation to itself")
    else:
        yield Relation(one, kind.replace(" ", "_"), other, curies.name_vocabulary(one), "", where)


class Sssom:
    """Exact matches only: a broader or a close match is another thing."""

    name = "sssom"

    def matches(self, path: Path, head: bytes) -> bool:
        return ".sssom." in path.name or b"\nsubject_id\t" in b"\n" + head

    def read(self, path: Path) -> Iterator[Item]:
        needed = ("subject_id", "predicate_id", "object_id")
        for row in read_table(path, needed, delimiter="\t", quoted=False):
            if isinstance(row, Drop):
                yield row
                continue
            one, other = (
                curies.parse_curie(row.cells["subject_id"]),
                curies.parse_curie(row.cells["object_id"]),
            )
            if row.cells["predicate_id"].strip() not in _EXACT:
                yield Drop(row.where, "mapping that is not exact")
            elif row.cells.get("predicate_modifier", "").strip():
                yield Drop(row.where, "mapping that is denied")
            elif not (one and other):
                yield Drop(row.where, "no id")
            else:
                yield ConceptMapping(one, other, "sssom", row.where)
