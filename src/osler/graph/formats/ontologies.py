"""Ontologies: OBO 1.2 and 1.4, OBO graphs in JSON, OWL in RDF/XML, and mappings in SSSOM."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lxml import etree

from osler.errors import MalformedSource
from osler.graph import items
from osler.graph.formats.base import TableImporter, TableRow, concept_items, relation_item
from osler.graph.items import ConceptMapping, Item, Relation
from osler.sources.formats.containers import open_file
from osler.sources.formats.obo import OboTerm, is_obo, read_terms
from osler.sources.formats.reading import plain_head, read_json_file
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
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


class OboGraphs:
    name = "obo-graphs"

    def matches(self, path: Path, head: bytes) -> bool:
        return re.match(rb'\{\s*"graphs"\s*:', plain_head(head)) is not None

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of a file that is small enough to be read as a whole."""
        with open_file(path) as file:
            document = read_json_file(file, path.name)
        try:
            graphs = [(each.get("nodes", []), each.get("edges", [])) for each in document["graphs"]]
        except (KeyError, TypeError, AttributeError) as error:
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


_Labels = dict[str, str]


def _read_guarded(
    read: Callable[[Any, _Labels, str], Iterator[Item]], value: Any, labels: _Labels, where: str
) -> Iterator[Item]:
    """All items of one node or edge, or one drop where it has another shape."""
    try:
        items = list(read(value, labels, where))
    except (KeyError, TypeError, AttributeError):
        items = [Drop(where, "malformed record")]
    yield from items


def _node_items(node: Any, labels: _Labels, where: str) -> Iterator[Item]:
    if node.get("type", "CLASS") != "CLASS":
        return
    id, name, meta = items.parse_curie(node["id"]), node.get("lbl") or "", node.get("meta") or {}
    if meta.get("deprecated"):
        yield Drop(where, "obsolete term")
        return
    if not id or not name:
        yield Drop(where, "no name" if id else "no id")
        return
    kinds = (
        value["val"]
        for value in meta.get("basicPropertyValues", [])
        if value["pred"].endswith("#hasOBONamespace")
    )
    yield from concept_items(
        id,
        name,
        where,
        synonyms=(
            (synonym["val"], _SCOPE_RANKS.get(synonym.get("pred", ""), _OTHER_SCOPE))
            for synonym in meta.get("synonyms", [])
        ),
        definition=(meta.get("definition") or {"val": ""})["val"],
        kind=next(kinds, ""),
        mappings=((items.parse_curie(xref["val"]), "xref") for xref in meta.get("xrefs", [])),
    )


def _edge_items(edge: Any, labels: _Labels, where: str) -> Iterator[Item]:
    one, other = items.parse_curie(edge["sub"]), items.parse_curie(edge["obj"])
    # Without a label the predicate is the last part of its address.
    predicate = edge["pred"]
    kind = labels.get(predicate, predicate.rsplit("/", 1)[-1].rsplit("#", 1)[-1])
    if not (one and other and kind):
        yield Drop(where, "no id")
    elif one == other:
        yield Drop(where, "relation to itself")
    else:
        vocabulary = items.name_vocabulary(one)
        yield Relation(one, kind.replace(" ", "_"), other, vocabulary, "", where)


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


_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_RDFS = "{http://www.w3.org/2000/01/rdf-schema#}"
_OWL = "{http://www.w3.org/2002/07/owl#}"
_OIO = "{http://www.geneontology.org/formats/oboInOwl#}"
# "Definition", by the number that OBO's ontology of annotations gives it.
_DEFINITION = "{http://purl.obolibrary.org/obo/}IAO_0000115"
_SYNONYM_RANKS = {
    "hasExactSynonym": 1,
    "hasNarrowSynonym": 2,
    "hasBroadSynonym": 2,
    "hasRelatedSynonym": 2,
}
_MAPPINGS = (("hasDbXref", "xref"), ("hasAlternativeId", "alt_id"))


class Owl:
    """Classes with their labels, synonyms, definitions, cross-references and superclasses.

    A superclass that is an expression counts where it is "some": part_of some lung.
    """

    name = "owl"

    def matches(self, path: Path, head: bytes) -> bool:
        return root_tag(head) == "RDF" and b"owl#" in head

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of all classes; properties must stand before the classes that use them."""
        labels: dict[str, str] = {}
        tags = (f"{_OWL}Class", f"{_OWL}ObjectProperty")
        with open_file(path) as file:
            for element in iterate_elements(file, path.name, tags):
                about = element.get(f"{_RDF}about")
                if about is None:  # part of an expression
                    continue
                if element.tag == f"{_OWL}ObjectProperty":
                    labels[about] = text_of(element.find(f"{_RDFS}label"))
                else:
                    where = f"{path.name}:{element.sourceline}"
                    yield from _class_items(element, about, labels, where)


def _class_items(
    element: etree._Element, about: str, labels: dict[str, str], where: str
) -> Iterator[Item]:
    id, name = items.parse_curie(about), text_of(element.find(f"{_RDFS}label"))
    if text_of(element.find(f"{_OWL}deprecated")) == "true":
        yield Drop(f"{where}: {id}", "obsolete term")
        return
    if not id or not name:
        yield Drop(where, "no name" if id else "no id")
        return
    yield from concept_items(
        id,
        name,
        where,
        synonyms=(
            (text_of(synonym), rank)
            for tag, rank in _SYNONYM_RANKS.items()
            for synonym in element.iterfind(f"{_OIO}{tag}")
        ),
        definition=text_of(element.find(_DEFINITION)),
        kind=text_of(element.find(f"{_OIO}hasOBONamespace")),
        mappings=(
            (items.parse_curie(text_of(xref)), field)
            for tag, field in _MAPPINGS
            for xref in element.iterfind(f"{_OIO}{tag}")
        ),
    )
    for above in element.iterfind(f"{_RDFS}subClassOf"):
        predicate, target = _read_superclass(above, labels)
        yield relation_item(id, predicate, items.parse_curie(target), where)


def _read_superclass(above: etree._Element, labels: dict[str, str]) -> tuple[str, str]:
    """Predicate and address of a superclass: named, or a restriction "property some class"."""
    if (target := above.get(f"{_RDF}resource")) is not None:
        return "is_a", target
    property_ = above.find(f"{_OWL}Restriction/{_OWL}onProperty")
    some = above.find(f"{_OWL}Restriction/{_OWL}someValuesFrom")
    address = "" if property_ is None else property_.get(f"{_RDF}resource") or ""
    predicate = (labels.get(address) or address.rsplit("/", 1)[-1]).replace(" ", "_")
    return predicate, "" if some is None else some.get(f"{_RDF}resource") or ""
