"""The retrievers in the libraries that they are for, each the real one, on a server that runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from osler_serve.client import Client

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import ServedOsler, serve_osler

QUERY = "Which drug is given first in anaphylaxis?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture
def osler(place: ServedOsler) -> Iterator[Client]:
    with Client(place.url) as client:
        yield client


def import_library(name: str) -> Any:
    """The library, or a skipped test; its own warnings are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def test_langchain_invokes_the_retriever_alone_and_in_a_chain(osler: Client) -> None:
    runnables = import_library("langchain_core.runnables")
    from osler_serve.client.langchain import OslerRetriever

    retriever = OslerRetriever(client=osler, k=2, sources=["guideline"])
    first, second = retriever.invoke(QUERY)
    assert first.id == osler.search(QUERY, k=2, sources=["guideline"]).hits[0].passage.id
    assert first.page_content == osler.get_passage(first.id).passage.text
    assert (first.metadata["source"], first.metadata["rank"]) == ("guideline", 1)
    chain = retriever | runnables.RunnableLambda(lambda found: [one.id for one in found])
    assert chain.invoke(QUERY) == [first.id, second.id]


async def test_langchain_awaits_the_retriever(osler: Client) -> None:
    import_library("langchain_core.retrievers")
    from osler_serve.client.langchain import OslerRetriever

    found = await OslerRetriever(client=osler, k=1).ainvoke(QUERY)
    assert [one.id for one in found] == [osler.search(QUERY, k=1).hits[0].passage.id]


def test_llama_index_gets_nodes_with_scores(osler: Client) -> None:
    import_library("llama_index.core.retrievers")
    from osler_serve.client.llama_index import OslerRetriever

    nodes = OslerRetriever(osler, k=2).retrieve(QUERY)
    hits = osler.search(QUERY, k=2).hits
    assert [(n.node_id, n.score) for n in nodes] == [(h.passage.id, h.score) for h in hits]
    assert nodes[0].text == hits[0].passage.text
    assert nodes[0].metadata["licence"] == "CC0-1.0"


def test_haystack_runs_the_retriever_in_a_pipeline_that_was_stored(place: ServedOsler) -> None:
    haystack = import_library("haystack")
    from osler_serve.client.haystack import OslerRetriever

    pipeline = haystack.Pipeline()
    pipeline.add_component("retriever", OslerRetriever(place.url, top_k=2))
    again = haystack.Pipeline.loads(
        pipeline.dumps(), allowed_modules=["osler_serve.client.haystack"]
    )
    found = again.run({"retriever": {"query": QUERY}})["retriever"]["documents"]
    with Client(place.url) as client:
        hits = client.search(QUERY, k=2).hits
    assert [one.id for one in found] == [hit.passage.id for hit in hits]
    assert found[0].content == hits[0].passage.text
    assert found[0].meta["title"] == hits[0].passage.title
