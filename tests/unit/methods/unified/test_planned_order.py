"""Which passages of a planned search are read when not all of them are."""

from dataclasses import dataclass

import pytest

from osler.llm.core.speaker import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners import Proposal
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.tcrag.tools import ToolCall
from osler.methods.unified.search import PlannedSearch, PlannedTool
from osler.retrieve.pooled import PooledOrder
from osler.retrieve.relevance import OverlapRelevance
from osler.testing.scripted import KeyedModel, ScriptedRetriever
from osler.trace import Run, list_read_passages
from osler.types import Passage, Question, Relevance

WORDS = "adrenaline for anaphylaxis"
TEXTS = {
    "book": ("Iron is a metal.", "Anaphylaxis comes at once."),
    "guideline": ("Tea is a drink.",),
    "research": ("Adrenaline is given for anaphylaxis.", "Adrenaline is a hormone."),
}


@dataclass(frozen=True)
class EverySource:
    async def plan(self, question: Question, run: Run) -> Proposal:
        return Proposal(SourcePlan.of([Query.of(name, question.text) for name in TEXTS]))


def search(coverage: Relevance | None, order: PooledOrder | None = None) -> PlannedSearch:
    sources = {
        name: ScriptedRetriever(
            {"": [Passage(f"{name}:{n}", text, name, "") for n, text in enumerate(texts)]}
        )
        for name, texts in TEXTS.items()
    }
    return PlannedSearch(EverySource(), PlannedRetriever(sources), coverage=coverage, order=order)


async def read(coverage: Relevance | None, k: int) -> list[str]:
    found = await search(coverage).find_passages(WORDS, "en", Run("r"), k=k)
    return [hit.passage.id for hit in found.hits]


async def test_in_the_plans_order_the_first_sources_are_all_that_is_read() -> None:
    assert await read(None, 2) == ["book:0", "guideline:0"]


async def test_by_coverage_the_passages_that_hold_what_is_looked_for_are_read() -> None:
    assert await read(OverlapRelevance(), 2) == ["research:0", "book:1"]


async def test_the_one_order_goes_before_the_plans_order_and_coverage() -> None:
    order = PooledOrder(OverlapRelevance())
    found = await search(None, order).find_passages(WORDS, "en", Run("r"), k=2)
    assert [hit.passage.id for hit in found.hits] == ["research:0", "book:1"]
    assert [hit.rank for hit in found.hits] == [1, 2]


async def test_of_a_further_search_that_counts_as_read_which_is_shown() -> None:
    known = (await search(None).find_passages(WORDS, "en", Run("r"), k=5)).hits[-1:]
    run = Run("r")
    call = ToolCall(WORDS, Question("q", WORDS), known, fresh=True)
    await PlannedTool(search(None), k=1).call_tool(call, run)
    assert list_read_passages(run.events) == ("book:0",)


async def test_a_step_of_a_plan_reads_no_more_than_it_says() -> None:
    yes = "<answer>Yes</answer><reason>Reference 0 says it.</reason>"
    model = KeyedModel({"analyze the relationship": [yes], "the references": ["Adrenaline."]})
    reader, texts, run = Speaker(model, "reader"), ScriptedRetriever({}), Run("r")
    depth = DepthSolver(reader, texts, NoBoundary(), Focuser(reader), k=2, finder=search(None))
    step = LogicalPlan.single_retrieval(WORDS).steps[0]
    answer = await depth.solve(step, WORDS, (), "en", run)
    assert answer.text == "Adrenaline."
    assert list_read_passages(run.events) == ("book:0", "guideline:0")


@pytest.mark.parametrize("coverage", [None, OverlapRelevance()])
async def test_either_order_loses_nothing_where_all_is_read(coverage: Relevance | None) -> None:
    assert len(await read(coverage, 10)) == sum(map(len, TEXTS.values()))
    assert set(await read(coverage, 10)) == set(await read(None, 10))
