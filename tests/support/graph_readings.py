"""Chains in words read back, and the communities of one concept."""

from __future__ import annotations

import re

from osler.graph.communities import Communities, Community
from osler.graph.items import ConceptChain

Triple = tuple[str, str, str]

_ESCAPED = re.compile(r"([\\—→←])")
_LINK = re.compile(r" —((?:\\.|[^\\—→←])*)→ | ←((?:\\.|[^\\—→←])*)— ")
_UNESCAPED = re.compile(r"\\(.)")


def parse_chain(text: str) -> tuple[Triple, ...]:
    """The triples of a verbalised chain. Raises `ValueError` when it is none."""
    links = list(_LINK.finditer(text))
    starts = [0, *(link.end() for link in links)]
    ends = [*(link.start() for link in links), len(text)]
    raw = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if not links or any(_ESCAPED.search(_UNESCAPED.sub("", name)) for name in raw):
        raise ValueError(f"no chain, name —relation→ name: {text}")
    names = [_UNESCAPED.sub(r"\1", name) for name in raw]
    triples: list[Triple] = []
    for one, link, two in zip(names, links, names[1:], strict=False):
        forward = link[1] is not None
        predicate = _UNESCAPED.sub(r"\1", link[1] if forward else link[2])
        triples.append((one, predicate, two) if forward else (two, predicate, one))
    return tuple(triples)


def triples_of(chain: ConceptChain) -> tuple[Triple, ...]:
    """The relations as they are stated, by names."""
    ends = zip(chain.names, chain.steps, chain.names[1:], strict=False)
    return tuple(
        (one, step.predicate, two) if step.forward else (two, step.predicate, one)
        for one, step, two in ends
    )


def communities_of(found: Communities, concept: str) -> list[Community]:
    """The communities of a concept, the smallest first; [] for one without relations."""
    numbers = found.graph.numbers_of([concept])
    inside_out = found.list_ancestors(found.leaf_numbers()[numbers[0]]) if numbers else ()
    return [found.get_community(number) for number in inside_out]
