"""Graphs fused by mappings and names; every merge says why, and can be taken back."""

from __future__ import annotations

from pathlib import Path

from merges import ConceptMerge, list_merges

from osler.graph.chains import find_chains_between
from osler.graph.fusion import (
    BY_MAPPING,
    BY_NAME,
    fuse_concepts,
)
from osler.graph.items import ConceptMapping, Definition, Name, Relation
from osler.graph.link import Dictionary
from osler.graph.store import Graph

FACTS = (
    Name("DOID:1", "hyperpyrexia", "DO", 0),
    Name("MONDO:1", "extreme fever", "MONDO", 0),
    Name("MESH:1", "Extreme Fever", "MSH", 0),
    Name("DOID:2", "warm thing", "DO", 0),
    Name("HP:9", "shivering", "HPO", 0),
    Definition("MESH:1", "Too warm.", "MSH"),
    Relation("DOID:1", "has_symptom", "HP:9"),
    Relation("DOID:1", "is_a", "MONDO:1"),
    Relation("MESH:1", "is_a", "DOID:2"),
    ConceptMapping("MONDO:1", "DOID:1", "sssom"),
    ConceptMapping("MONDO:1", "DOID:2", "sssom"),
    ConceptMapping("HP:9", "DOID:2", "xref"),
    ConceptMapping("HP:9", "X:404", "sssom"),
)


def test_what_is_the_same_is_read_as_one(graph: Graph) -> None:
    done = fuse_concepts(graph)
    assert (done.merges, done.refused) == (2, 1)  # DOID:1 and DOID:2 would have become one
    assert list_merges(graph) == [
        ConceptMerge("MONDO:1", "DOID:1", BY_MAPPING, "sssom"),
        ConceptMerge("MONDO:1", "MESH:1", BY_NAME, "extreme fever"),
    ]
    concepts = [graph.get_concept(id) for id in ("DOID:1", "MONDO:1", "MESH:1")]
    assert concepts[0] is not None
    assert concepts[0] == concepts[1] == concepts[2]
    assert set(concepts[0].names) == {"hyperpyrexia", "extreme fever", "Extreme Fever"}
    assert concepts[0].definitions == (("MSH", "Too warm."),)


def test_relations_of_all_members_are_the_concept_s_and_those_inside_go(graph: Graph) -> None:
    fuse_concepts(graph)
    edges = graph.find_neighbours(["MESH:1"])
    assert {(e.predicate, e.object_name) for e in edges} == {
        ("has_symptom", "shivering"),
        ("is_a", "warm thing"),
    }
    (chain,) = find_chains_between(graph, "HP:9", "DOID:2", hops=2)
    assert len(chain.concepts) == 3
    (mention,) = Dictionary(graph).find_mentions("an extreme fever")
    assert len(mention.concepts) == 1


def test_cross_references_are_followed_only_when_asked_for(graph: Graph) -> None:
    assert fuse_concepts(graph, sources=("xref",), names=False).merges == 1
    (merge,) = list_merges(graph)
    assert (merge.one, merge.other, merge.why) == ("HP:9", "DOID:2", "xref")


def test_a_name_that_two_of_a_vocabulary_have_fuses_nothing(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add([Name(id, "same name", "", 0) for id in ("A:1", "A:2", "B:1")])
        assert fuse_concepts(graph).merges == 0
