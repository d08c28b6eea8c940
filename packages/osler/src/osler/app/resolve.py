"""Which documents of a knowledge base an identifier names: PMID, DOI, NCT, ISBN and others."""

from __future__ import annotations

from osler.answer.export.layout import find_identifiers
from osler.errors import UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.sources.citable import CitableId, find_citable_ids
from osler.text import make_slug
from osler.types import Passage


def resolve_reference(kb: KnowledgeBase, words: str) -> tuple[Passage, ...]:
    """The first passage of each document that bears the identifier. Blocks.

    Raises `UnknownPassage` for one whose form or check digit is wrong, and for one that no document
    has; words without an identifier name nothing.
    """
    named = next(iter(find_citable_ids(words)), None)
    if named is None:
        return ()
    if not named.is_valid:
        raise UnknownPassage(
            f"{words!r} is not a valid {named.kind}",
            fix="compare it with its source: a digit is wrong",
        )
    found = tuple(
        passage
        for passage in kb.first_passages(_document_ids(named))
        if find_identifiers(passage).get(named.kind) == named.value
    )
    if not found:
        raise UnknownPassage(f"no document has {named.kind} {named.value}", fix="`osler kb search`")
    return found


def _document_ids(named: CitableId) -> list[str]:
    """How the readers of formats name a document with this identifier."""
    plain = named.value.replace(" ", "-")
    upper, lower = make_slug(plain), make_slug(plain.lower())
    return [upper, lower, named.value.removeprefix("PMC")]
