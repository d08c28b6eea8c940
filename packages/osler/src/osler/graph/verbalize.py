"""Chains of relations as values and as text that can be parsed back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

from osler.errors import MalformedOutput
from osler.sources.formats.concept_text import Triple


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

    @property
    def triples(self) -> tuple[Triple, ...]:
        """The relations as they are stated, by names."""
        ends = zip(self.names, self.steps, self.names[1:], strict=False)
        return tuple(
            (one, step.predicate, two) if step.forward else (two, step.predicate, one)
            for one, step, two in ends
        )


# Text


# Names may hold the very characters that draw the arrows: they are escaped by "\\".
_ESCAPED = re.compile(r"([\\—→←])")
_LINK = re.compile(r" —((?:\\.|[^\\—→←])*)→ | ←((?:\\.|[^\\—→←])*)— ")
_UNESCAPED = re.compile(r"\\(.)")


def verbalise_chain(chain: ConceptChain) -> str:
    """ "Metformin —treats→ Diabetes ←complicates— Ketosis"; `parse_chain` reads it back."""
    text = _ESCAPED.sub(r"\\\1", chain.names[0])
    for step, name in zip(chain.steps, chain.names[1:], strict=True):
        predicate, other = (_ESCAPED.sub(r"\\\1", part) for part in (step.predicate, name))
        text += f" —{predicate}→ {other}" if step.forward else f" ←{predicate}— {other}"
    return text


def parse_chain(text: str) -> tuple[Triple, ...]:
    """The triples of a verbalised chain. Raises `MalformedOutput` when it is none."""
    links = list(_LINK.finditer(text))
    starts = [0, *(link.end() for link in links)]
    ends = [*(link.start() for link in links), len(text)]
    raw = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    if not links or any(_ESCAPED.search(_UNESCAPED.sub("", name)) for name in raw):
        raise MalformedOutput(text, expected="a chain: name —relation→ name")
    names = [_UNESCAPED.sub(r"\1", name) for name in raw]
    triples: list[Triple] = []
    for one, link, two in zip(names, links, names[1:], strict=False):
        forward = link[1] is not None
        predicate = _UNESCAPED.sub(r"\1", link[1] if forward else link[2])
        triples.append((one, predicate, two) if forward else (two, predicate, one))
    return tuple(triples)
