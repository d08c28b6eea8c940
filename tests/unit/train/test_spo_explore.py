"""Exploration by a model."""

import asyncio

import pytest

from osler.errors import MalformedOutput, SourceUnavailable
from osler.llm.core.ask import Speaker
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.retriever import PlannedRetriever
from osler.types import Hit, Passage, Question
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
from osler_lab.train.spo.explore import (
    ExpertExplorer,
    Exploration,
    TrainingCase,
)

PASSAGE = Passage("book:d1#0", "Adrenaline is given first.", "book", "Anaphylaxis")
OFFERS = (SourceDescription("book"), SourceDescription("graph"))
CASE = TrainingCase(Sample("t", "long", Question("q", "Which drug treats anaphylaxis?"), Gold()))
REPLY = (
    "<book> anaphylaxis treatment ; adrenaline dose ; a ; b ; c ; d ; e </book>\n"
    "<graph> Anaphylaxis , treated by </graph>"
)


def exploration(model: ScriptedModel, book: object = None) -> Exploration:
    found = ScriptedRetriever({"adrenaline": [PASSAGE], "anaphylaxis": [PASSAGE]})
    sources = {"book": book or found, "graph": ScriptedRetriever({})}
    return Exploration(ExpertExplorer(Speaker(model, "planner")), OFFERS, PlannedRetriever(sources))  # type: ignore[arg-type]


def test_the_expert_is_asked_for_six_queries_a_source_and_each_is_searched() -> None:
    model = ScriptedModel([REPLY])
    explored = asyncio.run(exploration(model).explore(CASE))
    prompt = model.seen[0][-1].content
    assert "Each source should have 6 queries" in prompt
    assert "0 to 3" not in prompt
    assert [(q.source, q.wire) for q in explored.queries] == [
        ("book", "anaphylaxis treatment"),
        ("book", "adrenaline dose"),
        *(("book", word) for word in "abcd"),
        ("graph", "Anaphylaxis , treated by"),
    ]
    assert explored.queries[0].found == ("book:d1#0",)
    assert explored.passages == {"book:d1#0": "Anaphylaxis\nAdrenaline is given first."}
    assert (explored.usage.calls, explored.usage.searches) == (1, 7)


def test_a_source_that_was_left_out_is_noted() -> None:
    explored = asyncio.run(exploration(ScriptedModel(["<book> adrenaline </book>"])).explore(CASE))
    assert explored.notes == ("no queries for graph",)


def test_a_plan_of_nothing_is_no_exploration() -> None:
    with pytest.raises(MalformedOutput, match="at least one query"):
        asyncio.run(exploration(ScriptedModel(["<book></book><graph></graph>"])).explore(CASE))


def test_a_source_that_is_down_is_an_error_not_a_source_without_documents() -> None:
    class Down:
        async def search(self, query: str, *, k: int) -> list[Hit]:
            raise SourceUnavailable("the book is down")

    with pytest.raises(SourceUnavailable, match="the book is down"):
        asyncio.run(exploration(ScriptedModel([REPLY]), Down()).explore(CASE))
