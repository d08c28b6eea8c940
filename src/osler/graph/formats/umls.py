"""UMLS Metathesaurus, a folder of RRF tables, row by row in constant memory.

Unlike the passages of the same tables (`osler.sources.formats.rrf`) the graph keeps concepts
that have neither a definition nor a relation: their names are still worth linking to.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osler.graph.curies import make_curie
from osler.graph.items import ConceptMapping, Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.rrf import (
    RrfDefinition,
    RrfName,
    RrfRow,
    RrfType,
    is_release,
    read_release,
)
from osler.sources.records import Drop

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
