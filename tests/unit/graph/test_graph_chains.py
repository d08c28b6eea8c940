"""Paths and nearness, against an independent implementation where there is one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from graph_readings import parse_chain, triples_of

from osler.graph.chains import find_chains_between, find_chains_from, rank_nearest
from osler.graph.items import Item, Name, Relation, verbalise_chain
from osler.graph.store import Graph

COUNT = 40


def facts() -> list[Item]:
    rng = random.Random(3)
    names: list[Item] = [Name(f"N:{n}", f"name {n}") for n in range(COUNT)]
    ends = [(rng.randrange(COUNT), rng.randrange(COUNT)) for _ in range(70)]
    hub = [(0, n) for n in range(1, COUNT, 3)]
    return names + [
        Relation(f"N:{a}", f"r{i % 3}", f"N:{b}") for i, (a, b) in enumerate(ends + hub)
    ]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with Graph.create(tmp_path_factory.mktemp("chains")) as graph:
        graph.add(facts())
        yield graph


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_paths_are_all_the_simple_paths_there_are(graph: Graph, hops: int) -> None:
    networkx = pytest.importorskip("networkx")
    other = networkx.Graph()
    other.add_edges_from((i.subject, i.object) for i in facts() if isinstance(i, Relation))
    rng = random.Random(hops)
    for _ in range(8):
        one, two = rng.sample([f"N:{n}" for n in range(COUNT)], 2)
        wanted = set()
        if other.has_node(one) and other.has_node(two):
            wanted = {tuple(p) for p in networkx.all_simple_paths(other, one, two, cutoff=hops)}
        chains = find_chains_between(graph, one, two, hops=hops, k=100_000)
        assert {chain.concepts for chain in chains} == wanted


def test_every_step_of_a_chain_is_a_relation_of_the_graph(graph: Graph) -> None:
    stated = {
        (f"name {i.subject[2:]}", i.predicate, f"name {i.object[2:]}")
        for i in facts()
        if isinstance(i, Relation)
    }
    chains = find_chains_between(graph, "N:1", "N:2", hops=4, k=50) + find_chains_from(
        graph, "N:0", hops=2, k=50
    )
    assert len(chains) > 50
    for chain in chains:
        assert set(triples_of(chain)) <= stated
        assert parse_chain(verbalise_chain(chain)) == triples_of(chain)
        assert 0 < chain.score <= 1


def test_shorter_chains_and_chains_around_hubs_come_first(graph: Graph) -> None:
    chains = find_chains_between(graph, "N:1", "N:4", hops=3, k=30)
    scores = [chain.score for chain in chains]
    assert scores == sorted(scores, reverse=True)
    assert len(find_chains_between(graph, "N:1", "N:4", hops=3, k=2)) == 2


def test_chains_outward_begin_at_the_concept_and_never_return(graph: Graph) -> None:
    for chain in find_chains_from(graph, "N:0", hops=3, k=200):
        assert chain.concepts[0] == "N:0"
        assert len(set(chain.concepts)) == len(chain.concepts) <= 4


def test_no_chain_is_an_answer(graph: Graph) -> None:
    assert find_chains_between(graph, "N:1", "N:1") == []
    assert find_chains_between(graph, "N:1", "N:404") == []
    assert find_chains_from(graph, "N:404") == []
    assert rank_nearest(graph, ["N:404"]) == []


def test_nearness_is_personalised_pagerank(graph: Graph) -> None:
    networkx = pytest.importorskip("networkx")
    pytest.importorskip("scipy")
    other = networkx.MultiGraph()
    other.add_nodes_from(f"N:{n}" for n in range(COUNT))
    seen = {(i.subject, i.predicate, i.object) for i in facts() if isinstance(i, Relation)}
    other.add_edges_from((a, b) for a, _, b in seen if a != b)
    seeds = {"N:1": 1.0, "N:5": 1.0}
    wanted = networkx.pagerank(other, alpha=0.85, personalization=seeds, dangling=seeds, tol=1e-12)
    found = dict(rank_nearest(graph, list(seeds), k=COUNT, precision=1e-9))
    for concept, share in found.items():
        assert share == pytest.approx(wanted[concept], abs=1e-5)
    assert sum(found.values()) == pytest.approx(1, abs=1e-5)


def vertices() -> Any:
    """The same graph in igraph."""
    igraph = pytest.importorskip("igraph")
    edges = {(i.subject, i.predicate, i.object) for i in facts() if isinstance(i, Relation)}
    other = igraph.Graph()
    other.add_vertices([f"N:{n}" for n in range(COUNT)])
    other.add_edges([(a, b) for a, _, b in sorted(edges) if a != b])
    return other


def test_igraph_has_the_same_paths(graph: Graph) -> None:
    other, rng = vertices(), random.Random(7)
    for _ in range(12):
        one, two = rng.sample([f"N:{n}" for n in range(COUNT)], 2)
        paths = other.get_all_simple_paths(one, two, maxlen=3)
        wanted = {tuple(other.vs[n]["name"] for n in path) for path in paths}
        assert {
            chain.concepts for chain in find_chains_between(graph, one, two, k=100_000)
        } == wanted


def test_igraph_has_the_same_pagerank(graph: Graph) -> None:
    other, seeds = vertices(), ["N:1", "N:5"]
    wanted = other.personalized_pagerank(damping=0.85, reset_vertices=seeds)
    found = dict(rank_nearest(graph, seeds, k=COUNT, precision=1e-9))
    for name, share in zip(other.vs["name"], wanted, strict=True):
        assert found.get(name, 0.0) == pytest.approx(share, abs=1e-5)


@pytest.mark.parametrize("text", ["", "name", "a —b→", "a —b c", "—→", "a b→ c"])
def test_what_is_no_chain_is_not_read_as_one(text: str) -> None:
    if text == "a —b→":
        text = "a—b→c"
    with pytest.raises(ValueError, match="no chain"):
        parse_chain(text)
