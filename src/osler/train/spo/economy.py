"""What judging costs, against the paper's plain recipe (Omni-RAG §4.2.2, §5.1.2).

Plain: each query in a call of its own, with the better half of what it found. Tokens are
estimated as `kb.extract` does, or counted by a tokenizer that is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from osler.extract.base import tokens
from osler.prompts import Rendered
from osler.train.spo.explore import Explored
from osler.train.spo.judge import judging_prompt, listing_prompt
from osler.train.spo.units import LIST, Unit, half

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Load:
    """Prompts of a judge."""

    calls: int = 0
    tokens: int = 0
    """Of whole prompts; an engine with a prefix cache reads fewer."""

    def __add__(self, other: Load) -> Load:
        return Load(self.calls + other.calls, self.tokens + other.tokens)


def plain(explored: Explored, count: Count = tokens) -> Load:
    """Every query that found something, in a call of its own."""
    return _load(explored, [half(query.found) for query in explored.queries], count)


def at_most(explored: Explored, unit: Unit, count: Count = tokens) -> Load:
    """What a judge by `unit` reads where no query is decided early."""
    read = [half(query.found) for query in explored.queries]
    if unit == "set":
        return _load(explored, {frozenset(found): found for found in read}.values(), count)
    every = list(dict.fromkeys(id for found in read for id in found))
    if unit == "document":
        return _load(explored, [(id,) for id in every], count)
    lists = [every[start : start + LIST] for start in range(0, len(every), LIST)]
    return _load(explored, lists, count, listing_prompt)


def _load(
    explored: Explored,
    groups: Iterable[Sequence[str]],
    count: Count,
    prompt: Callable[[Explored, Sequence[str]], Rendered] = judging_prompt,
) -> Load:
    prompts = [prompt(explored, read).text for read in groups if read]
    return Load(len(prompts), sum(map(count, prompts)))
