"""Chains between the concepts of a question, as passages that open."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import SourceUnavailable, UnknownPassage
from osler.graph import fusion
from osler.graph.items import ConceptMapping, Name, Relation
from osler.graph.store import Graph
from osler.retrieve.graph import ChainRetriever

FACTS = (
    Name("T:1", "Metformin"),
    Name("T:2", "renal failure"),
    Name("T:3", "Lactic acidosis"),
    Name("T:4", "肾脏"),
    Name("U:3", "lactate excess"),
    Relation("T:1", "excreted_by", "T:4"),
    Relation("T:2", "disease_of", "T:4"),
    Relation("T:1", "may_cause", "T:3"),
    Relation("T:2", "risk_of", "T:3"),
    ConceptMapping("T:3", "U:3", "sssom"),
    Relation("U:3", "measured_by", "T:4"),
)


async def test_the_chain_in_the_words_of_the_question_comes_first(graph: Graph) -> None:
    hits = await ChainRetriever(graph, hops=2).search(
        "Does metformin cause acidosis in renal failure?", k=5
    )
    assert [hit.passage.text for hit in hits] == [
        "Chain: renal failure —risk_of→ Lactic acidosis ←may_cause— Metformin",
        "Chain: renal failure —disease_of→ 肾脏 ←excreted_by— Metformin",
    ]
    for hit in hits:
        assert graph.get_passage(hit.passage.id) == hit.passage


async def test_a_concept_alone_has_the_chains_around_it(graph: Graph) -> None:
    hits = await ChainRetriever(graph).search("肾脏有什么问题？", k=3)
    assert len(hits) == 3
    assert all("肾脏" in hit.passage.text for hit in hits)
    for hit in hits:
        assert graph.get_passage(hit.passage.id) == hit.passage


async def test_chains_through_fused_concepts_open_as_well(graph: Graph) -> None:
    assert fusion.fuse_concepts(graph).merges == 1
    hits = await ChainRetriever(graph, hops=2).search("metformin and 肾脏", k=5)
    assert any("measured_by" in hit.passage.text for hit in hits)
    for hit in hits:
        assert graph.get_passage(hit.passage.id) == hit.passage


async def test_no_mention_no_chain(graph: Graph) -> None:
    assert await ChainRetriever(graph).search("Does it rain?", k=3) == []
    for bad in ("graph:T:1#via-", "graph:T:1#via-00.11", "graph:T:1#via-..."):
        with pytest.raises(UnknownPassage):
            graph.get_passage(bad)


async def test_a_graph_that_is_gone_is_said(graph: Graph, tmp_path: Path) -> None:
    graph.close()
    (tmp_path / "graph.sqlite").unlink()
    with pytest.raises(SourceUnavailable):
        await ChainRetriever(graph).search("metformin", k=3)
