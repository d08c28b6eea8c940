"""TC-RAG without a model: the machine settles every step, the evidence values the conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from osler.answer import UNDECIDED, Decision
from osler.answer.gate import EvidenceGate, WeighedEvidence
from osler.methods.tcrag.actions import ToolUse
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.monitor import SIGMA, Draft, SurenessMonitor
from osler.methods.tcrag.moves import LeanMoves, ObservationJudge, TriedMoves
from osler.methods.tcrag.stack import MemoryStack
from osler.methods.tcrag.tools import DOC_RAG, KG_RAG, SearchTool
from osler.trace import Popped, Retrieved, Run, StateValued
from osler.types import (
    Answer,
    Evidence,
    Halt,
    Hit,
    Passage,
    Question,
    Statement,
    Sureness,
)
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTION = Question("q", "What does amiodarone do to the INR of patients on warfarin?")
USEFUL = Passage("guideline:inr#0", "Amiodarone raises the INR on warfarin.", "guideline", "INR")
OTHER = Passage("book:inr#1", "With warfarin, amiodarone doubles bleeding.", "book", "INR")
NOISE = Passage("wiki:tea#0", "Tea is drunk in many countries.", "wiki", "Tea")
FILM = Passage("w#0", "The Sky was directed by Ann Roe.", "wiki", "The Sky")


class Names:
    """Relevant is what names the drug of the question."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(1.0 if "warfarin" in text else 0.0 for text in texts)


GATE = EvidenceGate(Names())


@dataclass(frozen=True)
class Quotes:
    """Quotes every passage that it is given; as sure as the settings of the test say."""

    sure: dict[int, float]
    """By the number of passages about warfarin."""
    uses_draft: bool = False
    writes_answer: bool = True

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        evidence = tuple(Evidence(hit, 0, len(hit.passage.text)) for hit in hits)
        statements = tuple(Statement(one.quote, (n,)) for n, one in enumerate(evidence, 1))
        useful = sum("warfarin" in hit.passage.text for hit in hits)
        sureness = Sureness(self.sure.get(useful, 0.0), "test@0")
        return Answer(statements, evidence, sureness=sureness if hits else None)


def lean(first: Passage, second: Passage, sure: dict[int, float]) -> TuringMachine:
    tools = (
        SearchTool(DOC_RAG, ScriptedRetriever({"": [first]})),
        SearchTool(KG_RAG, ScriptedRetriever({"": [second]})),
    )
    return TuringMachine(
        ScriptedModel([]),  # raises where it is asked for anything
        tools,
        SurenessMonitor(),
        Quotes(sure),
        LeanMoves((DOC_RAG, KG_RAG), ObservationJudge(GATE)),
        sigma=SIGMA["sureness"],
        argument=False,
    )


async def test_evidence_that_answers_is_concluded_from_without_a_model() -> None:
    run = Run()
    solution = await lean(USEFUL, NOISE, {1: 0.9}).solve(QUESTION, run)
    assert (solution.halt, run.usage.calls, run.usage.searches) == (Halt.CONVERGED, 0, 1)
    assert solution.answer.statements[0].text == USEFUL.text
    (valued,) = [event for event in run.events if isinstance(event, StateValued)]
    assert valued.value == pytest.approx(0.1)
    assert valued.halted


async def test_noise_is_popped_before_the_next_tool_is_asked() -> None:
    run = Run()
    solution = await lean(NOISE, USEFUL, {1: 0.9}).solve(QUESTION, run)
    (popped,) = [event for event in run.events if isinstance(event, Popped)]
    assert (popped.by, popped.depth) == ("Backtrack", 1)
    assert [one.passage for one in solution.answer.evidence] == [USEFUL]


async def test_passages_that_come_back_are_no_accident() -> None:
    """What was popped and is found again by another search stays."""
    run = Run()
    solution = await lean(NOISE, NOISE, {}).solve(QUESTION, run)
    assert len([event for event in run.events if isinstance(event, Popped)]) == 1
    assert [one.passage for one in solution.answer.evidence] == [NOISE]


async def test_the_last_search_asks_for_what_the_question_is_about() -> None:
    run = Run()
    tool = SearchTool(DOC_RAG, ScriptedRetriever({QUESTION.text: [NOISE], "amiodarone": [USEFUL]}))
    machine = replace(
        lean(NOISE, NOISE, {1: 0.9}),
        tools=(tool,),
        moves=LeanMoves((DOC_RAG,), ObservationJudge(GATE)),
    )
    solution = await machine.solve(QUESTION, run)
    assert [one.passage for one in solution.answer.evidence] == [USEFUL]
    assert (solution.halt, run.usage.searches) == (Halt.CONVERGED, 2)
    asked = [event.query for event in run.events if isinstance(event, Retrieved)]
    assert asked[0] == QUESTION.text
    assert "amiodarone" in asked[1]
    assert "does" not in asked[1]


async def test_where_every_search_was_popped_the_question_s_own_passages_are_left() -> None:
    run = Run()
    found: dict[str, Sequence[Passage]] = {QUESTION.text: [NOISE], "amiodarone": [FILM]}
    machine = replace(
        lean(NOISE, NOISE, {}),
        tools=(SearchTool(DOC_RAG, ScriptedRetriever(found)),),
        moves=LeanMoves((DOC_RAG,), ObservationJudge(GATE)),
    )
    solution = await machine.solve(QUESTION, run)
    assert [one.passage for one in solution.answer.evidence] == [NOISE]
    assert len([event for event in run.events if isinstance(event, Popped)]) == 2
    assert (solution.halt, run.usage.searches) == (Halt.BUDGET, 3)


@dataclass(frozen=True)
class UnsureGate(EvidenceGate):
    """Neither noise nor sure is what lacks a word."""

    word: str = "INR"

    async def weigh_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> WeighedEvidence:
        sure = any(self.word in hit.passage.text for hit in hits)
        return WeighedEvidence([], Sureness(0.9 if sure else 0.3, "test@0"))


UNSURE = UnsureGate(Names())


async def test_what_may_be_noise_stays_and_another_search_is_made_before_the_conclusion() -> None:
    run = Run()
    found: dict[str, Sequence[Passage]] = {QUESTION.text: [OTHER], "amiodarone": [USEFUL]}
    machine = replace(
        lean(NOISE, NOISE, {2: 0.9}),
        tools=(SearchTool(DOC_RAG, ScriptedRetriever(found)),),
        moves=LeanMoves((DOC_RAG,), ObservationJudge(UNSURE)),
    )
    solution = await machine.solve(QUESTION, run)
    assert [one.passage for one in solution.answer.evidence] == [OTHER, USEFUL]
    assert (solution.halt, run.usage.searches) == (Halt.CONVERGED, 2)
    assert not [event for event in run.events if isinstance(event, Popped)]


async def test_a_conclusion_that_is_not_sure_enough_asks_the_next_tool() -> None:
    run = Run()
    solution = await lean(USEFUL, OTHER, {1: 0.3, 2: 0.8}).solve(QUESTION, run)
    assert solution.halt is Halt.CONVERGED
    assert [one.passage for one in solution.answer.evidence] == [USEFUL, OTHER]
    assert run.usage.calls == 0


async def test_a_run_that_is_never_sure_says_so() -> None:
    solution = await lean(USEFUL, OTHER, {1: 0.3, 2: 0.4}).solve(QUESTION, Run())
    assert (solution.halt, solution.why) == (
        Halt.BUDGET,
        "not converged: no sensible move is left",
    )


async def test_a_text_that_no_expert_judges_is_not_sure() -> None:
    memory = MemoryStack(QUESTION)
    valued = await SurenessMonitor().state_value(Draft("amiodarone"), memory, Run())
    assert valued == 1.0


async def test_a_tool_that_found_nothing_twice_is_not_asked_again() -> None:
    tried = TriedMoves()
    for query in ("", "amiodarone"):
        assert not tried.is_spent(DOC_RAG)
        tried.note_call(ToolUse(DOC_RAG, query), found=False)
    assert tried.is_spent(DOC_RAG)
    moves = LeanMoves((DOC_RAG, KG_RAG), ObservationJudge(GATE))
    offer = await moves.offer_moves(MemoryStack(QUESTION), tried, last=False)
    assert offer.settled == ToolUse(KG_RAG, "")
