"""Communities of what a question mentions, as passages that open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from osler.errors import SourceUnavailable
from osler.graph import communities
from osler.graph.items import Item, Name, Relation
from osler.graph.store import Graph
from osler.retrieve.graph_communities import CommunityRetriever

pytest.importorskip("igraph")

GROUPS = {
    "K": ("kidney", "urea", "dialysis", "renal failure"),
    "L": ("lung", "cough", "spirometry", "asthma attack"),
    "S": ("胃", "胃炎", "恶心", "胃镜检查"),
}


def facts() -> Iterator[Item]:
    for vocabulary, names in GROUPS.items():
        yield from (Name(f"{vocabulary}:{n}", name) for n, name in enumerate(names))
        for one, other in combinations(range(len(names)), 2):
            yield Relation(f"{vocabulary}:{one}", "related_to", f"{vocabulary}:{other}")
    yield Relation("K:0", "near", "L:0")


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with Graph.create(tmp_path) as graph:
        graph.add(facts())
        yield graph


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("Is dialysis needed in renal failure?", "kidney"),
        ("Why does an asthma attack follow a cough?", "lung"),
        ("胃炎会引起恶心吗？", "胃镜检查"),
        ("What is an attack?", "lung"),  # no name is mentioned, but a word of one
    ],
)
async def test_the_community_of_what_is_mentioned_comes_first(
    graph: Graph, query: str, named: str
) -> None:
    communities.build_communities(graph)
    hits = await CommunityRetriever(graph).search(query, k=3)
    assert named in hits[0].passage.text
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    for hit in hits:
        assert 0 < hit.score <= 2
        assert communities.find_passage(graph, hit.passage.id) == hit.passage


async def test_a_question_over_two_communities_finds_both(graph: Graph) -> None:
    communities.build_communities(graph)
    found = await CommunityRetriever(graph).find_communities("urea and spirometry", k=5)
    assert {one.passage.title.split("; ")[0] for one in found} == {"kidney", "lung"}


async def test_query_without_known_concepts_finds_no_community(graph: Graph) -> None:
    communities.build_communities(graph)
    assert await CommunityRetriever(graph).search("xylophone", k=3) == []


async def test_communities_that_are_not_there_are_a_source_that_is_down(graph: Graph) -> None:
    with pytest.raises(SourceUnavailable) as raised:
        await CommunityRetriever(graph).search("kidney", k=3)
    assert "osler kb graph communities" in (raised.value.fix or "")
