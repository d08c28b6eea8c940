"""Which actions are offered to the model at each step.

The paper offers all of them always (`AnyMove`); its ablations take Backtrack or
Summary away (§6.3). `Guided` is ours, for models too small to choose well: it
withholds the moves that the memory makes senseless, never the choice among the rest.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from osler.answer.extractive import Gate
from osler.tcrag.actions import Move
from osler.tcrag.stack import Kind, MemoryStack


@dataclass(frozen=True, slots=True)
class Offer:
    moves: frozenset[Move]
    tools: frozenset[str]


class Moves(Protocol):
    @property
    def taught(self) -> frozenset[Move]:
        """What the prompt describes: the widest offer."""
        ...

    async def offered(self, memory: MemoryStack, used: Collection[str], *, last: bool) -> Offer:
        """The moves at this step; `used` = tools called before, `last` = no step follows."""
        ...


@dataclass(frozen=True)
class AnyMove:
    """Every action at every step, as Algorithm 1 has it."""

    tools: frozenset[str]
    backtrack: bool = True
    summary: bool = True

    @property
    def taught(self) -> frozenset[Move]:
        without = {Move.BACKTRACK: not self.backtrack, Move.SUMMARY: not self.summary}
        return frozenset(move for move in Move if not without.get(move, False))

    async def offered(self, memory: MemoryStack, used: Collection[str], *, last: bool) -> Offer:
        return Offer(self.taught, self.tools)


@dataclass(frozen=True)
class Guided:
    """Withholds what makes no sense: PAPERS.md#tc-rag, "guided moves".

    * Conclusion only over evidence that stands in memory, and always at the last step;
    * Backtrack only where the top is an observation without a relevant passage,
      and there nothing may be built on it;
    * Summary only over a long observation; no Thought upon a Thought;
    * a tool is not asked the same thing twice.
    """

    widest: AnyMove
    gate: Gate
    """What is evidence for the question; an observation without any is noise."""
    long: int = 2_400
    """Characters from which an observation is worth a summary."""

    @property
    def taught(self) -> frozenset[Move]:
        return self.widest.taught

    async def offered(self, memory: MemoryStack, used: Collection[str], *, last: bool) -> Offer:
        fresh = frozenset(self.widest.tools - set(used))
        moves = {Move.TOOL_USE} if fresh else set()
        if memory.top.kind is Kind.OBSERVATION and await self._noise(memory):
            moves.add(Move.BACKTRACK if Move.BACKTRACK in self.taught else Move.THOUGHT)
        else:
            moves |= self._upon(memory, last=last)
        if last and memory.hits:
            moves = {Move.CONCLUSION}
        return Offer(frozenset(moves & self.taught or {Move.THOUGHT}), fresh)

    def _upon(self, memory: MemoryStack, *, last: bool) -> set[Move]:
        moves = set()
        if memory.hits:
            moves.add(Move.CONCLUSION)
        if memory.top.kind is not Kind.THOUGHT:
            moves.add(Move.THOUGHT)
        if memory.top.kind is Kind.OBSERVATION and len(memory.top.text) >= self.long:
            moves.add(Move.SUMMARY)
        return moves

    async def _noise(self, memory: MemoryStack) -> bool:
        return not await self.gate.evidence(memory.question, memory.top.hits)
