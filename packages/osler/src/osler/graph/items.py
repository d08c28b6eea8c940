"""The facts that an importer yields, and the values that a graph returns.

The stream is flat so that nothing need be joined before it is stored: a release of
any size passes through in constant memory. A concept is there as soon as it has a name.

Chains of relations are written as text that could be parsed back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

from osler.sources.records import Drop


def relation_mark(subject: str, predicate: str, object_: str) -> str:
    """A hash (12 hexadecimal digits) that identifies a relation, whatever the order of import."""
    return text_mark("\0".join((subject, predicate, object_)))


def text_mark(text: str) -> str:
    """12 hexadecimal digits that identify a text."""
    return blake2b(text.encode(), digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class ChainStep:
    predicate: str
    forward: bool
    """Whether the relation is stated from the concept before it to the one after it."""


@dataclass(frozen=True, slots=True)
class ConceptChain:
    """`concepts[0] steps[0] concepts[1] …`; one concept more than steps."""

    concepts: tuple[str, ...]
    names: tuple[str, ...]
    steps: tuple[ChainStep, ...]
    score: float
    """In (0, 1]; 1 for a single relation."""

    @property
    def marks(self) -> tuple[str, ...]:
        """The mark of each relation: with the first concept they are the chain's identity."""
        ends = zip(self.concepts, self.steps, self.concepts[1:], strict=False)
        return tuple(
            relation_mark(one, step.predicate, two)
            if step.forward
            else relation_mark(two, step.predicate, one)
            for one, step, two in ends
        )


# Names may hold the very characters that draw the arrows: they are escaped by "\\".
_ESCAPED = re.compile(r"([\\—→←])")


def verbalise_chain(chain: ConceptChain) -> str:
    """ "Metformin —treats→ Diabetes ←complicates— Ketosis"."""
    text = _ESCAPED.sub(r"\\\1", chain.names[0])
    for step, name in zip(chain.steps, chain.names[1:], strict=True):
        predicate, other = (_ESCAPED.sub(r"\\\1", part) for part in (step.predicate, name))
        text += f" —{predicate}→ {other}" if step.forward else f" ←{predicate}— {other}"
    return text


_PREFIXES = {
    "umls_cui": "UMLS",
    "cui": "UMLS",
    "msh": "MESH",
    "nci": "NCIT",
    "ordo": "ORPHA",
    "orphanet": "ORPHA",
    "hpo": "HP",
    "do": "DOID",
    "snomedct": "SNOMEDCT",
    "drugbank": "DRUGBANK",
    "ncbi": "NCBIGene",
    "ncbigene": "NCBIGene",
}
_VOCABULARIES = {"HP": "HPO", "MESH": "MSH", "NCIT": "NCI"}
_PADDED = {"MONDO": 7, "HP": 7}
_UPPER = frozenset({"DOID", "HP", "MESH", "MONDO", "OMIM", "UMLS", "GO", "UBERON", "NCIT"})


def make_curie(prefix: str, local: str) -> str:
    """`DOID:9352`; an identifier that has its own prefix ("HP:0000001") keeps that."""
    head, colon, rest = local.strip().partition(":")
    if colon and head and rest:
        prefix, local = head, rest
    prefix, local = prefix.strip(), local.strip()
    folded = prefix.casefold()
    if folded.startswith("snomedct"):
        folded = "snomedct"
    prefix = _PREFIXES.get(folded, prefix)
    prefix = prefix.upper() if prefix.upper() in _UPPER else prefix
    # Tables that went through a spreadsheet have lost the leading zeros: "HP:118".
    if local.isascii() and local.isdigit():
        local = local.zfill(_PADDED.get(prefix, 0))
    return f"{prefix}:{local}"


def parse_curie(identifier: str) -> str:
    """The CURIE that a text holds, itself or as the last part of an address, in our spelling;
    "" for other texts."""
    text = identifier.strip()
    if "://" in text:
        text = text.rsplit("/", 1)[-1].rsplit("#", 1)[-1].replace("_", ":", 1)
    head, colon, local = text.partition(":")
    return make_curie(head, local) if colon and head.strip() and local.strip() else ""


def name_vocabulary(identifier: str) -> str:
    """The vocabulary of an identifier as UMLS calls it: HPO for HP, else the prefix itself."""
    prefix = identifier.partition(":")[0]
    return _VOCABULARIES.get(prefix, prefix)


DRUG_SECTIONS = (
    "indication",
    "mechanism-of-action",
    "pharmacodynamics",
    "absorption",
    "metabolism",
    "half-life",
    "protein-binding",
    "route-of-elimination",
    "volume-of-distribution",
    "clearance",
    "toxicity",
)
"""Sections of a drug's record; each is a definition with the source "DRUGBANK section"."""

SAMPLE_CONCEPTS = ("OSLER:", "UMLS:C99")
"""Beginnings of the identifiers in the packaged sample graph; UMLS itself has none so high."""

Direction = Literal["out", "in", "both"]


class Name(NamedTuple):
    """A name of a concept. `rank` 0 is the preferred one; equal ranks stand in order of text."""

    concept: str
    """Its identifier as a CURIE ("DOID:9352", "UMLS:C0011849"), never empty."""
    text: str
    source: str = ""
    """The vocabulary that has it."""
    rank: int = 1
    language: str = "en"
    where: str = ""
    """File and line, for what has to be dropped."""


class Definition(NamedTuple):
    concept: str
    text: str
    source: str = ""
    where: str = ""


class SemanticType(NamedTuple):
    """A semantic type of a concept: "Disease or Syndrome", "Gene"."""

    concept: str
    type: str
    where: str = ""


class Relation(NamedTuple):
    """`subject predicate object`, as its source states it."""

    subject: str
    predicate: str
    object: str
    source: str = ""
    note: str = ""
    """The source's addition: a reference, a frequency. Shown, never searched."""
    where: str = ""


class ConceptMapping(NamedTuple):
    """`concept` is the same thing as `other`, says `source`; either may be absent here."""

    concept: str
    other: str
    source: str = ""
    where: str = ""


Item = Name | Definition | SemanticType | Relation | ConceptMapping | Drop
Stream = Iterable[Item]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Counts of what one import added; what was there already is not counted again."""

    concepts: int = 0
    names: int = 0
    definitions: int = 0
    relations: int = 0
    mappings: int = 0
    drops: tuple[tuple[str, int], ...] = ()
    """Reasons with their counts, the most frequent first."""
    examples: tuple[Drop, ...] = ()
    """The first drops of each reason, at most `EXAMPLES` of one."""


EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class GraphInfo:
    concepts: int
    names: int
    definitions: int
    relations: int
    mappings: int
    merges: int
    predicates: tuple[tuple[str, int], ...]
    """With the number of their relations, the most frequent first."""
    sources: tuple[tuple[str, int], ...]
    """Vocabularies with the number of their names."""
    size: int
    """Bytes of `graph.sqlite`."""


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept as it is stored."""

    id: str
    name: str
    names: tuple[str, ...]
    """All, the preferred one first, none twice."""
    types: tuple[str, ...]
    definitions: tuple[tuple[str, str], ...]
    """Source and text, the best source first (Omni-RAG §3.2)."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation with the names of its ends."""

    subject: str
    predicate: str
    object: str
    subject_name: str
    object_name: str
    source: str = ""

    @property
    def triple(self) -> tuple[str, str, str]:
        """(STR2, RELA, STR1), as Omni-RAG writes it."""
        return self.subject_name, self.predicate, self.object_name


@dataclass(frozen=True, slots=True)
class NamedConcept:
    """A concept that a text may name."""

    concept: str
    name: str
    """The concept's name that fits."""
    how: Literal["exact", "normal", "fuzzy", "near"]
    """near: its vector is."""
    score: float
    """In (0, 1]; 1 for exact and normal ones."""
