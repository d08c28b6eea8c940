"""DrugBank's full database in XML, by its public schema (5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lxml import etree

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
