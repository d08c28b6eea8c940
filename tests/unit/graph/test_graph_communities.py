"""Communities: what hangs together is found, told from the graph, and opens by its id."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from graph_readings import communities_of, parse_chain

from osler.errors import CapabilityMissing, KnowledgeBaseMissing, UnknownPassage
from osler.graph import communities, fusion
from osler.graph.communities import Communities, find_passage
from osler.graph.items import ConceptMapping, Definition, Item, Name, Relation
from osler.graph.partition import pairs_within, partition_graph
from osler.graph.store import Graph

pytest.importorskip("igraph")


def clique(prefix: str, count: int) -> list[Item]:
    ids = [f"{prefix}:{n}" for n in range(count)]
    names: list[Item] = [Name(id, f"{prefix} concept {id[2:]}") for id in ids]
    return names + [Relation(a, "goes_with", b) for a, b in combinations(ids, 2)]


FACTS: tuple[Item, ...] = (
    *clique("A", 6),
    *clique("B", 5),
    *clique("C", 4),
    Relation("A:0", "near", "B:0"),
    Relation("B:1", "near", "C:0"),
    Definition("A:0", "The middle of A. It has a second sentence."),
    Name("D:0", "alone"),
    Name("X:1", "other A"),
    ConceptMapping("A:5", "X:1", "sssom"),
)


def members(found: Communities, one: communities.Community) -> set[str]:
    return set(found.graph.ids_of(found.member_numbers(one).tolist()).values())


def test_what_hangs_together_is_a_community(graph: Graph) -> None:
    found = communities.build_communities(graph)
    parts = [members(found, one) for one in found.list_communities(level=0)]
    assert parts == [
        {f"A:{n}" for n in range(6)},
        {f"B:{n}" for n in range(5)},
        {f"C:{n}" for n in range(4)},
    ]
    (of_b,) = communities_of(found, "B:3")
    assert members(found, of_b) == parts[1]
    assert communities_of(found, "D:0") == communities_of(found, "nobody") == []


def test_a_large_community_is_split_and_its_parts_are_slices_of_it(tmp_path: Path) -> None:
    groups = [f"T{n}" for n in range(40)]
    bridges: list[Item] = [Relation(f"{a}:0", "near", f"{b}:1") for a, b in pairwise(groups)]
    with Graph.create(tmp_path) as graph:
        graph.add([item for group in groups for item in clique(group, 3)] + bridges)
        held = partition_graph(graph.load_arrays(), largest=3)
        assert held["level"].max() >= 1
        found = communities.build_communities(graph, largest=3)
        smallest = communities_of(found, "T7:2")
        assert [one.level for one in smallest] == list(range(len(smallest)))[::-1]
        assert {"T7:0", "T7:1", "T7:2"} <= members(found, smallest[0])
        assert members(found, smallest[0]) < members(found, smallest[-1])
    for number in range(len(held["first"])):
        parts = np.flatnonzero(held["parent"] == number)
        if len(parts):
            assert held["first"][parts].min() == held["first"][number]
            assert held["last"][parts].max() == held["last"][number]
            assert (held["level"][parts] == held["level"][number] + 1).all()
    sizes = held["last"] - held["first"]
    assert sizes[held["level"] == 0].sum() == len(held["members"]) == 120


def test_the_same_graph_has_the_same_communities(graph: Graph) -> None:
    one, other = partition_graph(graph.load_arrays()), partition_graph(graph.load_arrays())
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_pairs_within_are_counted_once_with_all_their_relations(graph: Graph) -> None:
    graph.add([Relation("A:1", "also", "A:0")])
    numbers = np.array(graph.numbers_of(["B:0", "A:1", "A:0"]), dtype=np.int32)
    pairs, weights = pairs_within(graph.load_arrays(), numbers)
    assert sorted((*sorted(pair), w) for pair, w in zip(pairs.tolist(), weights, strict=True)) == [
        (0, 2, 1),
        (1, 2, 2),
    ]


def test_the_extract_is_the_graph_s_own_words_and_opens(graph: Graph) -> None:
    found = communities.build_communities(graph)
    (one,) = communities_of(found, "A:3")
    passage = found.write_extract(one)
    first, definition, *relations = passage.text.split("\n")
    assert first.startswith("Community of 6 concepts: A concept 0; ")
    assert definition == "A concept 0: The middle of A."
    names = {f"A concept {n}" for n in range(6)}
    assert len(relations) == 12
    for line in relations:
        ((one_, predicate, other),) = parse_chain(line)
        assert {one_, other} <= names
        assert predicate == "goes_with"
    assert {end for line in relations for end in parse_chain(line)[0][::2]} == names
    assert find_passage(graph, passage.id) == passage
    assert found.read_summary(one) is None
    assert found.get_passage(one) == passage


def test_what_a_model_has_written_is_kept_while_the_concepts_are_the_same(graph: Graph) -> None:
    found = communities.build_communities(graph)
    (one,) = communities_of(found, "B:3")
    told = found.store_summary(one, "B concepts go together.", "some-model")
    assert (told.text, told.locator.section) == ("B concepts go together.", "written by some-model")
    assert find_passage(graph, told.id) == told == found.get_passage(one)
    graph.add([Name("E:0", "new"), Relation("E:0", "near", "A:0")])
    with pytest.raises(KnowledgeBaseMissing, match="has changed"):
        Communities(graph)
    with pytest.raises(UnknownPassage) as stale:
        find_passage(graph, told.id)
    assert "osler kb graph communities" in (stale.value.fix or "")
    again = communities.build_communities(graph)
    assert find_passage(graph, told.id) == told
    assert [one.mark for one in communities_of(again, "B:3")] == [one.mark]


def test_fused_concepts_are_one_member(graph: Graph) -> None:
    fusion.fuse_concepts(graph)
    found = communities.build_communities(graph)
    assert communities_of(found, "X:1") == communities_of(found, "A:5") != []
    assert communities_of(found, "A:5")[-1].size == 6


def test_communities_that_are_not_there_are_said(graph: Graph) -> None:
    with pytest.raises(KnowledgeBaseMissing, match="not been found"):
        Communities(graph)
    communities.build_communities(graph)
    for bad in ("", "zz", "0" * 16, "-1", "f" * 40, "12"):
        with pytest.raises(UnknownPassage):
            find_passage(graph, f"graph:community.{bad}#extract")
    (one,) = communities_of(Communities(graph), "A:0")
    for part in ("", "summary", "def"):
        with pytest.raises(UnknownPassage):
            find_passage(graph, f"{one.id}#{part}")


def test_an_empty_graph_has_no_community(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        assert len(communities.build_communities(graph)) == 0
        assert list(Communities(graph).list_communities()) == []


def test_without_the_extra_the_fix_is_named(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(CapabilityMissing, match="igraph"):
        communities.build_communities(graph)
