"""Policies on which actions the model may take at each step.

The paper always offers all of them (`AnyMove`); its ablations remove Backtrack or Summary
(§6.3). `GuidedMoves` is ours, for models too small to choose well: it withholds moves that the
memory makes pointless and leaves the choice among the rest to the model. Whether an observation
bears on the question is the gate's to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from osler.answer.disagreement import find_difference, read_claim
from osler.answer.gate import EvidenceGate
from osler.methods.tcrag.actions import Move
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.text import split_sentences
from osler.types import Hit, Language, Question

LEAST: Mapping[Language, float] = {"en": 0.1, "zh": 0.2}
"""Least sureness of passages that bear on the question. Chosen on development questions of PubMedQA
and BioASQ, gold snippets against the nearest ones of other documents, and on Chinese ones over the
sample (`research/log/tc-rag.md`)."""


@dataclass(frozen=True)
class ObservationJudge:
    """Says which observations are noise: passages that do not bear on the question.

    By the sureness of the gate's expert; where it cannot judge, an observation without evidence is
    noise.
    """

    gate: EvidenceGate

    async def finds_evidence(
        self, question: Question, hits: Sequence[Hit], *, passages: int = 1
    ) -> bool:
        """Whether the gate finds evidence in so many passages."""
        found = (await self.gate.weigh_evidence(question, hits)).quotes
        return len({quote.hit.passage.id for quote in found}) >= passages

    async def is_noise(self, question: Question, hits: Sequence[Hit]) -> bool:
        weighed = await self.gate.weigh_evidence(question, hits)
        if weighed.sureness is None:
            return not weighed.quotes
        return weighed.sureness.probability < LEAST[question.language]


def is_contradicted(thought: str, hits: Sequence[Hit], language: Language) -> bool:
    """Whether a passage gives another amount or direction than a sentence of the Thought, by the
    rules of `answer.disagreement`."""
    mine = [read_claim(thought[start:end]) for start, end in split_sentences(thought)]
    theirs = [
        read_claim(hit.passage.text[start:end])
        for hit in hits
        for start, end in split_sentences(hit.passage.text)
    ]
    pairs = ((own, other) for own in mine for other in theirs)
    return any(find_difference(own, other, language) for own, other in pairs)


@dataclass(frozen=True, slots=True)
class OfferedMoves:
    moves: frozenset[Move]
    tools: frozenset[str]


@dataclass
class TriedMoves:
    """Tools and conclusions that a run has tried so far."""

    tools: set[str] = field(default_factory=set)
    refused: set[frozenset[str]] = field(default_factory=set)
    """Sets of passage ids over which a Conclusion was rejected as too uncertain."""

    def refuse_evidence(self, memory: MemoryStack) -> None:
        self.refused.add(_evidence_ids(memory))

    def was_refused(self, memory: MemoryStack) -> bool:
        return _evidence_ids(memory) in self.refused


def _evidence_ids(memory: MemoryStack) -> frozenset[str]:
    return frozenset(hit.passage.id for hit in memory.hits)


class Moves(Protocol):
    @property
    def taught_moves(self) -> frozenset[Move]:
        """The moves that the prompt describes: all that can ever be offered."""

    async def offer_moves(
        self, memory: MemoryStack, tried: TriedMoves, *, last: bool
    ) -> OfferedMoves:
        """The moves at this step, none to end the run; `last`: no step follows."""


@dataclass(frozen=True)
class AnyMove:
    """Every action at every step, as Algorithm 1 has it."""

    tools: frozenset[str]
    backtrack: bool = True
    summary: bool = True

    @property
    def taught_moves(self) -> frozenset[Move]:
        without = {Move.BACKTRACK: not self.backtrack, Move.SUMMARY: not self.summary}
        return frozenset(move for move in Move if not without.get(move, False))

    async def offer_moves(
        self, memory: MemoryStack, tried: TriedMoves, *, last: bool
    ) -> OfferedMoves:
        return OfferedMoves(self.taught_moves, self.tools)


@dataclass(frozen=True)
class GuidedMoves:
    """Withholds pointless moves (docs/papers/tc-rag.md, "guided moves").

    * Conclusion only over evidence in memory that was not rejected before, and always at the
      last step;
    * Backtrack only when the top is an observation without a relevant passage, and then
      nothing else: what a tool puts on top of noise could only be reached by popping both; or
      when the top is a Thought that evidence in memory contradicts;
    * Summary only over a long memory with several passages of evidence on top; no Thought directly
      after a Thought;
    * no tool is used twice;
    * the run ends when only another Thought is left.
    """

    widest: AnyMove
    judge: ObservationJudge
    """Says which observations are noise."""
    long: int = 2_400
    """Characters from which a memory is worth a summary."""

    @property
    def taught_moves(self) -> frozenset[Move]:
        return self.widest.taught_moves

    async def offer_moves(
        self, memory: MemoryStack, tried: TriedMoves, *, last: bool
    ) -> OfferedMoves:
        # Each tool at most once: a small model otherwise repeats its first search to the limit.
        fresh = frozenset(self.widest.tools - tried.tools)
        concludes = bool(memory.hits) and not tried.was_refused(memory)
        moves = {Move.TOOL_USE} if fresh else set()
        # An observation without evidence must go before anything is built on it; without
        # Backtrack (ablation) a Thought has to do.
        top, pops = memory.top, Move.BACKTRACK in self.taught_moves
        noise = top.kind is FrameKind.OBSERVATION
        if noise and await self.judge.is_noise(memory.question, top.hits):
            moves = {Move.BACKTRACK} if pops else moves | {Move.THOUGHT}
        elif (
            pops
            and top.kind is FrameKind.THOUGHT
            and is_contradicted(top.text, memory.hits, memory.question.language)
        ):
            moves = {Move.BACKTRACK}
        else:
            moves |= await self._moves_upon(memory, concludes=concludes)
        # At the last step the only useful move is to conclude.
        if last and concludes:
            moves = {Move.CONCLUSION}
        # Thinking on without a tool left cannot change the outcome.
        if moves <= {Move.THOUGHT} and not concludes:
            moves = set()
        return OfferedMoves(frozenset(moves & self.taught_moves), fresh)

    async def _moves_upon(self, memory: MemoryStack, *, concludes: bool) -> set[Move]:
        moves, top = {Move.CONCLUSION} if concludes else set(), memory.top
        if top.kind is not FrameKind.THOUGHT:
            moves.add(Move.THOUGHT)
        is_long = sum(len(frame.text) for frame in memory.frames) >= self.long
        if top.kind is FrameKind.OBSERVATION and is_long:
            sums_up = await self.judge.finds_evidence(memory.question, top.hits, passages=2)
            moves |= {Move.SUMMARY} if sums_up else set()
        return moves
