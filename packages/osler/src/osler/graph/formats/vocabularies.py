"""Vocabularies: DrugBank's full database in XML (schema 5.1), MeSH descriptors, ontologies.

MeSH is read in XML, or as tables of terms and tree numbers; ontologies are OBO 1.2 and 1.4, and
mappings in SSSOM.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from osler.graph import items
from osler.graph.formats.base import (
    TableImporter,
    TableRow,
    read_table,
)
from osler.graph.items import (
    DRUG_SECTIONS,
    ConceptMapping,
    Definition,
    Item,
    Name,
    Relation,
    SemanticType,
)
from osler.sources.formats.containers import open_file
from osler.sources.formats.obo import Obo, OboTerm, read_terms
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Drop
from osler.text import language_of

_ROLES = {"targets": "target", "enzymes": "enzyme", "carriers": "carrier",
          "transporters": "transporter"}  # fmt: skip
# The rank of a name that another drug's record gives; the drug's own record has a better one.
_ELSEWHERE = 9


class DrugBank:
    name = "drugbank-xml"

    def matches(self, path: Path, head: bytes) -> bool:
        return root_tag(head) == "drugbank"

    def read(self, path: Path) -> Iterator[Item]:
        with open_file(path) as file:
            for drug in iterate_elements(file, path.name, ("{*}drug",)):
                # <drug> also stands inside <drug>: interactions, pathways, mixtures.
                above = drug.getparent()
                if above is not None and etree.QName(above).localname == "drugbank":
                    yield from _drug_items(drug, f"{path.name}:{drug.sourceline}")


def _drug_items(drug: etree._Element, where: str) -> Iterator[Item]:
    primary = drug.find("{*}drugbank-id[@primary='true']")
    local, name = text_of(primary), text_of(drug.find("{*}name"))
    if not local or not name:
        yield Drop(where, "no name" if local else "no id")
        return
    id = f"DRUGBANK:{local}"
    yield Name(id, name, "DRUGBANK", 0, language_of(name), where)
    yield SemanticType(id, "Drug", where)
    for synonym in drug.iterfind("{*}synonyms/{*}synonym"):
        if text := text_of(synonym):
            yield Name(id, text, "DRUGBANK", 1, language_of(text), where)
    for part in ("description", *DRUG_SECTIONS):
        if text := text_of(drug.find(f"{{*}}{part}")):
            source = "DRUGBANK" if part == "description" else f"DRUGBANK {part}"
            yield Definition(id, text, source, where)
    for cui in drug.iterfind("{*}external-identifiers/{*}external-identifier"):
        if text_of(cui.find("{*}resource")) == "PharmGKB":
            yield ConceptMapping(
                id, f"PharmGKB:{text_of(cui.find('{*}identifier'))}", "xref", where
            )
    yield from _interaction_items(id, drug, where)
    yield from _category_items(id, drug, where)
    for role, tag in _ROLES.items():
        for protein in drug.iterfind(f"{{*}}{role}/{{*}}{tag}"):
            yield from _protein_items(id, protein, tag, where)


def _interaction_items(id: str, drug: etree._Element, where: str) -> Iterator[Item]:
    for other in drug.iterfind("{*}drug-interactions/{*}drug-interaction"):
        local, name = text_of(other.find("{*}drugbank-id")), text_of(other.find("{*}name"))
        if local and name:
            target, note = f"DRUGBANK:{local}", text_of(other.find("{*}description"))
            yield Name(target, name, "DRUGBANK", _ELSEWHERE, "en", where)
            yield Relation(id, "interacts_with", target, "DRUGBANK", note, where)


def _category_items(id: str, drug: etree._Element, where: str) -> Iterator[Item]:
    for category in drug.iterfind("{*}categories/{*}category"):
        name, ui = text_of(category.find("{*}category")), text_of(category.find("{*}mesh-id"))
        if name:
            target = f"MESH:{ui}" if ui else f"DRUGBANK.category:{name}"
            yield Name(target, name, "DRUGBANK", _ELSEWHERE, "en", where)
            yield Relation(id, "has_category", target, "DRUGBANK", "", where)


def _protein_items(id: str, protein: etree._Element, role: str, where: str) -> Iterator[Item]:
    local, name = text_of(protein.find("{*}id")), text_of(protein.find("{*}name"))
    if not (local and name):
        return
    target = f"DRUGBANK:{local}"
    yield Name(target, name, "DRUGBANK", 0, "en", where)
    yield SemanticType(target, "Protein", where)
    actions = [text_of(action) for action in protein.iterfind("{*}actions/{*}action")]
    yield Relation(id, f"has_{role}", target, "DRUGBANK", ", ".join(actions), where)


class Mesh:
    """Descriptors with all terms; the hierarchy follows from the tree numbers, at the end."""

    name = "mesh-xml"

    def matches(self, path: Path, head: bytes) -> bool:
        return root_tag(head) == "DescriptorRecordSet"

    def read(self, path: Path) -> Iterator[Item]:
        trees: dict[str, str] = {}
        with open_file(path) as file:
            for record in iterate_elements(file, path.name, ("DescriptorRecord",)):
                yield from _descriptor_items(record, path.name, trees)
        yield from hierarchy_items(trees, path.name)


def _descriptor_items(record: etree._Element, file: str, trees: dict[str, str]) -> Iterator[Item]:
    ui, name = text_of(record.find("DescriptorUI")), text_of(record.find("DescriptorName/String"))
    where = f"{file}:{record.sourceline}"
    if not ui or not name:
        yield Drop(where, "no name" if ui else "no id")
        return
    id = f"MESH:{ui}"
    yield Name(id, name, "MSH", 0, "en", where)
    for concept in record.iterfind("ConceptList/Concept"):
        # Terms of the other concepts of a descriptor are narrower or related, not the same.
        rank = 1 if concept.get("PreferredConceptYN") == "Y" else 2
        for term in concept.iterfind("TermList/Term/String"):
            if (text := text_of(term)) and text != name:
                yield Name(id, text, "MSH", rank, "en", where)
        if rank == 1 and (note := text_of(concept.find("ScopeNote"))):
            yield Definition(id, note, "MSH", where)
        if rank == 1:
            for kind in concept.iterfind("SemanticTypeList/SemanticType/SemanticTypeName"):
                yield SemanticType(id, text_of(kind), where)
    for action in record.iterfind(
        "PharmacologicalActionList/PharmacologicalAction/DescriptorReferredTo/DescriptorUI"
    ):
        yield Relation(
            id, "has_pharmacological_action", f"MESH:{text_of(action)}", "MSH", "", where
        )
    for number in record.iterfind("TreeNumberList/TreeNumber"):
        trees[text_of(number)] = id


def hierarchy_items(trees: dict[str, str], file: str) -> Iterator[Item]:
    """A descriptor is narrower than that whose tree number is a part shorter (C14 for C14.280)."""
    for number, id in trees.items():
        parent = trees.get(number.rpartition(".")[0])
        if parent is not None and parent != id:
            yield Relation(id, "is_a", parent, "MSH", "", f"{file}: {number}")


class MeshTable:
    """`mesh_id, mesh_name`, with or without `mesh_tree_number`."""

    name = "mesh-table"

    def matches(self, path: Path, head: bytes) -> bool:
        return head.lstrip(b"\xef\xbb\xbf").startswith(b"mesh_id\tmesh_name")

    def read(self, path: Path) -> Iterator[Item]:
        trees: dict[str, str] = {}
        for row in read_table(path, ("mesh_id", "mesh_name"), delimiter="\t", quoted=False):
            if isinstance(row, Drop):
                yield row
                continue
            ui = row.cells["mesh_id"].strip()
            if not ui:
                yield Drop(row.where, "no id")
                continue
            yield Name(f"MESH:{ui}", row.cells["mesh_name"], "MSH", 0, "en", row.where)
            if number := row.cells.get("mesh_tree_number", "").strip():
                trees[number] = f"MESH:{ui}"
        yield from hierarchy_items(trees, path.name)


# An exact synonym is another name of the concept; the other scopes are only near to it.
_SCOPE_RANKS = {"EXACT": 1, "hasExactSynonym": 1}
_OTHER_SCOPE = 2
_EXACT = frozenset({"skos:exactMatch", "owl:equivalentClass", "owl:sameAs"})


class OboImporter:
    name = "obo"

    def matches(self, path: Path, head: bytes) -> bool:
        return Obo().matches(path.name, head)

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
    source = items.name_vocabulary(id)
    yield Name(id, term.name, source, 0, language_of(term.name), where)
    for text, scope in term.read_synonyms():
        rank = _SCOPE_RANKS.get(scope, _OTHER_SCOPE)
        yield Name(id, text, source, rank, language_of(text), where)
    if term.definition:
        yield Definition(id, term.definition, source, where)
    if term.namespace:
        yield SemanticType(id, term.namespace, where)
    for tag in ("xref", "alt_id"):
        for other in filter(None, map(items.parse_curie, term.read_identifiers(tag))):
            yield ConceptMapping(id, other, tag, where)
    for predicate, identifier, _ in term.read_relations():
        other = items.parse_curie(identifier)
        if not other or not predicate:
            yield Drop(f"{where}: {id}", "relation to no identifier")
        elif other == id:
            yield Drop(f"{where}: {id}", "relation to itself")
        else:
            yield Relation(id, predicate, other, source, "", where)


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
