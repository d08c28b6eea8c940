"""Ontologies: OBO 1.2 and 1.4, and mappings in SSSOM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osler.graph import items
from osler.graph.formats.base import TableImporter, TableRow, concept_items, relation_item
from osler.graph.items import ConceptMapping, Item
from osler.sources.formats.containers import open_file
from osler.sources.formats.obo import OboTerm, is_obo, read_terms
from osler.sources.records import Drop

# An exact synonym is another name of the concept; the other scopes are only near to it.
_SCOPE_RANKS = {"EXACT": 1, "hasExactSynonym": 1}
_OTHER_SCOPE = 2
_EXACT = frozenset({"skos:exactMatch", "owl:equivalentClass", "owl:sameAs"})


class OboImporter:
    name = "obo"

    def matches(self, path: Path, head: bytes) -> bool:
        return is_obo(path.name, head)

    def read(self, path: Path) -> Iterator[Item]:
        is_empty = True
        with open_file(path) as file:
            for term in read_terms(file, path.name):
                is_empty = False
                yield from _term_items(term)
        if is_empty:
            yield Drop(path.name, "no term")


def _term_items(term: OboTerm) -> Iterator[Item]:
    id, where = items.parse_curie(term.id), term.where
    if flaw := term.flaw if id else "no id":
        yield Drop(f"{where}: {id}" if id else where, flaw)
        return
    yield from concept_items(
        id,
        term.name,
        where,
        synonyms=(
            (text, _SCOPE_RANKS.get(scope, _OTHER_SCOPE)) for text, scope in term.read_synonyms()
        ),
        definition=term.definition,
        kind=term.namespace,
        mappings=(
            (items.parse_curie(identifier), tag)
            for tag in ("xref", "alt_id")
            for identifier in term.read_identifiers(tag)
        ),
    )
    for predicate, identifier, _ in term.read_relations():
        yield relation_item(id, predicate, items.parse_curie(identifier), where)


class Sssom(TableImporter):
    """Exact matches only: a broader or a close match is not the same thing."""

    name = "sssom"
    needed = ("subject_id", "predicate_id", "object_id")

    def matches(self, path: Path, head: bytes) -> bool:
        return ".sssom." in path.name or b"\nsubject_id\t" in b"\n" + head

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        cells = row.cells
        one = items.parse_curie(cells["subject_id"])
        other = items.parse_curie(cells["object_id"])
        if cells["predicate_id"].strip() not in _EXACT:
            yield Drop(row.where, "mapping that is not exact")
        elif cells.get("predicate_modifier", "").strip():  # the only modifier is "Not"
            yield Drop(row.where, "mapping that is denied")
        elif not (one and other):
            yield Drop(row.where, "no id")
        else:
            yield ConceptMapping(one, other, "sssom", row.where)
