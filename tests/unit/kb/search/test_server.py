"""A knowledge base on a Qdrant server: pushed, searched, pushed again, and what goes wrong."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.errors import (
    BadConfig,
    KnowledgeBaseError,
    KnowledgeBaseMismatch,
    KnowledgeBaseUnbuilt,
    SourceUnavailable,
)
from osler.kb.base import KnowledgeBase
from osler.kb.search import push, remote
from osler.kb.search.base import BackendChoice, PassageFilter
from osler.retrieve.hybrid import HybridRetriever
from osler_lab.testing.scripted import HashingEncoder

from .conftest import add, describe
from .qdrant_loopback import Loopback, serving

pytest.importorskip("qdrant_client", reason="the extra qdrant is not installed")

QUERY = "ferrous salts for iron deficiency anaemia"


class Other(HashingEncoder):
    identity = "other-64"


@pytest.fixture
def server() -> Iterator[tuple[Loopback, str]]:
    with serving() as started:
        yield started


@pytest.fixture
def url(server: tuple[Loopback, str]) -> str:
    return server[1]


@pytest.fixture
def kb(folder: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(folder, BackendChoice("sqlite")) as made:
        made.build(HashingEncoder())
        yield made


async def ids(
    folder: Path, choice: BackendChoice, within: PassageFilter | None = None
) -> list[str]:
    with KnowledgeBase.open(folder, choice) as kb:
        hits = await HybridRetriever(kb, HashingEncoder(), within or PassageFilter()).search(
            QUERY, k=9
        )
        return [hit.passage.id for hit in hits]


async def test_what_is_pushed_is_found_over_http(kb: KnowledgeBase, url: str) -> None:
    pushed = kb.push(BackendChoice(url=url))
    assert pushed.passages == {"emr": 1, "guideline": 1, "research": 5, "wiki": 2}
    assert (pushed.sent, pushed.deleted) == (9, 0)
    there = await ids(kb.path, BackendChoice(url=url))
    assert set(there) == set(await ids(kb.path, BackendChoice("sqlite")))
    assert "emr:patient#0" not in there
    assert "research:withdrawn#0" not in there
    recent = PassageFilter(years=(2016, None), retracted=True)
    only = await ids(kb.path, BackendChoice("qdrant", url), recent)
    assert set(only) == {"research:new-trial#0", "research:withdrawn#0", "guideline:advice#0"}


def test_pushing_again_sends_nothing(kb: KnowledgeBase, url: str) -> None:
    kb.push(BackendChoice(url=url))
    again = kb.push(BackendChoice(url=url))
    assert (again.sent, again.deleted) == (0, 0)


async def test_after_an_update_only_the_difference_travels(
    kb: KnowledgeBase, url: str, tmp_path: Path
) -> None:
    kb.push(BackendChoice(url=url))
    add(kb, tmp_path / "files", "wiki", {"scurvy": "Scurvy wants oranges."})
    kb.remove(source="wiki", document="asthma")
    kb.remove(source="guideline")
    describe(kb, "review", retracted=1)
    kb.build(HashingEncoder())
    pushed = kb.push(BackendChoice(url=url))
    assert pushed.passages == {"emr": 1, "research": 5, "wiki": 2}
    assert (pushed.sent, pushed.deleted) == (2, 1)
    found = await ids(kb.path, BackendChoice(url=url))
    assert "guideline:advice#0" not in found
    assert "research:review#0" not in found


def test_a_push_that_broke_off_goes_on_where_it_stopped(
    kb: KnowledgeBase, server: tuple[Loopback, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loopback, url = server
    monkeypatch.setattr(push, "BATCH", 2)
    loopback.refuse_upserts_after = 3
    with pytest.raises(KnowledgeBaseError, match=r"refused a request: .*503"):
        kb.push(BackendChoice(url=url))
    sent = sum(
        loopback.engine.count(c.name).count for c in loopback.engine.get_collections().collections
    )
    assert 0 < sent < 9
    loopback.refuse_upserts_after = None
    assert kb.push(BackendChoice(url=url)).sent == 9 - sent


async def test_a_source_that_was_not_pushed_to_its_end_is_not_searched(
    kb: KnowledgeBase, server: tuple[Loopback, str]
) -> None:
    loopback, url = server
    loopback.refuse_upserts_after = 0
    with pytest.raises(KnowledgeBaseError):
        kb.push(BackendChoice(url=url))
    with pytest.raises(SourceUnavailable, match=r"holds no collection osler-…"):
        await ids(kb.path, BackendChoice(url=url))


def test_another_encoder_s_collections_are_refused_and_replaced_when_told(
    kb: KnowledgeBase, url: str
) -> None:
    kb.push(BackendChoice(url=url))
    kb.build(Other(), rebuild=True)
    with pytest.raises(
        KnowledgeBaseMismatch, match=r"encoder hashing-64 .*, this .* other-64"
    ) as e:
        kb.push(BackendChoice(url=url))
    assert "osler kb export --rebuild" in e.value.fix
    assert kb.push(BackendChoice(url=url), rebuild=True).sent == 9


async def test_a_query_of_another_encoder_is_refused(kb: KnowledgeBase, url: str) -> None:
    kb.push(BackendChoice(url=url))
    told = r"built by encoder hashing-64, not by .*other"
    with KnowledgeBase.open(kb.path, BackendChoice(url=url)) as there:
        searched = HybridRetriever(there, Other()).search(QUERY, k=3)
        with pytest.raises(SourceUnavailable, match=told):
            await searched


def test_collections_of_others_are_left_alone(
    kb: KnowledgeBase, server: tuple[Loopback, str]
) -> None:
    from qdrant_client import models

    loopback, url = server
    size = models.VectorParams(size=4, distance=models.Distance.DOT)
    loopback.engine.create_collection("osler-theirs", size)
    kb.push(BackendChoice(url=url))
    kb.push(BackendChoice(url=url), rebuild=True)
    assert loopback.engine.collection_exists("osler-theirs")


def test_two_knowledge_bases_share_a_server_by_name(kb: KnowledgeBase, url: str) -> None:
    kb.push(BackendChoice(url=url, name="a"))
    kb.push(BackendChoice(url=url, name="b"))
    kb.remove(source="wiki")
    kb.build(HashingEncoder())
    kb.push(BackendChoice(url=url, name="a"))
    client = remote.make_client(BackendChoice(url=url))
    assert "wiki" not in remote.list_collections(client, "a")
    assert "wiki" in remote.list_collections(client, "b")
    client.close()


def test_the_key_goes_with_every_request(kb: KnowledgeBase, server: tuple[Loopback, str]) -> None:
    loopback, url = server
    with pytest.warns(UserWarning, match="insecure"):  # the client's own word about plain HTTP
        kb.push(BackendChoice(url=url, key="a-key"))
    assert set(loopback.keys) == {"a-key"}


async def test_a_server_that_is_down_is_told_and_no_empty_source(
    kb: KnowledgeBase, unused_url: str
) -> None:
    with pytest.raises(KnowledgeBaseError, match=f"server {unused_url} does not answer"):
        kb.push(BackendChoice(url=unused_url))
    with pytest.raises(SourceUnavailable, match="does not answer"):
        await ids(kb.path, BackendChoice(url=unused_url))


@pytest.fixture
def unused_url() -> str:
    with serving() as (_, url):
        return url


def test_an_unbuilt_knowledge_base_is_not_pushed(folder: Path, url: str) -> None:
    with KnowledgeBase.open(folder) as kb, pytest.raises(KnowledgeBaseUnbuilt):
        kb.push(BackendChoice(url=url))


def test_without_its_package_the_server_is_refused_with_the_command(
    kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "qdrant_client", None)
    with pytest.raises(BadConfig) as caught:
        kb.push(BackendChoice(url="http://127.0.0.1:1"))
    assert 'pip install "osler[qdrant]"' in caught.value.fix


async def test_a_real_server_takes_the_same(kb: KnowledgeBase) -> None:
    url = os.environ.get("OSLER_TEST_QDRANT_URL")
    if not url:
        pytest.skip("OSLER_TEST_QDRANT_URL names no Qdrant server")
    choice = BackendChoice(url=url, name=f"osler-test-{os.getpid()}")
    try:
        assert kb.push(choice).sent == 9
        assert kb.push(choice).sent == 0
        assert set(await ids(kb.path, choice)) == set(await ids(kb.path, BackendChoice("sqlite")))
    finally:
        client = remote.make_client(choice)
        for collection in remote.list_collections(client, choice.name).values():
            client.delete_collection(collection.name)
        client.close()
