"""Finds what texts state of a named thing: one relation, one value, and the sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.graph.items import Edge
from osler.methods.kag.text_route.relations import read_text_vocabulary
from osler.methods.kag.text_route.spans import TextSpan, find_span, plain_name
from osler.retrieve import look_up
from osler.trace import Run
from osler.types import Hit, Retriever

_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A relation of a subject as a passage states it."""

    edge: Edge
    hit: Hit
    span: TextSpan


@dataclass(frozen=True)
class FactFinder:
    """Searches a name, and takes the value of a relation from what was found by the span rule."""

    texts: Retriever
    sources: tuple[str, ...] = ()
    k: int = 10

    async def search(self, words: str, run: Run) -> tuple[Hit, ...]:
        """The best `k` hits. Raises `BudgetExceeded`."""
        return (await look_up(self.texts, words, run, k=self.k, sources=self.sources)).hits

    async def find_fact(self, name: str, hop: str, run: Run) -> StatedFact | None:
        """What the texts state of a relation of a name, those of its own page first."""
        relation = read_text_vocabulary().relations[hop]
        noun = relation.nouns[0]
        # "Windhoek, South-West Africa" has its page as "Windhoek".
        for said in dict.fromkeys((name, name.partition(",")[0])):
            seen: dict[str, Hit] = {}
            for words in (f"{said} {noun}", said):
                found = await self.search(words, run)
                fresh = [hit for hit in found if hit.passage.id not in seen]
                seen.update((hit.passage.id, hit) for hit in fresh)
                near = _near_name(fresh, said)
                for hit, own in near:
                    span = find_span(relation, said, hit.passage.text, own=own)
                    if span is not None:
                        edge = Edge(plain_name(name), hop, plain_name(span.value), name, span.value)
                        return StatedFact(edge, hit, span)
                if any(own for _, own in near):
                    break
        return None


def _near_name(hits: Sequence[Hit], name: str) -> list[tuple[Hit, bool]]:
    """The passages of a name's own page, then those that name it, with whether they are its own."""
    wanted = plain_name(name)
    bare = plain_name(_BRACKET.sub("", name))

    def nearness(hit: Hit) -> int:
        title = plain_name(hit.passage.title)
        if title == wanted:
            return 0
        if plain_name(_BRACKET.sub("", hit.passage.title)) in (wanted, bare):
            return 1
        if title.startswith(wanted) or (wanted.startswith(title) and 2 * len(title) > len(wanted)):
            return 2
        return 3 if wanted in plain_name(hit.passage.text) else 4

    ranked = sorted(((nearness(hit), n, hit) for n, hit in enumerate(hits)), key=lambda r: r[:2])
    return [(hit, near < 3) for near, _, hit in ranked if near < 4]
