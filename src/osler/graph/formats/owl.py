"""Ontologies in OWL, written as RDF/XML the way the OBO foundry publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from osler.graph import curies
from osler.graph.items import ConceptMapping, Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Drop
from osler.text import language_of

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_RDFS = "{http://www.w3.org/2000/01/rdf-schema#}"
_OWL = "{http://www.w3.org/2002/07/owl#}"
_OIO = "{http://www.geneontology.org/formats/oboInOwl#}"
_DEFINITION = "{http://purl.obolibrary.org/obo/}IAO_0000115"
_SYNONYMS = {
    "hasExactSynonym": 1,
    "hasNarrowSynonym": 2,
    "hasBroadSynonym": 2,
    "hasRelatedSynonym": 2,
}


class Owl:
    """Classes with their labels, synonyms, definitions, cross-references and superclasses.

    A superclass that is an expression counts where it is "some": part_of some lung.
    """

    name = "owl"

    def matches(self, path: Path, head: bytes) -> bool:
        return root_tag(head) == "RDF" and b"owl#" in head

    def read(self, path: Path) -> Iterator[Item]:
        labels: dict[str, str] = {}
        with open_file(path) as file:
            for element in iterate_elements(
                file, path.name, (f"{_OWL}Class", f"{_OWL}ObjectProperty")
            ):
                about = element.get(f"{_RDF}about")
                if about is None:  # part of an expression
                    continue
                if element.tag == f"{_OWL}ObjectProperty":
                    labels[about] = text_of(element.find(f"{_RDFS}label"))
                else:
                    yield from _class_items(
                        element, about, labels, f"{path.name}:{element.sourceline}"
                    )


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
    vocabulary = curies.name_vocabulary(id)
    yield Name(id, name, vocabulary, 0, language_of(name), where)
    for tag, rank in _SYNONYMS.items():
        for synonym in element.iterfind(f"{_OIO}{tag}"):
            if text := text_of(synonym):
                yield Name(id, text, vocabulary, rank, language_of(text), where)
    if text := text_of(element.find(_DEFINITION)):
        yield Definition(id, text, vocabulary, where)
    if kind := text_of(element.find(f"{_OIO}hasOBONamespace")):
        yield SemanticType(id, kind, where)
    for tag, source in (("hasDbXref", "xref"), ("hasAlternativeId", "alt_id")):
        for xref in element.iterfind(f"{_OIO}{tag}"):
            if other := curies.parse_curie(text_of(xref)):
                yield ConceptMapping(id, other, source, where)
    for above in element.iterfind(f"{_RDFS}subClassOf"):
        yield from _superclass_items(id, above, labels, vocabulary, where)


def _superclass_items(
    id: str, above: etree._Element, labels: dict[str, str], vocabulary: str, where: str
) -> Iterator[Item]:
    predicate, target = "is_a", above.get(f"{_RDF}resource")
    if target is None:
        of = above.find(f"{_OWL}Restriction/{_OWL}onProperty")
        some = above.find(f"{_OWL}Restriction/{_OWL}someValuesFrom")
        target = some.get(f"{_RDF}resource") if some is not None else None
        of_what = (of.get(f"{_RDF}resource") or "") if of is not None else ""
        predicate = (labels.get(of_what) or of_what.rsplit("/", 1)[-1]).replace(" ", "_")
    other = curies.parse_curie(target or "")
    if not other or not predicate:
        yield Drop(f"{where}: {id}", "relation to no identifier")
    elif other == id:
        yield Drop(f"{where}: {id}", "relation to itself")
    else:
        yield Relation(id, predicate, other, vocabulary, "", where)
