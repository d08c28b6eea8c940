"""Relations near to what a question mentions, by personalised PageRank, that open."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import SourceUnavailable
from osler.graph.items import Name, Relation
from osler.graph.link import ConceptMention
from osler.graph.store import Graph
from osler.retrieve.graph import GraphRetriever
from osler.retrieve.graph_chains import ChainRetriever
from osler.retrieve.graph_near import NearRetriever

FACTS = (
    Name("T:1", "metformin"),
    Name("T:2", "renal failure"),
    Name("T:3", "lactic acidosis"),
    Name("T:4", "肾脏"),
    Name("T:5", "umbrella"),
    Name("T:6", "rain"),
    Relation("T:1", "may_cause", "T:3"),
    Relation("T:2", "risk_of", "T:3"),
    Relation("T:2", "disease_of", "T:4"),
    Relation("T:5", "keeps_off", "T:6"),
    Relation("T:4", "next_to", "T:5"),
)


async def test_what_several_mentions_lead_to_comes_first(graph: Graph) -> None:
    near = NearRetriever(graph)
    hits = await near.search("metformin in renal failure", k=3)
    assert {hit.passage.text for hit in hits} == {
        "Relation: (renal failure, disease_of, 肾脏).",
        "Relation: (renal failure, risk_of, lactic acidosis).",
        "Relation: (metformin, may_cause, lactic acidosis).",
    }
    for hit in hits:
        assert graph.get_passage(hit.passage.id) == hit.passage
    assert await near.search("Does it snow?", k=3) == []


class Given:
    """A trained recogniser stands here: it knows a word that is no name."""

    def find_mentions(self, text: str) -> list[ConceptMention]:
        at = text.find("gliding drug")
        return [ConceptMention(at, at + 12, ("T:1",))] if at >= 0 else []


async def test_a_recogniser_that_is_given_is_used(graph: Graph) -> None:
    query = "What does the gliding drug do?"
    for retriever in (
        NearRetriever(graph, recogniser=Given()),
        ChainRetriever(graph, recogniser=Given()),
        GraphRetriever(graph, recogniser=Given()),
    ):
        hits = await retriever.search(query, k=5)
        assert any("metformin" in hit.passage.text for hit in hits), retriever
    assert await NearRetriever(graph).search(query, k=5) == []


async def test_a_graph_that_is_gone_is_said(graph: Graph, tmp_path: Path) -> None:
    graph.close()
    (tmp_path / "graph.sqlite").unlink()
    with pytest.raises(SourceUnavailable):
        await NearRetriever(graph).search("metformin", k=3)
