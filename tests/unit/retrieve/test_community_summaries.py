"""What a model writes about a community is kept, named as its own, and checked."""

from __future__ import annotations

import pytest
from graph_readings import communities_of

from osler.errors import MalformedOutput
from osler.graph import communities
from osler.graph.items import Definition, Name, Relation
from osler.graph.store import Graph
from osler.retrieve.graph_communities import CommunityRetriever, CommunitySummariser
from osler.trace import Asked, Run
from osler_lab.testing.scripted import ScriptedModel

pytest.importorskip("igraph")

FACTS = (
    Name("T:1", "lung"),
    Name("T:2", "asthma"),
    Name("T:3", "cough"),
    Definition("T:2", "Airways that are too easily narrowed."),
    Relation("T:2", "disease_of", "T:1"),
    Relation("T:2", "has_symptom", "T:3"),
    Name("Z:1", "胃"),
    Name("Z:2", "胃炎"),
    Relation("Z:2", "部位", "Z:1"),
)


async def test_a_summary_is_kept_and_found_instead_of_the_extract(graph: Graph) -> None:
    found = communities.build_communities(graph)
    model, run = ScriptedModel(["Asthma is a disease of the lung with cough."]), Run()
    (one,) = communities_of(found, "T:2")
    passage = await CommunitySummariser(model).summarise_community(found, one, run)
    model.finish()
    assert passage.text == "Asthma is a disease of the lung with cough."
    assert passage.locator.section == f"written by {model.name}"
    (hit,) = await CommunityRetriever(graph).search("cough", k=3)
    assert hit.passage == passage == communities.find_passage(graph, passage.id)
    assert communities.find_passage(graph, found.write_extract(one).id).text.startswith(
        "Community of 3 concepts"
    )
    (asked,) = [event for event in run.events if isinstance(event, Asked)]
    assert asked.prompt.startswith("graph/community@")


async def test_a_reply_about_something_else_is_asked_for_again_and_then_refused(
    graph: Graph,
) -> None:
    found = communities.build_communities(graph)
    model = ScriptedModel(["I cannot."] * 3)
    with pytest.raises(MalformedOutput, match="names the concepts"):
        await CommunitySummariser(model).summarise_community(
            found, communities_of(found, "T:2")[0], Run()
        )
    model.finish()
    assert found.read_summary(communities_of(found, "T:2")[0]) is None


async def test_chinese_concepts_are_asked_about_in_chinese_and_told_once(graph: Graph) -> None:
    found = communities.build_communities(graph)
    model, run = (
        ScriptedModel(["胃炎的部位是胃。", "nothing to say"] + ["still nothing"] * 2),
        Run(),
    )
    wanted = [communities_of(found, "Z:1")[0], communities_of(found, "T:1")[0]]
    said = [item async for item in CommunitySummariser(model).summarise_all(found, wanted, run)]
    assert [type(what).__name__ for _, what in said] == ["Passage", "MalformedOutput"]
    asked = [event.prompt for event in run.events if isinstance(event, Asked)]
    assert asked[0].startswith("graph/community.zh@")
    model.finish()
    again = CommunitySummariser(ScriptedModel([]))
    assert [item async for item in again.summarise_all(found, wanted[:1], Run())] == []


async def test_a_long_reply_ends_with_a_sentence(graph: Graph) -> None:
    found = communities.build_communities(graph)
    model = ScriptedModel(["Asthma narrows airways of the lung. " * 60])
    passage = await CommunitySummariser(model).summarise_community(
        found, communities_of(found, "T:2")[0], Run()
    )
    assert len(passage.text) <= 1000
    assert passage.text.endswith("lung.")
