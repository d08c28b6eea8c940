"""Identifiers as `PREFIX:local`, in one spelling whatever a source calls the vocabulary."""

from __future__ import annotations

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
