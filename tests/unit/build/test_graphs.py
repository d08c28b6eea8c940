"""The concept graph beside the knowledge base is searched and opened like any other source."""

from pathlib import Path

import pytest

from osler.build import graphs
from osler.build.knowledge import make_retriever, open_knowledge_base, searched_sources
from osler.errors import UnknownPassage
from osler.graph.formats import read_graph_files
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.settings import KbSettings, Settings
from osler.sources.catalogue import GRAPH
from osler_lab.testing.scripted import HashingEncoder

TRIPLES = "subject,predicate,object\nscurvy,treated_by,ascorbic acid\nscurvy,causes,gum bleeding\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, kb=KbSettings(path=tmp_path / "kb"))


def built(settings: Settings, tmp_path: Path) -> None:
    KnowledgeBase.create(settings.kb.path).close()
    (tmp_path / "triples.csv").write_text(TRIPLES)
    graph = Graph.create(settings.kb.path)
    graph.add(read_graph_files([tmp_path / "triples.csv"]))
    graph.load_arrays()


async def test_a_graph_is_a_source_and_its_statements_open(
    settings: Settings, tmp_path: Path
) -> None:
    built(settings, tmp_path)
    with KnowledgeBase.open(settings.kb.path) as kb:
        assert GRAPH in searched_sources(settings, kb)
        found = await make_retriever(settings, kb, HashingEncoder(), (GRAPH,)).search(
            "scurvy , treated by what", k=5
        )
    assert "ascorbic acid" in found[0].passage.text
    assert graphs.graph_passage(settings, found[0].passage.id) == found[0].passage


def test_without_a_graph_nothing_is_stated(settings: Settings) -> None:
    assert not graphs.has_graph(settings)
    assert graphs.open_graph(settings) is None
    assert graphs.graph_passage(settings, "graph:x#def") is None


def test_an_id_that_the_graph_has_not_is_not_its_own(settings: Settings, tmp_path: Path) -> None:
    built(settings, tmp_path)
    assert graphs.graph_passage(settings, "graph:nobody#def") is None
    assert graphs.graph_passage(settings, "book:a#0") is None
    with KnowledgeBase.open(settings.kb.path) as kb, pytest.raises(UnknownPassage):
        kb.get("graph:nobody#def")
    assert open_knowledge_base(settings).sources == ()
