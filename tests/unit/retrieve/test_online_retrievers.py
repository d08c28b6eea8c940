"""What is found outside: hits whose passages open later, alone and beside an index."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

import pytest
from loopback import (
    NamedHostRequest,
    NamedHostServer,
    NetworkFactory,
    serve_named_hosts,
    whole_reply,
)

from conformance import RetrieverKit
from osler.errors import SourceUnavailable
from osler.retrieve.entity_names import NonproprietaryNames, packaged_names
from osler.retrieve.pooled import PooledOrder
from osler.retrieve.relevance import OverlapRelevance
from osler.retrieve.web import FusedRetriever, OnlineRetriever
from osler.sources.catalogue import WIKI
from osler.sources.online.services import MediaWikiService
from osler.sources.records import Document, Section
from osler.types import Hit, Passage, Retriever

PAGES = [
    {"pageid": 1, "title": "Asthma", "index": 1, "extract": "Asthma narrows the airways. " * 60},
    {"pageid": 2, "title": "COPD", "index": 2, "extract": "Smoke harms. Asthma is another."},
]


def wiki(asked: NamedHostRequest) -> bytes:
    """Words only: the search of a query without any finds nothing."""
    found = PAGES if any(char.isalpha() for char in asked.params["gsrsearch"]) else []
    return whole_reply({"query": {"pages": found}})


@pytest.fixture
async def server() -> AsyncIterator[NamedHostServer]:
    async with serve_named_hosts(wiki) as place:
        yield place


@pytest.fixture
def lines(tmp_path: Path) -> NetworkFactory:
    return NetworkFactory(tmp_path / "web")


@pytest.fixture
def retriever(server: NamedHostServer, lines: NetworkFactory) -> Retriever:
    net = lines()
    return OnlineRetriever(MediaWikiService(net, server.url_of("en.wiki.test")), net, WIKI)


class TestOnline(RetrieverKit):
    @pytest.fixture
    def query(self) -> str:
        return "asthma"


async def test_the_best_passage_of_every_page_comes_before_the_second_of_any(
    retriever: Retriever,
) -> None:
    hits = await retriever.search("asthma airways", k=3)

    assert [hit.passage.title for hit in hits] == ["Asthma", "COPD", "Asthma"]
    assert {hit.source for hit in hits} == {"wikipedia"}
    assert {hit.passage.source for hit in hits} == {"wiki"}
    assert all(len(hit.passage.text) <= 1000 for hit in hits)
    assert hits[0].passage.locator.kind == "Encyclopaedia article, retrieved 2023-11-14"


async def test_what_was_found_opens_when_the_wiki_is_gone(
    retriever: Retriever, lines: NetworkFactory
) -> None:
    (hit, *_) = await retriever.search("asthma", k=1)

    cache = lines().cache
    assert cache is not None
    assert cache.find_passage(hit.passage.id) == hit.passage
    assert cache.find_passage("wiki:nothing#0") is None


class Fixed:
    """An engine with one page, whose text can change."""

    name = "fixed"

    def __init__(self) -> None:
        self.text = "First text."

    async def find(self, query: str, *, k: int) -> list[Document]:
        return [Document("page", "Page", (Section(self.text),))]


async def test_a_page_that_changes_becomes_another_passage_and_both_open(
    lines: NetworkFactory,
) -> None:
    engine, net = Fixed(), lines()
    online = OnlineRetriever(engine, net, "web")
    (before,) = await online.search("q", k=1)
    engine.text = "Second text."
    (after,) = await online.search("q", k=1)

    assert before.passage.id != after.passage.id
    assert net.cache is not None
    assert net.cache.find_passage(before.passage.id) == before.passage


class Index:
    def __init__(self, *ids: str, down: bool = False) -> None:
        self.ids, self.down = ids, down

    async def search(self, query: str, *, k: int) -> list[Hit]:
        if self.down:
            raise SourceUnavailable("gone")
        found = [Passage(id, id, "wiki", id) for id in self.ids[:k]]
        return [Hit(p, 1 / rank, rank, query, "index") for rank, p in enumerate(found, 1)]


ONE = PooledOrder(OverlapRelevance())


async def test_an_index_and_the_outside_are_one_order() -> None:
    both = FusedRetriever((Index("a", "b", "c"), Index("b", "d")), ONE)

    hits = await both.search("q", k=3)

    assert [hit.passage.id for hit in hits] == ["b", "a", "c"]
    assert [hit.rank for hit in hits] == [1, 2, 3]


async def test_when_the_outside_is_down_that_is_told_not_hidden_by_the_index() -> None:
    with pytest.raises(SourceUnavailable, match="gone"):
        await FusedRetriever((Index("a"), Index(down=True)), ONE).search("q", k=3)


@pytest.mark.parametrize(
    ("query", "looked_up"),
    [
        ("Is asthma treated with salbutamol?", ["salbutamol", "asthma"]),
        ("What does infliximab do in Crohn's disease and asthma?", ["Crohn disease", "infliximab"]),
        ("哮喘怎么治疗？", ["哮喘"]),
        ("What helps with a bad night?", ["What helps with a bad night?"]),
    ],
)
async def test_the_encyclopaedia_is_asked_for_the_entity_of_a_question(
    server: NamedHostServer, lines: NetworkFactory, query: str, looked_up: list[str]
) -> None:
    """TC-RAG App. 8.5: a recogniser picks the entity that is looked up."""
    net = lines()
    engine = MediaWikiService(net, server.url_of("en.wiki.test"))
    tables = (packaged_names(), NonproprietaryNames())
    hits = await OnlineRetriever(engine, net, WIKI, entities=tables).search(query, k=3)
    assert sorted(asked.params["gsrsearch"] for asked in server.asked) == sorted(looked_up)
    assert {hit.query for hit in hits} == {query}


async def test_an_entity_without_an_article_leaves_the_question_to_be_searched(
    lines: NetworkFactory,
) -> None:
    class Engine:
        name = "wiki"
        asked: ClassVar[list[str]] = []

        async def find(self, query: str, *, k: int) -> list[Document]:
            self.asked.append(query)
            text = (Section("Salbutamol widens the airways."),)
            return [] if query == "salbutamol" else [Document("1", "Bronchi", sections=text)]

    online = OnlineRetriever(Engine(), lines(), WIKI, entities=(packaged_names(),))
    hits = await online.search("How does salbutamol work?", k=3)
    assert Engine.asked == ["salbutamol", "How does salbutamol work?"]
    assert [hit.passage.title for hit in hits] == ["Bronchi"]
