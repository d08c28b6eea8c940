"""Which passages of a planned search are read when not all of them are."""

from dataclasses import dataclass

from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners import Proposal
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.tcrag.tools import ToolCall
from osler.methods.unified import PlannedSearch, PlannedTool
from osler.retrieve.pooled import PooledOrder
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Run, list_read_passages
from osler.types import Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever

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


def search(order: PooledOrder | None = None) -> PlannedSearch:
    sources = {
        name: ScriptedRetriever(
            {"": [Passage(f"{name}:{n}", text, name, "") for n, text in enumerate(texts)]}
        )
        for name, texts in TEXTS.items()
    }
    return PlannedSearch(EverySource(), PlannedRetriever(sources), order)


async def test_without_an_order_the_first_of_each_source_are_read() -> None:
    found = await search().find_passages(WORDS, "en", Run("r"), k=2)
    assert [hit.passage.id for hit in found.hits] == ["book:0", "guideline:0"]


async def test_in_the_one_order_what_bears_on_the_search_is_read() -> None:
    order = PooledOrder(OverlapRelevance())
    found = await search(order).find_passages(WORDS, "en", Run("r"), k=2)
    assert [hit.passage.id for hit in found.hits] == ["research:0", "book:1"]
    assert [hit.rank for hit in found.hits] == [1, 2]


async def test_of_a_further_search_that_counts_as_read_which_is_shown() -> None:
    known = (await search().find_passages(WORDS, "en", Run("r"), k=5)).hits[-1:]
    run = Run("r")
    call = ToolCall(WORDS, Question("q", WORDS), known, fresh=True)
    await PlannedTool(search(), k=1).call_tool(call, run)
    assert list_read_passages(run.events) == ("book:0",)


async def test_a_step_of_a_plan_reads_no_more_than_it_says() -> None:
    yes = "<answer>Yes</answer><reason>Reference 0 says it.</reason>"
    model = KeyedModel({"analyze the relationship": [yes], "the references": ["Adrenaline."]})
    reader, texts, run = Speaker(model, "reader"), ScriptedRetriever({}), Run("r")
    depth = DepthSolver(reader, texts, NoBoundary(), Focuser(reader), k=2, finder=search())
    step = LogicalPlan.single_retrieval(WORDS).steps[0]
    answer = await depth.solve(step, WORDS, (), "en", run)
    assert answer.text == "Adrenaline."
    assert list_read_passages(run.events) == ("book:0", "guideline:0")
