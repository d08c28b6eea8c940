"""The concept graph beside the knowledge base is searched and opened like any other source."""

from pathlib import Path

import pytest

from osler.app import wiring
from osler.app.config import Kb, Settings
from osler.app.wiring import graphs
from osler.app.wiring.knowledge import retriever, searched
from osler.errors import UnknownPassage
from osler.graph.formats import read
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.testing.encoders import HashingEncoder
from osler.types import GRAPH

TRIPLES = "subject,predicate,object\nscurvy,treated_by,ascorbic acid\nscurvy,causes,gum bleeding\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, kb=Kb(path=tmp_path / "kb"))


def built(settings: Settings, tmp_path: Path) -> None:
    KnowledgeBase.create(settings.kb.path).close()
    (tmp_path / "triples.csv").write_text(TRIPLES)
    graph = Graph.create(settings.kb.path)
    graph.add(read([tmp_path / "triples.csv"]))
    graph.build()


async def test_a_graph_is_a_source_and_its_statements_open(
    settings: Settings, tmp_path: Path
) -> None:
    built(settings, tmp_path)
    with KnowledgeBase.open(settings.kb.path) as kb:
        assert GRAPH in searched(settings, kb)
        found = await retriever(settings, kb, HashingEncoder(), (GRAPH,)).search(
            "scurvy , treated by what", k=5
        )
    assert "ascorbic acid" in found[0].passage.text
    assert graphs.stated(settings, found[0].passage.id) == found[0].passage


def test_without_a_graph_nothing_is_stated(settings: Settings) -> None:
    assert not graphs.exists(settings)
    assert graphs.graph_of(settings) is None
    assert graphs.stated(settings, "graph:x#def") is None


def test_an_id_that_the_graph_has_not_is_not_its_own(settings: Settings, tmp_path: Path) -> None:
    built(settings, tmp_path)
    assert graphs.stated(settings, "graph:nobody#def") is None
    assert graphs.stated(settings, "book:a#0") is None
    with KnowledgeBase.open(settings.kb.path) as kb, pytest.raises(UnknownPassage):
        kb.get("graph:nobody#def")
    assert wiring.knowledge_base(settings).sources == ()
