"""Graphs in tables: HPO annotations, Hetionet, PrimeKG, DrugBank's vocabulary, plain triples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osler.graph.curies import make_curie, parse_curie
from osler.graph.formats.base import TableRow, read_table, text_lines
from osler.graph.formats.chinese import triple_items
from osler.graph.items import Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import plain_head
from osler.sources.records import Drop
from osler.text import language_of, one_line


def _has_header(head: bytes, *names: str) -> bool:
    """Whether the first line that is no comment begins with these columns."""
    lines = plain_head(head).decode(errors="replace").splitlines()
    first = next((line for line in lines if not line.startswith("#")), "")
    cells = [cell.strip().strip('"') for cell in first.replace("\t", ",").split(",")]
    return cells[: len(names)] == list(names)


_ASPECTS = {
    "P": "has_phenotype",
    "I": "has_mode_of_inheritance",
    "C": "has_clinical_course",
    "M": "has_clinical_modifier",
    "H": "has_past_medical_history",
}


class Hpoa:
    """`phenotype.hpoa`: which disease has which phenotype, how often, and who says so."""

    name = "hpoa"

    def matches(self, path: Path, head: bytes) -> bool:
        return path.name.startswith("phenotype.hpoa") or _has_header(
            head, "database_id", "disease_name", "qualifier", "hpo_id"
        )

    def read(self, path: Path) -> Iterator[Item]:
        needed = ("database_id", "disease_name", "qualifier", "hpo_id", "aspect")
        named = ""
        for row in read_table(path, needed, delimiter="\t", quoted=False):
            if isinstance(row, Drop):
                yield row
                continue
            cells = row.cells
            disease, phenotype = parse_curie(cells["database_id"]), parse_curie(cells["hpo_id"])
            kind = _ASPECTS.get(cells["aspect"].strip())
            if not (disease and phenotype):
                yield Drop(row.where, "no id")
                continue
            if kind is None:
                yield Drop(row.where, "unknown aspect")
                continue
            if disease != named:  # rows of a disease stand together
                named = disease
                yield Name(disease, cells["disease_name"], "HPO", 0, "en", row.where)
                yield SemanticType(disease, "Disease", row.where)
            denied = cells["qualifier"].strip() == "NOT"
            predicate = f"not_{kind}" if denied else kind
            yield Relation(disease, predicate, phenotype, "HPO", _annotation_note(cells), row.where)


def _annotation_note(cells: dict[str, str]) -> str:
    parts = (f"{key} {cells[key]}" for key in ("frequency", "onset", "sex") if cells.get(key))
    return "; ".join((*parts, cells.get("reference", ""))).strip("; ")


class GenesToPhenotype:
    name = "genes-to-phenotype"

    def matches(self, path: Path, head: bytes) -> bool:
        return _has_header(head, "ncbi_gene_id", "gene_symbol", "hpo_id")

    def read(self, path: Path) -> Iterator[Item]:
        needed = ("ncbi_gene_id", "gene_symbol", "hpo_id", "disease_id")
        named = ""
        for row in read_table(path, needed, delimiter="\t", quoted=False):
            if isinstance(row, Drop):
                yield row
                continue
            gene, cells = make_curie("NCBIGene", row.cells["ncbi_gene_id"]), row.cells
            if gene != named:
                named = gene
                yield Name(gene, cells["gene_symbol"], "NCBIGene", 0, "en", row.where)
                yield SemanticType(gene, "Gene", row.where)
            seen = "; ".join(cells.get(key, "") for key in ("frequency", "disease_id")).strip("; -")
            phenotype = parse_curie(cells["hpo_id"])
            yield Relation(gene, "associated_with", phenotype, "HPO", seen, row.where)


_PREFIXES = {
    "Compound": "DRUGBANK",
    "Gene": "NCBIGene",
    "Pharmacologic Class": "NDFRT",
    "Side Effect": "UMLS",
    "Symptom": "MESH",
}
_METAEDGES = {
    "AdG": "downregulates",
    "AeG": "expresses",
    "AuG": "upregulates",
    "CbG": "binds",
    "CcSE": "causes",
    "CdG": "downregulates",
    "CpD": "palliates",
    "CrC": "resembles",
    "CtD": "treats",
    "CuG": "upregulates",
    "DaG": "associates",
    "DdG": "downregulates",
    "DlA": "localizes",
    "DpS": "presents",
    "DrD": "resembles",
    "DuG": "upregulates",
    "GcG": "covaries",
    "GiG": "interacts",
    "GpBP": "participates",
    "GpCC": "participates",
    "GpMF": "participates",
    "GpPW": "participates",
    "Gr>G": "regulates",
    "PCiC": "includes",
}
"""Hetionet's verbs, by its abbreviations."""


def _hetionet_id(text: str) -> str:
    kind, apart, local = text.partition("::")
    return make_curie(_PREFIXES.get(kind, kind.replace(" ", "")), local) if apart and local else ""


class HetionetNodes:
    name = "hetionet-nodes"

    def matches(self, path: Path, head: bytes) -> bool:
        return _has_header(head, "id", "name", "kind") and b"::" in head

    def read(self, path: Path) -> Iterator[Item]:
        for row in read_table(path, ("id", "name", "kind"), delimiter="\t", quoted=False):
            if isinstance(row, Drop):
                yield row
            elif id := _hetionet_id(row.cells["id"]):
                yield Name(id, row.cells["name"], "Hetionet", 0, "en", row.where)
                yield SemanticType(id, row.cells["kind"], row.where)
            else:
                yield Drop(row.where, "no id")


class HetionetEdges:
    name = "hetionet-edges"

    def matches(self, path: Path, head: bytes) -> bool:
        return _has_header(head, "source", "metaedge", "target")

    def read(self, path: Path) -> Iterator[Item]:
        for row in read_table(path, ("source", "metaedge", "target"), delimiter="\t", quoted=False):
            if isinstance(row, Drop):
                yield row
                continue
            one, other = _hetionet_id(row.cells["source"]), _hetionet_id(row.cells["target"])
            kind = row.cells["metaedge"].strip()
            if one and other and kind:
                verb = _METAEDGES.get(kind, kind)
                yield Relation(one, verb, other, "Hetionet", kind, row.where)
            else:
                yield Drop(row.where, "no id")


class PrimeKg:
    """`kg.csv`. Every relation stands there from both ends; it is kept as it stands."""

    name = "primekg"

    def matches(self, path: Path, head: bytes) -> bool:
        first = head.split(b"\n", 1)[0]
        return all(column in first for column in (b"display_relation", b"x_id", b"y_id"))

    def read(self, path: Path) -> Iterator[Item]:
        ends = [f"{end}_{part}" for end in "xy" for part in ("id", "type", "name", "source")]
        seen: set[str] = set()
        for row in read_table(path, ("display_relation", *ends)):
            if isinstance(row, Drop):
                yield row
                continue
            one, other = _primekg_id(row, "x"), _primekg_id(row, "y")
            for end, id in (("x", one), ("y", other)):
                if id not in seen:
                    seen.add(id)
                    yield Name(id, row.cells[f"{end}_name"], "PrimeKG", 0, "en", row.where)
                    yield SemanticType(id, row.cells[f"{end}_type"], row.where)
            predicate = one_line(row.cells["display_relation"]).replace(" ", "_")
            note = f"PMID:{row.cells['PMID']}" if row.cells.get("PMID") else ""
            if predicate:
                yield Relation(one, predicate, other, "PrimeKG", note, row.where)
            else:
                yield Drop(row.where, "no predicate")


def _primekg_id(row: TableRow, end: str) -> str:
    return make_curie(row.cells[f"{end}_source"], row.cells[f"{end}_id"])


class DrugBankVocabulary:
    name = "drugbank-vocabulary"

    def matches(self, path: Path, head: bytes) -> bool:
        return _has_header(head, "DrugBank ID")

    def read(self, path: Path) -> Iterator[Item]:
        for row in read_table(path, ("DrugBank ID", "Common name", "Synonyms")):
            if isinstance(row, Drop):
                yield row
                continue
            id = make_curie("DRUGBANK", row.cells["DrugBank ID"])
            yield Name(id, row.cells["Common name"], "DRUGBANK", 0, "en", row.where)
            yield SemanticType(id, "Drug", row.where)
            for synonym in filter(str.strip, row.cells["Synonyms"].split("|")):
                yield Name(id, synonym, "DRUGBANK", 1, language_of(synonym), row.where)


_TRIPLES = (
    ("S", "P", "O"),
    ("subject", "predicate", "object"),
    ("head", "relation", "tail"),
)


class Triples:
    """Plain triples of names, in CSV or TSV: a name is its own identifier.

    With a header, or without one in three columns set apart by tabs.
    """

    name = "triples"

    def matches(self, path: Path, head: bytes) -> bool:
        return any(_has_header(head, *names) for names in _TRIPLES) or _is_bare_triples(head)

    def read(self, path: Path) -> Iterator[Item]:
        with open_file(path) as file:
            head = file.peek(4096)
        names = next((names for names in _TRIPLES if _has_header(head, *names)), None)
        if names is None:
            yield from _bare_triples(path)
            return
        tabs = b"\t" in plain_head(head).split(b"\n", 1)[0]
        for row in read_table(path, names, delimiter="\t" if tabs else ","):
            if isinstance(row, Drop):
                yield row
                continue
            one, predicate, other = (one_line(row.cells[name]) for name in names)
            note = row.cells.get("properties", "")
            yield from triple_items(one, predicate, other, path.stem, note, row.where)


def _is_bare_triples(head: bytes) -> bool:
    lines = [line for line in plain_head(head).split(b"\n")[:-1][:20] if line.strip()]
    return bool(lines) and all(line.count(b"\t") == 2 for line in lines) and b"\0" not in head


def _bare_triples(path: Path) -> Iterator[Item]:
    with open_file(path) as file:
        for line in text_lines(file, path.name):
            if isinstance(line, Drop):
                yield line
                continue
            number, text = line
            cells, where = text.rstrip("\r\n").split("\t"), f"{path.name}:{number}"
            if len(cells) != 3:
                yield Drop(where, "wrong number of columns", number)
                continue
            one, predicate, other = map(one_line, cells)
            yield from triple_items(one, predicate, other, path.stem, "", where)
