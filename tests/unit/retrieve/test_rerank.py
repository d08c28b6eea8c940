"""Top-20 in, top-10 out: who stands where afterwards, and what a reranker may not do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import PostReply, PostRequest, serve_posts
from tiny_models import save_tiny_bert
from waiting import AwaitableEvent

from conformance import RetrieverKit
from osler.errors import ModelError, ModelMissing, ModelUnreachable, SourceUnavailable
from osler.kb.base import KnowledgeBase
from osler.llm.local.gguf_files import default_gguf
from osler.llm.server.connection import Endpoint, ServerClient
from osler.retrieve.hybrid import LexicalRetriever
from osler.retrieve.pooled import RerankedRetriever
from osler.retrieve.relevance import EncoderRelevance, OverlapRelevance
from osler.retrieve.rerankers import CrossEncoder, OpenAIReranker
from osler.types import Hit, Passage, Retriever
from osler_lab.testing.scripted import HashingEncoder


def passage(number: int, text: str = "") -> Passage:
    return Passage(f"book:d#{number}", text or f"text {number}", "book", f"Title {number}")


@dataclass
class Found:
    """A search that finds these, best first."""

    passages: Sequence[Passage]
    asked: list[int] = field(default_factory=list)

    async def search(self, query: str, *, k: int) -> list[Hit]:
        self.asked.append(k)
        return [
            Hit(one, 1 / rank, rank, query, "lexical")
            for rank, one in enumerate(self.passages[:k], 1)
        ]


@dataclass
class Scores:
    """A reranker that gives what it is told to, and remembers what it was shown."""

    of: Callable[[str], float]
    shown: list[str] = field(default_factory=list)

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        self.shown += texts
        return tuple(map(self.of, texts))


def number(text: str) -> int:
    return int(text.split("text ")[1])


async def test_the_best_of_the_first_twenty_stand_first_with_the_reranker_s_scores() -> None:
    inner, reranker = Found([passage(i) for i in range(40)]), Scores(lambda t: float(number(t)))
    hits = await RerankedRetriever(inner, reranker).search("iron", k=10)
    assert inner.asked == [20]
    assert len(reranker.shown) == 20
    assert reranker.shown[3] == "Title 3\ntext 3"
    assert [hit.passage.id for hit in hits] == [f"book:d#{i}" for i in range(19, 9, -1)]
    assert [hit.score for hit in hits] == [float(i) for i in range(19, 9, -1)]
    assert [hit.rank for hit in hits] == list(range(1, 11))
    assert {(hit.source, hit.query) for hit in hits} == {("lexical", "iron")}


async def test_no_more_are_given_than_are_asked_for_or_than_the_paper_keeps() -> None:
    reranked = RerankedRetriever(Found([passage(i) for i in range(40)]), Scores(lambda t: 0.0))
    assert [len(await reranked.search("iron", k=k)) for k in (1, 10, 50)] == [1, 10, 10]


async def test_empty_search_asks_no_reranker() -> None:
    reranker = Scores(lambda t: 0.0)
    assert await RerankedRetriever(Found([]), reranker).search("iron", k=5) == []
    assert reranker.shown == []


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), max_size=20))
def test_equal_scores_stand_as_they_were_found(scores: list[float]) -> None:
    inner = Found([passage(i) for i in range(len(scores))])
    reranked = RerankedRetriever(inner, Scores(lambda text: scores[number(text)]), k=20)
    hits = asyncio.run(reranked.search("iron", k=20))
    order = [int(hit.passage.id.split("#")[1]) for hit in hits]
    assert order == sorted(range(len(scores)), key=lambda i: (-scores[i], i))


@pytest.mark.parametrize("score", [nan, inf, -inf])
async def test_non_finite_rerank_score_is_an_error(score: float) -> None:
    reranked = RerankedRetriever(Found([passage(0), passage(1)]), Scores(lambda t: score))
    with pytest.raises(ModelError, match="2 scores for 2 passages"):
        await reranked.search("iron", k=2)


async def test_a_source_that_is_down_stays_down() -> None:
    class Down:
        async def search(self, query: str, *, k: int) -> list[Hit]:
            raise SourceUnavailable("book cannot be searched")

    with pytest.raises(SourceUnavailable):
        await RerankedRetriever(Down(), OverlapRelevance()).search("iron", k=2)


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("kit")
    notes = folder / "notes.md"
    parts = [f"# Anaemia {i}\n\nDrug {i} may treat anaemia, or not." for i in range(30)]
    notes.write_text("\n\n".join(parts), encoding="utf-8")
    with KnowledgeBase.create(folder / "kb") as made:
        made.add([notes], source="book")
        made.build(HashingEncoder())
        yield made


class TestReranked(RetrieverKit):
    @pytest.fixture
    def retriever(self, kb: KnowledgeBase) -> Retriever:
        return RerankedRetriever(LexicalRetriever(kb), EncoderRelevance(HashingEncoder()))

    @pytest.fixture
    def query(self) -> str:
        return "treat anaemia"


# Cross-encoders


@pytest.fixture(scope="module", params=[1, 2])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("cross") / "cross", labels=request.param)


TEXTS = ["Oral iron treats anaemia.", "抗坏血酸", "", "Adrenaline treats anaphylaxis. " * 30]


@pytest.mark.torch
async def test_a_cross_encoder_s_scores_are_its_own_logits(folder: Path) -> None:
    """Each pair by itself, without padding, against a batch of all."""
    import torch
    import transformers

    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    exact = []
    for text in TEXTS:
        inputs = tokenizer(["iron?"], [text], truncation=True, max_length=128, return_tensors="pt")
        with torch.no_grad():
            logits = model(**inputs).logits[0].tolist()
        exact.append(logits[0] if len(logits) == 1 else logits[1] - logits[0])
    scorer = CrossEncoder(folder, longest=128, batch=3, device="cpu")
    assert await scorer.relevance("iron?", TEXTS) == pytest.approx(exact, abs=1e-4)
    assert await scorer.relevance("iron?", []) == ()


@pytest.mark.torch
def test_a_model_that_tells_three_classes_apart_is_no_reranker(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="has 3 classes"):
        CrossEncoder(save_tiny_bert(tmp_path / "nli", labels=3), device="cpu")


@pytest.mark.torch
def test_an_encoder_without_a_head_is_no_reranker(tmp_path: Path) -> None:
    """transformers would give it a head of chance."""
    with pytest.raises(ModelMissing, match=r"lacks weights .*classifier"):
        CrossEncoder(save_tiny_bert(tmp_path / "plain"), device="cpu")


@pytest.mark.torch
async def test_a_cancelled_call_frees_the_model(tmp_path: Path) -> None:
    """Minutes of work are given up: the next call would else wait for them."""
    scorer = CrossEncoder(save_tiny_bert(tmp_path / "c", labels=1), longest=128, device="cpu")
    scores, scored = AwaitableEvent(), scorer._score_texts

    def told(query: str, texts: list[str]) -> list[float]:
        scores.set()
        return scored(query, texts)

    scorer._score_texts = told  # type: ignore[method-assign]
    task = asyncio.create_task(scorer.relevance("iron?", TEXTS * 50_000))
    await asyncio.wait_for(scores.passed(), timeout=20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await asyncio.wait_for(scorer.relevance("iron?", TEXTS), timeout=10)) == 4


# Servers


def reranker(url: str) -> OpenAIReranker:
    endpoint = Endpoint(base_url=url, model="bge", timeout_s=30.0, retries=0, section="reranker")
    return OpenAIReranker(ServerClient(endpoint))


async def test_a_server_s_scores_come_in_the_order_of_the_texts() -> None:
    def answer(asked: PostRequest) -> PostReply:
        documents = asked.body["documents"]
        told = [{"index": i, "relevance_score": len(d)} for i, d in enumerate(documents)]
        return PostReply({"results": sorted(told, key=lambda one: -one["relevance_score"])})

    with serve_posts(answer) as place:
        assert await reranker(place.url).relevance("iron", ["a", "abc", "ab"]) == (1.0, 3.0, 2.0)
        assert await reranker(place.url).relevance("iron", []) == ()
    (asked,) = place.asked
    assert asked.path == "/v1/rerank"
    assert asked.body == {
        "model": "bge",
        "query": "iron",
        "documents": ["a", "abc", "ab"],
        "top_n": 3,
        "return_documents": False,
    }


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ([{"index": 0, "relevance_score": 1.0}], "1 results for 2 texts"),
        ([{"index": 0, "relevance_score": 1.0}] * 2, "2 results for 2 texts"),
        ([{"index": 0, "relevance_score": 1.0}, {"index": 1}], "None is not a relevance score"),
        ([{"index": 0, "relevance_score": "1"}, {"index": 1}], "'1' is not a relevance score"),
        ([{"index": 0, "relevance_score": nan}, {"index": 1}], "nan is not a relevance score"),
        ("none", "no list of results"),
    ],
)
async def test_what_is_no_score_for_each_text_is_an_error(results: Any, words: str) -> None:
    answer = PostReply({"results": results})
    with serve_posts(lambda asked: answer) as place, pytest.raises(ModelError, match=words):
        await reranker(place.url).relevance("iron", ["a", "b"])


async def test_a_server_that_is_gone_is_unreachable() -> None:
    with serve_posts(lambda asked: None) as place, pytest.raises(ModelUnreachable, match="hung up"):
        await reranker(place.url).relevance("iron", ["a"])


async def test_a_real_server_s_wire_form_is_understood() -> None:
    """llama.cpp's `/v1/rerank`. The packaged weights are no reranker: only the form is shown."""
    try:
        path = default_gguf()
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.embedding = 512, 1, True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    params.warmup, params.verbosity = False, -1
    server = xllamacpp.Server(params)
    scorer = reranker(f"{server.listening_address}/v1")
    texts = ["Oral iron treats anaemia.", "The train leaves at noon."]
    scores = await scorer.relevance("What treats anaemia?", texts)
    again = await scorer.relevance("What treats anaemia?", texts[::-1])
    assert scores == pytest.approx(again[::-1], abs=1e-3)
    assert scores[0] != scores[1]
    del server
