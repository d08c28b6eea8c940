"""MeSH: descriptors in XML, or as tables of terms and tree numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from osler.graph.formats.base import read_table
from osler.graph.items import Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Drop


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
