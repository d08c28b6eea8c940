"""Descriptions of concepts from an encyclopaedia's articles (TC-RAG App. 8.5)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from osler.graph.items import Definition
from osler.graph.store import Graph
from osler.text import one_line, split_sentences
from osler.types import Passage

LONGEST = 500
"""Characters of a description."""
# The addition that tells articles of one name apart: "Mercury (element)".
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]$")


@dataclass(frozen=True, slots=True)
class DescriptionReport:
    described: int
    """Concepts that have a description of this text now and had none of it before."""
    unknown: int
    """Articles whose title no concept has."""
    ambiguous: int
    """Articles whose title several concepts have: they describe none."""


def describe_concepts(graph: Graph, documents: Iterable[tuple[Passage, ...]]) -> DescriptionReport:
    """Adds the first sentences of each article as a definition of the concept with its title.

    `documents`: the passages of each article, in order. The definition's source is the
    passage's id, so that it opens; definitions of vocabularies come before it (Omni-RAG
    §3.2). Describing twice changes nothing.
    """
    definitions: list[Definition] = []
    unknown = ambiguous = 0
    for passages in documents:
        if not passages:
            continue
        first = passages[0]
        concepts = _find_titled(graph, first.title)
        if len(concepts) == 1:
            definitions.append(
                Definition(concepts[0], _first_sentences(first.text), first.id, first.id)
            )
        elif concepts:
            ambiguous += 1
        else:
            unknown += 1
    return DescriptionReport(
        graph.add(definitions).definitions if definitions else 0, unknown, ambiguous
    )


def _find_titled(graph: Graph, title: str) -> list[str]:
    if not title.strip():
        return []
    matches = graph.find_exact(title) or graph.find_exact(_ASIDE.sub("", title))
    # A preferred name decides against a synonym that another concept has as well.
    preferred = [m for m in matches if (c := graph.get_concept(m.concept)) and c.name == m.name]
    return [match.concept for match in (preferred if len(preferred) == 1 else matches)]


def _first_sentences(text: str) -> str:
    line = one_line(text)
    spans = split_sentences(line)
    ends = [end for _, end in spans if end <= LONGEST]
    return line[: ends[-1]] if ends else line[: LONGEST - 1].rstrip() + "…"
