"""Whether an observation bears on the question, and what to ask next where it is not enough.

Policies on which actions the model may take at each step.

The paper always offers all of them (`AnyMove`); its ablations remove Backtrack or Summary
(§6.3). `GuidedMoves` is ours, for models too small to choose well: it withholds moves that the
memory makes pointless and leaves the choice among the rest to the model. `LeanMoves` is ours, too:
it settles every step by itself, so that a model is asked for nothing but state values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from osler.answer.disagreement import find_difference, read_claim
from osler.answer.gate import EvidenceGate
from osler.methods.tcrag.actions import Action, Backtrack, Conclusion, Move, ToolUse, move_of
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.retrieve.entity_names import packaged_names
from osler.retrieve.naming import has_no_one_subject, telling_words
from osler.text import has_cjk, split_sentences, split_words
from osler.types import Hit, Language, Question

LEAST, SURE = 0.1, 0.5
"""Least sureness of passages that bear on the question, and of those that need no second search.
Chosen on development questions of PubMedQA and BioASQ, gold snippets against the nearest ones of
other documents (`research/log/tc-rag.md`)."""
Bearing = Literal["noise", "unsure", "sure"]
"""Whether an observation bears on the question."""
_MOST_NAMES = 3


@dataclass(frozen=True)
class ObservationJudge:
    """Says which observations are noise: passages that do not bear on the question.

    By the sureness of the gate's expert; where it cannot judge, an observation without evidence is
    noise, and any other is sure.
    """

    gate: EvidenceGate

    async def finds_evidence(
        self, question: Question, hits: Sequence[Hit], *, passages: int = 1
    ) -> bool:
        """Whether the gate finds evidence in so many passages."""
        found = await self.gate.find_evidence(question, hits)
        return len({quote.hit.passage.id for quote in found}) >= passages

    async def is_noise(self, question: Question, hits: Sequence[Hit]) -> bool:
        return await self.judge_bearing(question, hits) == "noise"

    async def judge_bearing(self, question: Question, hits: Sequence[Hit]) -> Bearing:
        weighed = await self.gate.weigh_evidence(question, hits)
        if weighed.sureness is None:
            return "sure" if weighed.quotes else "noise"
        sureness = weighed.sureness.probability
        return "noise" if sureness < LEAST else "unsure" if sureness < SURE else "sure"


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


def next_query(question: Question) -> str:
    """A second query for a question whose first one found noise; "" if absent.

    Of a letter or a case the sentences that ask. Of any other question its telling words, and other
    names of what it names.
    """
    if has_no_one_subject(question.text):
        return _asking_sentences(question.text)
    words = telling_words(question.text)
    asked = set(split_words(question.text))
    others = [
        name
        for entity in packaged_names().find_entities(question.text)
        for name in entity.names
        if not asked.issuperset(split_words(name)) and has_cjk(name) == has_cjk(question.text)
    ]
    query = " ".join((*words, *others[:_MOST_NAMES]))
    return "" if query == question.text else query


def _asking_sentences(text: str) -> str:
    sentences = [text[start:end].strip() for start, end in split_sentences(text)]
    asking = [one for one in sentences if one.endswith(("?", "？"))]
    return "" if len(asking) == len(sentences) else " ".join(asking)


@dataclass(frozen=True, slots=True)
class OfferedMoves:
    moves: frozenset[Move]
    tools: frozenset[str]
    settled: Action | None = None
    """The action itself, where the policy leaves the model no choice; its text is empty."""


@dataclass
class TriedMoves:
    """Tools and conclusions that a run has tried so far."""

    tools: set[str] = field(default_factory=set)
    nothing: Counter[str] = field(default_factory=Counter)
    """How often a tool found nothing."""
    queries: set[tuple[str, str]] = field(default_factory=set)
    """Tool and query; the question itself is the empty query."""
    repeated: bool = False
    """Whether a tool was asked the same again."""
    popped: set[str] = field(default_factory=set)
    """Ids of passages that a Backtrack took off the stack."""
    refused: set[frozenset[str]] = field(default_factory=set)
    """Sets of passage ids over which a Conclusion was rejected as too uncertain."""

    def note_call(self, call: ToolUse, *, found: bool) -> None:
        self.repeated |= (call.tool, call.query) in self.queries
        self.tools.add(call.tool)
        self.queries.add((call.tool, call.query))
        self.nothing[call.tool] += not found

    def is_spent(self, tool: str) -> bool:
        """Whether a tool found nothing twice: it is not offered again."""
        return self.nothing[tool] >= 2

    def refuse_evidence(self, memory: MemoryStack) -> None:
        self.refused.add(_evidence_ids(memory))

    def was_refused(self, memory: MemoryStack) -> bool:
        return _evidence_ids(memory) in self.refused

    def is_confirmed(self, hits: Sequence[Hit]) -> bool:
        """Whether passages that were popped come back: a second search that finds them again is
        no accident."""
        return any(hit.passage.id in self.popped for hit in hits)


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
        if memory.top.kind is FrameKind.OBSERVATION and await self._is_noise(memory):
            moves = self._moves_over_noise(moves)
        elif self._holds_false_thought(memory):
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

    def _moves_over_noise(self, tools: set[Move]) -> set[Move]:
        if Move.BACKTRACK not in self.taught_moves:
            return tools | {Move.THOUGHT}
        return {Move.BACKTRACK}

    def _holds_false_thought(self, memory: MemoryStack) -> bool:
        if memory.top.kind is not FrameKind.THOUGHT or Move.BACKTRACK not in self.taught_moves:
            return False
        return is_contradicted(memory.top.text, memory.hits, memory.question.language)

    async def _moves_upon(self, memory: MemoryStack, *, concludes: bool) -> set[Move]:
        moves = set()
        if concludes:
            moves.add(Move.CONCLUSION)
        if memory.top.kind is not FrameKind.THOUGHT:
            moves.add(Move.THOUGHT)
        if await self._is_worth_summary(memory):
            moves.add(Move.SUMMARY)
        return moves

    async def _is_worth_summary(self, memory: MemoryStack) -> bool:
        if memory.top.kind is not FrameKind.OBSERVATION:
            return False
        if sum(len(frame.text) for frame in memory.frames) < self.long:
            return False
        return await self.judge.finds_evidence(memory.question, memory.top.hits, passages=2)

    async def _is_noise(self, memory: MemoryStack) -> bool:
        return await self.judge.is_noise(memory.question, memory.top.hits)


@dataclass(frozen=True)
class LeanMoves:
    """The cheapest sensible action at each step, without asking a model (docs/papers/tc-rag.md).

    Evidence that was not refused is concluded from, so that a sure answer costs one search. An
    observation that does not bear on the question is popped before anything is put on it, unless it
    confirms what was popped before; one that may bear on it stays, and is not concluded from before
    something else was asked. That is the next tool with the question itself, and at last the first
    one with another query (`next_query`). Where all that was found was popped, the question is
    asked once more, so that `rag`'s own evidence is left at worst. The run ends when nothing is
    left to ask. For composers that word the answer themselves.
    """

    tools: tuple[str, ...]
    """In the order in which they are asked."""
    judge: ObservationJudge

    @property
    def taught_moves(self) -> frozenset[Move]:
        return frozenset({Move.TOOL_USE, Move.BACKTRACK, Move.CONCLUSION})

    async def offer_moves(
        self, memory: MemoryStack, tried: TriedMoves, *, last: bool
    ) -> OfferedMoves:
        settled = await self._settle_action(memory, tried, last=last)
        if settled is None:
            return OfferedMoves(frozenset(), frozenset())
        tools = frozenset({settled.tool} if isinstance(settled, ToolUse) else ())
        return OfferedMoves(frozenset({move_of(settled)}), tools, settled)

    async def _settle_action(
        self, memory: MemoryStack, tried: TriedMoves, *, last: bool
    ) -> Action | None:
        top, bearing = memory.top, "sure"
        if top.kind is FrameKind.OBSERVATION and not tried.is_confirmed(top.hits):
            bearing = await self.judge.judge_bearing(memory.question, top.hits)
        if bearing == "noise":
            return Backtrack("")
        again = bearing == "unsure" or bool(tried.popped)
        call = None if last else self._next_call(memory, tried, again=again)
        if not memory.hits or tried.was_refused(memory):
            return call
        if bearing == "unsure" and call:
            return call
        return Conclusion("")

    def _next_call(self, memory: MemoryStack, tried: TriedMoves, *, again: bool) -> ToolUse | None:
        searches = [name for name in self.tools if not tried.is_spent(name)]
        fresh = [name for name in searches if (name, "") not in tried.queries]
        if fresh:
            return ToolUse(fresh[0], "")
        query = next_query(memory.question) if again else ""
        once = all(known == "" for _, known in tried.queries)
        if query and once and searches:
            return ToolUse(searches[0], query)
        # All was popped: what the question itself finds is what there is, and the gate judges it.
        back = again and searches and not memory.hits and not tried.repeated
        return ToolUse(searches[0], "") if back else None
