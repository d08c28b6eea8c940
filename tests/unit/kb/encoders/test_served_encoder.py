"""Embeddings over HTTP: servers that misbehave, and llama.cpp's own with the packaged weights."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from math import inf, nan
from random import Random
from typing import Any

import numpy as np
import pytest
from loopback import PostReply, PostRequest, serve_posts

from osler.errors import ModelError, ModelMissing, ModelUnreachable
from osler.kb.encoders.hub import OpenAIEncoder
from osler.kb.search.base import unit_problem
from osler.llm.local.gguf_files import default_gguf
from osler.llm.server.connection import Clock, Endpoint, KeyRefused, ServerClient

KEY = "sk-do-not-tell"


class Naps:
    """Naps that take no time, and how long they should have been."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


def encoder(url: str, naps: Naps | None = None, **more: Any) -> OpenAIEncoder:
    limits = {name: more.pop(name) for name in ("retries", "timeout_s") if name in more}
    bounds = {"timeout_s": 30.0, **limits}
    endpoint = Endpoint(base_url=url, model="e5", api_key=KEY, section="embedder", **bounds)
    api = ServerClient(endpoint, clock=Clock(sleep=naps or Naps()), rng=Random(0))
    return OpenAIEncoder(api, languages=frozenset({"en", "zh"}), **more)


def counted(asked: PostRequest) -> PostReply:
    """A vector of the number of letters and of words, in a shuffled order."""
    data = [
        {"index": i, "embedding": [len(text), len(text.split()), 1.0]}
        for i, text in enumerate(asked.body["input"])
    ]
    return PostReply({"data": data[::-1]})


def test_vectors_come_in_the_order_of_the_texts_and_of_length_1() -> None:
    texts = [f"{'iron ' * i}treats" for i in range(10)]
    with serve_posts(counted) as place:
        vectors = encoder(place.url, batch=3).encode(texts, kind="passage")
    assert unit_problem(vectors, (10, 3)) == ""
    raw = np.array([[len(t), len(t.split()), 1.0] for t in texts], np.float32)
    assert vectors == pytest.approx(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    assert sorted(len(one.body["input"]) for one in place.asked) == [1, 3, 3, 3]
    assert {(one.path, one.key) for one in place.asked} == {("/v1/embeddings", f"Bearer {KEY}")}


def test_questions_and_passages_get_their_own_words_in_front() -> None:
    with serve_posts(counted) as place:
        chosen = encoder(place.url, query_prefix="query: ", passage_prefix="passage: ")
        chosen.encode(["iron"], kind="query")
        chosen.encode(["iron", "  "], kind="passage")
    assert [one.body["input"] for one in place.asked] == [
        ["query: iron"],
        ["passage: iron", "passage: ."],
    ]


def test_the_identity_tells_model_and_prefixes() -> None:
    plain, prefixed = encoder("http://h/v1"), encoder("http://h/v1", query_prefix="query: ")
    assert plain.identity == "openai:e5" == encoder("http://elsewhere/v1").identity
    assert prefixed.identity.startswith("openai:e5+")


def test_no_texts_no_request_once_the_dimension_is_known() -> None:
    with serve_posts(counted) as place:
        chosen = encoder(place.url)
        assert chosen.dimension == 3
        assert chosen.encode([], kind="query").shape == (0, 3)
        assert len(place.asked) == 1


async def test_served_encoder_can_be_called_from_a_coroutine_and_from_a_thread() -> None:
    with serve_posts(counted) as place:
        chosen = encoder(place.url)
        here = chosen.encode(["iron"], kind="query")
        there = await asyncio.to_thread(chosen.encode, ["iron"], kind="query")
    assert np.array_equal(here, there)


def data(*embeddings: Any) -> dict[str, Any]:
    return {"data": [{"index": i, "embedding": e} for i, e in enumerate(embeddings)]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (data([1.0, 2.0]), "1 data for 2 texts"),
        (data([1.0], [2.0], [3.0]), "3 data for 2 texts"),
        ({"data": [{"index": 0, "embedding": [1.0]}] * 2}, "2 data for 2 texts"),
        ({"data": [{"index": [i], "embedding": [1.0]} for i in (0, 1)]}, "2 data for 2 texts"),
        (data([1.0, 2.0], [1.0]), "not vectors"),
        (data([1.0, 2.0], None), "not vectors"),
        (data("iron", "zinc"), "not vectors"),
        (data([], []), "not vectors"),
        (data([0.0, 0.0], [1.0, 0.0]), "zero or not finite"),
        (data([nan, 0.0], [1.0, 0.0]), "zero or not finite"),
        (data([inf, 0.0], [1.0, 0.0]), "zero or not finite"),
        ({"embeddings": []}, "no list of data"),
        ({"data": ["iron", "zinc"]}, "no list of data"),
        ([1, 2], "no list of data"),
        (b"<html>hello</html>", "broken JSON"),
    ],
)
def test_malformed_embedding_reply_is_an_error(body: Any, words: str) -> None:
    with (
        serve_posts(lambda asked: PostReply(body)) as place,
        pytest.raises(ModelError, match=words),
    ):
        encoder(place.url).encode(["iron", "zinc"], kind="passage")


def test_embedding_of_another_dimension_is_an_error() -> None:
    with serve_posts(counted) as place, pytest.raises(ModelError, match="3 numbers, not 384"):
        encoder(place.url, dimension=384).encode(["iron"], kind="query")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (PostReply({"error": f"bad key {KEY}"}, 401), KeyRefused, "key refused"),
        (PostReply({"error": f"no such model; key {KEY}"}, 404), ModelError, "no such model"),
        (PostReply({}, 503), ModelUnreachable, "answers 503: .*3 of 3 tries"),
        (None, ModelUnreachable, "hung up"),
        (PostReply({}, 429, {"Retry-After": "3600"}), ModelUnreachable, "1 of 3 tries"),
    ],
)
def test_a_server_s_faults_are_told_without_the_key(
    said: PostReply | None, kind: type[ModelError], words: str
) -> None:
    with serve_posts(lambda asked: said) as place, pytest.raises(kind, match=words) as caught:
        encoder(place.url, retries=2).encode(["iron"], kind="query")
    assert KEY not in f"{caught.value!r} {caught.value}"
    assert caught.value.fix


def test_a_busy_server_is_asked_again_when_it_says() -> None:
    replies: list[Callable[[PostRequest], PostReply]] = [
        lambda asked: PostReply({}, 429, {"Retry-After": "7"}),
        lambda asked: PostReply({}, 500),
        counted,
    ]
    naps = Naps()

    def answer(asked: PostRequest) -> PostReply:
        return replies.pop(0)(asked)

    with serve_posts(answer) as place:
        vectors = encoder(place.url, naps).encode(["iron"], kind="query")
    assert vectors.shape == (1, 3)
    assert naps.taken[0] == 7
    assert 0 <= naps.taken[1] <= 2


def test_a_server_that_does_not_answer_is_unreachable_in_time() -> None:
    free = threading.Event()

    def wait(asked: PostRequest) -> PostReply:
        free.wait(5)
        return PostReply({})

    with serve_posts(wait) as place:
        with pytest.raises(ModelUnreachable, match=r"no reply within 0\.2 s"):
            encoder(place.url, timeout_s=0.2).encode(["iron"], kind="query")
        free.set()


def test_a_server_that_is_not_there_says_where_to_look() -> None:
    with serve_posts(counted) as place:
        pass
    with pytest.raises(ModelUnreachable, match="no connection") as caught:
        encoder(place.url).encode(["iron"], kind="query")
    assert "embedder.url" in caught.value.fix


# A real llama.cpp server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    try:
        path = default_gguf()
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.embedding = 1024, 1, True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup, params.verbosity = False, -1
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def test_a_real_server_s_embeddings_tell_like_from_unlike(address: str) -> None:
    chosen = encoder(address, batch=2, timeout_s=60.0)
    texts = [
        "Oral iron treats anaemia.",
        "Iron tablets treat anaemia.",
        "def main(): return 0",
        " ",
    ]
    vectors = chosen.encode(texts, kind="passage")
    assert unit_problem(vectors, (4, 576)) == ""
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
    assert chosen.encode(texts[:1], kind="passage")[0] == pytest.approx(vectors[0], abs=1e-3)
