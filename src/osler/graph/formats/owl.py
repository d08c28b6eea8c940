"""Ontologies in OWL, written as RDF/XML the way the OBO foundry publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from osler.graph import curies
from osler.graph.formats.base import concept_items, relation_item
from osler.graph.items import Item
from osler.sources.formats.containers import open_file
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Drop

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
    id, name = curies.parse_curie(about), text_of(element.find(f"{_RDFS}label"))
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
            (curies.parse_curie(text_of(xref)), field)
            for tag, field in _MAPPINGS
            for xref in element.iterfind(f"{_OIO}{tag}")
        ),
    )
    for above in element.iterfind(f"{_RDFS}subClassOf"):
        predicate, target = _read_superclass(above, labels)
        yield relation_item(id, predicate, curies.parse_curie(target), where)


def _read_superclass(above: etree._Element, labels: dict[str, str]) -> tuple[str, str]:
    """Predicate and address of a superclass: named, or a restriction "property some class"."""
    if (target := above.get(f"{_RDF}resource")) is not None:
        return "is_a", target
    property_ = above.find(f"{_OWL}Restriction/{_OWL}onProperty")
    some = above.find(f"{_OWL}Restriction/{_OWL}someValuesFrom")
    address = "" if property_ is None else property_.get(f"{_RDF}resource") or ""
    predicate = (labels.get(address) or address.rsplit("/", 1)[-1]).replace(" ", "_")
    return predicate, "" if some is None else some.get(f"{_RDF}resource") or ""
