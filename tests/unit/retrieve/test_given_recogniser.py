"""Names in a question are found by the recogniser that is given."""

from __future__ import annotations

from osler.graph.items import Name, Relation
from osler.graph.link import ConceptMention
from osler.graph.store import Graph
from osler.retrieve.graph import ChainRetriever, GraphRetriever

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


class Given:
    """A trained recogniser stands here: it knows a word that is no name."""

    def find_mentions(self, text: str) -> list[ConceptMention]:
        at = text.find("gliding drug")
        return [ConceptMention(at, at + 12, ("T:1",))] if at >= 0 else []


async def test_a_recogniser_that_is_given_is_used(graph: Graph) -> None:
    query = "What does the gliding drug do?"
    for retriever in (
        ChainRetriever(graph, recogniser=Given()),
        GraphRetriever(graph, recogniser=Given()),
    ):
        hits = await retriever.search(query, k=5)
        assert any("metformin" in hit.passage.text for hit in hits), retriever
    assert await ChainRetriever(graph).search(query, k=5) == []
