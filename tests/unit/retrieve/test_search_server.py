"""The search server of KAG-Thinker's released code, by its wire form."""

import pytest
from loopback import PostReply, PostRequest, serve_posts

from osler.errors import SourceUnavailable
from osler.llm.server.connection import Endpoint, ServerClient
from osler.retrieve.web import SearchServer

DOCUMENTS = [
    {"id": "12", "contents": '"Red Kite"\nRed Kite is a film of Peter Berg.'},
    {"contents": "Anna Holm was his mother."},
]


def server(url: str) -> SearchServer:
    endpoint = Endpoint(base_url=url, model="", timeout_s=30.0, retries=0, section="strategy")
    return SearchServer(ServerClient(endpoint))


async def test_documents_and_scores_are_passages_in_their_order() -> None:
    with serve_posts(lambda asked: PostReply([DOCUMENTS, [0.9, 0.5]])) as place:
        hits = await server(place.url).search("Who directed Red Kite?", k=2)
    (asked,) = place.asked
    assert asked.path == "/search"
    assert asked.body == {"query": "Who directed Red Kite?", "top_n": 2, "return_score": True}
    assert [(hit.passage.title, hit.passage.text, hit.score, hit.rank) for hit in hits] == [
        ("Red Kite", "Red Kite is a film of Peter Berg.", 0.9, 1),
        ("", "Anna Holm was his mother.", 0.5, 2),
    ]
    assert hits[0].passage.id == "wiki:12#0"
    assert hits[1].passage.id.startswith("wiki:")


async def test_the_address_may_be_the_server_s_own_as_the_released_code_has_it() -> None:
    with serve_posts(lambda asked: PostReply([DOCUMENTS, [0.9, 0.5]])) as place:
        assert await server(place.url.removesuffix("/v1")).search("who", k=2)
    assert [asked.path for asked in place.asked] == ["/search"]


async def test_documents_without_scores_stand_in_their_order() -> None:
    with serve_posts(lambda asked: PostReply(DOCUMENTS)) as place:
        hits = await server(place.url).search("who", k=1)
    assert [hit.passage.title for hit in hits] == ["Red Kite"]


@pytest.mark.parametrize(
    "reply", [{"error": "down"}, [[{"text": "x"}], [1.0]], [DOCUMENTS, [1.0]], ["x"]]
)
async def test_a_reply_of_another_form_is_a_source_that_is_down(reply: object) -> None:
    def answer(asked: PostRequest) -> PostReply:
        return PostReply(reply)

    with serve_posts(answer) as place, pytest.raises(SourceUnavailable, match="search server"):
        await server(place.url).search("who", k=2)


async def test_a_server_that_is_gone_is_a_source_that_is_down() -> None:
    with serve_posts(lambda asked: None) as place, pytest.raises(SourceUnavailable):
        await server(place.url).search("who", k=2)


@pytest.mark.parametrize("wrapped", ["result", "nested", "plain"])
async def test_a_server_of_flashrag_or_search_r1_is_read(wrapped: str) -> None:
    listed = [
        {"document": DOCUMENTS[0], "score": 0.9},
        {"document": {"id": "7", "title": "Anna Holm", "text": "His mother."}, "score": 0.5},
    ]
    reply = {"result": {"result": [listed]}, "nested": [listed], "plain": listed}[wrapped]
    with serve_posts(lambda asked: PostReply(reply)) as place:
        hits = await server(place.url).search("who", k=2)
    assert [(hit.passage.title, hit.score) for hit in hits] == [
        ("Red Kite", 0.9),
        ("Anna Holm", 0.5),
    ]
    assert hits[1].passage.id == "wiki:7#0"
