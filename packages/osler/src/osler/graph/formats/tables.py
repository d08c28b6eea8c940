"""Graphs in tables: UMLS, HPO, Hetionet, the vocabulary of DrugBank, plain triples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osler.graph.formats.base import TableImporter, TableRow, has_columns, read_table, text_lines
from osler.graph.formats.chinese import triple_items
from osler.graph.items import (
    ConceptMapping,
    Definition,
    Item,
    Name,
    Relation,
    SemanticType,
    make_curie,
    parse_curie,
)
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import names_in, plain_head
from osler.sources.formats.rrf import (
    RrfDefinition,
    RrfName,
    RrfRow,
    RrfType,
    is_release,
    read_release,
)
from osler.sources.records import Drop
from osler.text import language_of, one_line

# HPO's aspects of an annotation, as predicates.
_ASPECTS = {
    "P": "has_phenotype",
    "I": "has_mode_of_inheritance",
    "C": "has_clinical_course",
    "M": "has_clinical_modifier",
    "H": "has_past_medical_history",
}


class Hpoa(TableImporter):
    """`phenotype.hpoa`: which disease has which phenotype, how often, and who says so."""

    name = "hpoa"
    needed = ("database_id", "disease_name", "qualifier", "hpo_id", "aspect")

    def matches(self, path: Path, head: bytes) -> bool:
        return path.name.startswith("phenotype.hpoa") or has_columns(head, *self.needed[:4])

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        cells = row.cells
        disease, phenotype = parse_curie(cells["database_id"]), parse_curie(cells["hpo_id"])
        predicate = _ASPECTS.get(cells["aspect"].strip())
        if not (disease and phenotype):
            yield Drop(row.where, "no id")
            return
        if predicate is None:
            yield Drop(row.where, "unknown aspect")
            return
        if disease not in seen:
            seen.add(disease)
            yield Name(disease, cells["disease_name"], "HPO", 0, "en", row.where)
            yield SemanticType(disease, "Disease", row.where)
        if cells["qualifier"].strip() == "NOT":
            predicate = f"not_{predicate}"
        parts = [f"{key} {cells[key]}" for key in ("frequency", "onset", "sex") if cells.get(key)]
        note = "; ".join((*parts, cells.get("reference", ""))).strip("; ")
        yield Relation(disease, predicate, phenotype, "HPO", note, row.where)


_PREFIXES = {
    "Compound": "DRUGBANK",
    "Gene": "NCBIGene",
    "Pharmacologic Class": "NDFRT",
    "Side Effect": "UMLS",
    "Symptom": "MESH",
}
# Hetionet's verbs, by its abbreviations.
_METAEDGES = dict(
    pair.split(":")
    for pair in names_in("""
        AdG:downregulates AeG:expresses AuG:upregulates CbG:binds CcSE:causes CdG:downregulates
        CpD:palliates CrC:resembles CtD:treats CuG:upregulates DaG:associates DdG:downregulates
        DlA:localizes DpS:presents DrD:resembles DuG:upregulates GcG:covaries GiG:interacts
        GpBP:participates GpCC:participates GpMF:participates GpPW:participates Gr>G:regulates
        PCiC:includes
    """)
)


def _hetionet_id(text: str) -> str:
    kind, separator, local = text.partition("::")
    prefix = _PREFIXES.get(kind, kind.replace(" ", ""))
    return make_curie(prefix, local) if separator and local else ""


class HetionetNodes(TableImporter):
    name = "hetionet-nodes"
    needed = ("id", "name", "kind")

    def matches(self, path: Path, head: bytes) -> bool:
        return has_columns(head, *self.needed) and b"::" in head

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        if id := _hetionet_id(row.cells["id"]):
            yield Name(id, row.cells["name"], "Hetionet", 0, "en", row.where)
            yield SemanticType(id, row.cells["kind"], row.where)
        else:
            yield Drop(row.where, "no id")


class HetionetEdges(TableImporter):
    name = "hetionet-edges"
    needed = ("source", "metaedge", "target")

    def matches(self, path: Path, head: bytes) -> bool:
        return has_columns(head, *self.needed)

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        one, other = _hetionet_id(row.cells["source"]), _hetionet_id(row.cells["target"])
        kind = row.cells["metaedge"].strip()
        if one and other and kind:
            yield Relation(one, _METAEDGES.get(kind, kind), other, "Hetionet", kind, row.where)
        else:
            yield Drop(row.where, "no id")


class DrugBankVocabulary(TableImporter):
    name = "drugbank-vocabulary"
    needed = ("DrugBank ID", "Common name", "Synonyms")
    delimiter = ","

    def matches(self, path: Path, head: bytes) -> bool:
        return has_columns(head, "DrugBank ID")

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        id = make_curie("DRUGBANK", row.cells["DrugBank ID"])
        yield Name(id, row.cells["Common name"], "DRUGBANK", 0, "en", row.where)
        yield SemanticType(id, "Drug", row.where)
        for synonym in filter(str.strip, row.cells["Synonyms"].split("|")):
            yield Name(id, synonym, "DRUGBANK", 1, language_of(synonym), row.where)


_TRIPLES = (("S", "P", "O"), ("subject", "predicate", "object"), ("head", "relation", "tail"))


class Triples:
    """Plain triples of names, in CSV or TSV: a name is its own identifier.

    With a header, or without one in three columns set apart by tabs.
    """

    name = "triples"

    def matches(self, path: Path, head: bytes) -> bool:
        return any(has_columns(head, *names) for names in _TRIPLES) or _is_bare_triples(head)

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of all rows, each with its names."""
        with open_file(path) as file:
            head = file.peek(4096)
        names = next((names for names in _TRIPLES if has_columns(head, *names)), None)
        if names is None:
            yield from _bare_triples(path)
            return
        first = plain_head(head).split(b"\n", 1)[0]
        # Between tabs a quotation mark is one (5" plaster), unless the header is quoted too.
        cut, quoted = ("\t", b'"' in first) if b"\t" in first else (",", True)
        for row in read_table(path, names, delimiter=cut, quoted=quoted):
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
            if len(cells) == 3:
                one, predicate, other = map(one_line, cells)
                yield from triple_items(one, predicate, other, path.stem, "", where)
            else:
                yield Drop(where, "wrong number of columns", number)


# Vocabularies whose codes are identifiers that other graphs use.
_CODED = frozenset({"MSH", "HPO", "NCI", "OMIM", "MONDO", "DO", "SNOMEDCT_US"})


class Umls:
    name = "umls"

    def matches(self, path: Path, head: bytes) -> bool:
        return path.is_dir() and is_release(path)

    def read(self, path: Path) -> Iterator[Item]:
        for row in read_release(path):
            if isinstance(row, Drop):
                yield row
            else:
                yield from _row_items(row[1], row[0])


def _row_items(row: RrfRow, where: str) -> Iterator[Item]:
    match row:
        case RrfName(cui, text, language, rank, vocabulary, code):
            yield Name(f"UMLS:{cui}", text, vocabulary, rank, language, where)
            if vocabulary in _CODED:
                other = make_curie(vocabulary, code)
                yield ConceptMapping(f"UMLS:{cui}", other, vocabulary, where)
        case RrfDefinition(cui, text, vocabulary):
            yield Definition(f"UMLS:{cui}", text, vocabulary, where)
        case RrfType(cui, type_):
            yield SemanticType(f"UMLS:{cui}", type_, where)
        case _:
            subject, object_ = f"UMLS:{row.subject}", f"UMLS:{row.object}"
            yield Relation(subject, row.predicate, object_, row.vocabulary, "", where)
