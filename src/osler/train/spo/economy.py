"""Cost of judging, against the paper's plain recipe (Omni-RAG §4.2.2, §5.1.2).

Plain: each query in a call of its own, with the better half of what it found. Tokens are
estimated as `kb.extract` does, or counted by a tokenizer that is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from osler.extract import estimate_tokens
from osler.prompts import RenderedPrompt
from osler.train.spo.explore import ExploredCase
from osler.train.spo.judge import judging_prompt, listing_prompt
from osler.train.spo.units import LIST, Unit, better_half

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class JudgeLoad:
    """Prompts of a judge."""

    calls: int = 0
    tokens: int = 0
    """Tokens of whole prompts; an engine with a prefix cache reads fewer."""

    def __add__(self, other: JudgeLoad) -> JudgeLoad:
        return JudgeLoad(self.calls + other.calls, self.tokens + other.tokens)


def plain_load(explored: ExploredCase, count: Count = estimate_tokens) -> JudgeLoad:
    """Load of the plain recipe: every query that found something, in a call of its own."""
    return _sum_load(explored, [better_half(query.found) for query in explored.queries], count)


def at_most(explored: ExploredCase, unit: Unit, count: Count = estimate_tokens) -> JudgeLoad:
    """Load of a judge by `unit` in the worst case: no query is decided early."""
    read = [better_half(query.found) for query in explored.queries]
    if unit == "set":
        # Queries that found the same documents, in whatever order, are judged once.
        return _sum_load(explored, {frozenset(found): found for found in read}.values(), count)
    every = list(dict.fromkeys(id for found in read for id in found))
    if unit == "document":
        return _sum_load(explored, [(id,) for id in every], count)
    lists = [every[start : start + LIST] for start in range(0, len(every), LIST)]
    return _sum_load(explored, lists, count, listing_prompt)


def _sum_load(
    explored: ExploredCase,
    groups: Iterable[Sequence[str]],
    count: Count,
    prompt: Callable[[ExploredCase, Sequence[str]], RenderedPrompt] = judging_prompt,
) -> JudgeLoad:
    prompts = [prompt(explored, read).text for read in groups if read]
    return JudgeLoad(len(prompts), sum(map(count, prompts)))
