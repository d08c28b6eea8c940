"""Further plans: the reader answers, or plans what is still missing."""

from __future__ import annotations

from dataclasses import dataclass

from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Sampling
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners import Proposal, SourceDescription
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.omni.solver import FollowUp, OmniRag, Reader
from osler.sources.catalogue import BOOK
from osler.trace import Budget, Run, SourcesPlanned, list_read_passages
from osler.types import Halt, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTION = Question("q", "Who described the fungus from which lovastatin was isolated?")
FUNGUS = Passage("book:l#0", "Lovastatin was isolated from Aspergillus terreus.", "book", "L")
THOM = Passage("book:t#0", "Aspergillus terreus was described by Charles Thom.", "book", "T")
SAID = "Aspergillus terreus was described by Charles Thom. [2]"
NEXT = "Aspergillus terreus is named, not who described it.\n<book> terreus described </book>"


@dataclass(frozen=True)
class Once:
    async def plan(self, question: Question, run: Run) -> Proposal:
        return Proposal(SourcePlan((Query(BOOK, "lovastatin isolated"),)))


def solver(model: ScriptedModel, rounds: int = 3) -> OmniRag:
    book = ScriptedRetriever({"lovastatin": [FUNGUS], "terreus": [THOM, FUNGUS]})
    speaker = Speaker(model, "reader")
    follow_up = FollowUp(speaker, (SourceDescription(BOOK),), rounds)
    reader = Reader(model, WrittenComposer(), Sampling())
    return OmniRag(Once(), PlannedRetriever({BOOK: book}), reader, follow_up=follow_up)


async def test_what_the_first_plan_names_is_asked_by_the_next() -> None:
    model, run = ScriptedModel([NEXT, SAID]), Run()
    solution = await solver(model).solve(QUESTION, run)
    assert solution.halt is Halt.CONVERGED
    assert [one.passage.id for one in solution.answer.evidence] == [THOM.id]
    plans = [event for event in run.events if isinstance(event, SourcesPlanned)]
    assert [[one.query for one in plan.queries] for plan in plans] == [
        ["lovastatin isolated"],
        ["terreus described"],
    ]
    assert run.usage.calls == 2  # the last reply is the draft
    assert list_read_passages(run.events) == (FUNGUS.id, THOM.id)


async def test_new_passages_stand_behind_those_before_them() -> None:
    model = ScriptedModel([NEXT, SAID])
    await solver(model).solve(QUESTION, Run())
    first, second = (turns[-1].content for turns in model.seen)
    begun = first.partition("# Searched Already")[0].rstrip()
    assert second.startswith(begun)
    assert "- lovastatin isolated\n- terreus described" in second


async def test_after_a_plan_that_asks_nothing_new_it_is_read_what_there_is() -> None:
    said = "Lovastatin was isolated from Aspergillus terreus. [1]"
    model, run = ScriptedModel(["<book> Lovastatin Isolated </book>", said]), Run()
    solution = await solver(model).solve(QUESTION, run)
    assert solution.answer.text == said
    assert (run.usage.searches, run.usage.calls) == (1, 2)


async def test_after_the_last_round_it_is_read_what_there_is() -> None:
    model = ScriptedModel([NEXT, SAID])
    solution = await solver(model, rounds=1).solve(QUESTION, Run())
    assert "Charles Thom" in solution.answer.text
    assert "# Searched Already" not in model.seen[-1][-1].content


async def test_without_budget_for_another_plan_what_was_found_is_kept() -> None:
    run = Run(budget=Budget(calls=1))
    solution = await solver(ScriptedModel([NEXT, SAID])).solve(QUESTION, run)
    assert solution.halt is Halt.BUDGET
    assert run.usage.calls == 1
