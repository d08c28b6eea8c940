"""A concept as text: Omni-RAG's wire form of a graph result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from osler.sources.records import Section
from osler.text import clean_text

Triple = tuple[str, str, str]
"""Subject, relation, object: (STR2, RELA, STR1)."""

_LONGEST = 1000


def concept_sections(definition: str, relations: Iterable[Triple]) -> tuple[Section, ...]:
    """`Definition: …\\nRelation: (STR2, RELA, STR1); (…).`, either line left out when empty.

    What is longer than a passage (1,000 characters) goes on in further sections of
    the same form, so that no triple is ever cut in two.
    """
    opening = f"Definition: {definition}" if definition else ""
    return tuple(
        Section(clean_text(text))
        for text in _wrap_triples(opening, (f"({', '.join(triple)})" for triple in relations))
    )


def names_line(names: Iterable[str]) -> str:
    """All names joined by "/"; one that differs from an earlier only in case is left out."""
    seen: dict[str, str] = {}
    for name in names:
        seen.setdefault(name.casefold(), name)
    return "/".join(seen.values())


def _wrap_triples(opening: str, triples: Iterator[str]) -> Iterator[str]:
    text = opening
    started = False
    for triple in triples:
        if text and len(text) + len(triple) + len("\nRelation: .") > _LONGEST:
            yield f"{text}." if started else text
            text, started = "", False
        if not started:
            text = f"{text}\nRelation: {triple}" if text else f"Relation: {triple}"
        else:
            text = f"{text}; {triple}"
        started = True
    if text:
        yield f"{text}." if started else text
