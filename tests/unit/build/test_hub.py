"""Settings to models that transformers or a server runs, and to the search that reranks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from loopback import PostReply, PostRequest, serve_posts
from pydantic import ValidationError
from tiny_models import save_tiny, save_tiny_bert

from osler.build.hub import open_reranker, with_reranker
from osler.build.knowledge import search_passages
from osler.build.models import load_encoder, load_model
from osler.doctor import Check, run_checks
from osler.errors import BadConfig, KnowledgeBaseMismatch, ModelError
from osler.kb.base import KnowledgeBase
from osler.llm.core.base import Likelihood, Message, Sampling
from osler.retrieve.pooled import RerankedRetriever
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings

REVISION = "0123456789abcdef0123456789abcdef01234567"


def settings(tmp_path: Path, **sections: Any) -> Settings:
    return Settings.model_validate({"home": tmp_path, **sections})


@pytest.mark.parametrize(
    ("section", "given", "words"),
    [
        ("model", {"kind": "transformers"}, "path, or name and revision"),
        ("model", {"kind": "transformers", "name": "a/b", "revision": "main"}, "40 digits"),
        ("embedder", {"kind": "hub", "name": "a/b"}, "path, or name and revision"),
        ("embedder", {"kind": "openai", "name": "e5"}, "needs url"),
        ("embedder", {"kind": "medcpt", "revision": REVISION}, "passage_revision"),
        (
            "embedder",
            {"kind": "hub", "path": "x", "passage_name": "a/b"},
            "passage_path, or passage_name",
        ),
        ("embedder", {"languages": []}, "at least 1"),
        ("reranker", {"kind": "hub", "name": "a/b", "revision": REVISION[:12]}, "40 digits"),
        ("reranker", {"kind": "openai", "url": "http://h/v1"}, "needs url"),
    ],
)
def test_a_model_that_is_not_named_well_is_refused(
    tmp_path: Path, section: str, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        settings(tmp_path, **{section: given})


@pytest.mark.torch
async def test_a_folder_becomes_the_language_model(tmp_path: Path) -> None:
    folder = save_tiny(tmp_path / "planner")
    chosen = settings(tmp_path, model={"kind": "transformers", "path": folder, "device": "cpu"})
    ready = await load_model(chosen.model)
    model = ready.model
    assert not ready.constrains
    assert model.name == "planner/float32"
    assert (await model.complete([Message("user", "iron?")], Sampling(max_tokens=3))).usage.calls
    assert isinstance(model, Likelihood)


@pytest.mark.torch
def test_the_same_settings_give_the_same_encoder_and_others_another(tmp_path: Path) -> None:
    one, other = save_tiny_bert(tmp_path / "a"), save_tiny_bert(tmp_path / "b", seed=1)
    kinds = [
        {"kind": "hub", "path": one, "longest": 64},
        {"kind": "hub", "path": one, "longest": 64, "pooling": "mean"},
        {"kind": "hub", "path": one, "longest": 64, "query_prefix": "query: "},
        {"kind": "hub", "path": one, "passage_path": other, "longest": 64},
        {"kind": "medcpt", "path": one, "passage_path": other},
    ]
    found = [load_encoder(settings(tmp_path, embedder=kind)).identity for kind in kinds]
    assert len(set(found)) == len(kinds)
    assert found[0] == load_encoder(settings(tmp_path, embedder=kinds[0])).identity


def test_a_server_becomes_the_encoder_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-of-mine\n", encoding="utf-8")

    def answer(asked: PostRequest) -> PostReply:
        return PostReply({"data": [{"index": 0, "embedding": [3.0, 4.0]}]})

    with serve_posts(answer) as place:
        given = {"kind": "openai", "url": place.url, "name": "e5", "query_prefix": "query: "}
        chosen = settings(tmp_path, embedder={**given, "key_file": tmp_path / "key"})
        vectors = load_encoder(chosen).encode(["iron"], kind="query")
    assert vectors.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
    assert place.asked[0].key == "Bearer sk-of-mine"
    assert place.asked[0].body["input"] == ["query: iron"]


def test_a_key_file_that_is_not_there_names_its_section(tmp_path: Path) -> None:
    given = {"kind": "openai", "url": "http://h/v1", "name": "e5", "key_file": tmp_path / "no"}
    with pytest.raises(BadConfig, match=r"embedder\.key_file"):
        load_encoder(settings(tmp_path, embedder=given))


def test_without_a_reranker_the_search_stays_as_it_is(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    inner = object()
    assert open_reranker(chosen) is None
    assert with_reranker(chosen, inner, None, ("book",)) is inner  # type: ignore[arg-type]


def test_a_reranker_looks_at_texts_alone(tmp_path: Path) -> None:
    chosen = settings(tmp_path, reranker={"depth": 7})
    second = OverlapRelevance()
    search = with_reranker(chosen, object(), second, ("book",))  # type: ignore[arg-type]
    assert isinstance(search, RerankedRetriever)
    assert (search.depth, search.k) == (7, 7)
    patients = object()
    assert with_reranker(chosen, patients, second, ("emr",)) is patients  # type: ignore[arg-type]


NOTES = "# Anaemia\n\nOral iron treats anaemia.\n\n# Gout\n\nColchicine treats gout, not anaemia.\n"


@pytest.mark.torch
async def test_a_base_is_built_searched_and_reranked_as_the_settings_say(tmp_path: Path) -> None:
    """A hub encoder for the vectors, a server that likes gout for the second look."""
    (tmp_path / "notes.md").write_text(NOTES, encoding="utf-8")
    bert = save_tiny_bert(tmp_path / "bert")

    def answer(asked: PostRequest) -> PostReply:
        texts = asked.body["documents"]
        told = [{"index": i, "relevance_score": float("Gout" in t)} for i, t in enumerate(texts)]
        return PostReply({"results": told})

    embedder = {"kind": "hub", "path": bert, "longest": 64}
    plain = settings(tmp_path, embedder=embedder)
    with KnowledgeBase.create(plain.kb.path) as kb:
        kb.add([tmp_path / "notes.md"], source="book")
        kb.build(load_encoder(plain))
    with serve_posts(answer) as place:
        given = {"kind": "openai", "url": place.url, "name": "bge"}
        chosen = settings(tmp_path, embedder=embedder, reranker=given)
        hits = await search_passages(chosen, "iron anaemia", k=2, sources=())
        told = {check.name: check for check in await asyncio.to_thread(list, run_checks(chosen))}
    assert [hit.passage.text.split()[0] for hit in hits] == ["Colchicine", "Oral"]
    assert [hit.score for hit in hits] == [1.0, 0.0]
    assert told["reranker"] == Check(
        "reranker",
        "fail",
        "openai: a passage that answers has 0.00, another 0.00",
        "use a model that was trained to rerank",
    )
    other = save_tiny_bert(tmp_path / "other", seed=1)
    changed = settings(tmp_path, embedder={**embedder, "path": other})
    with pytest.raises(KnowledgeBaseMismatch, match="was built by"):
        await search_passages(changed, "iron", k=2, sources=())


@pytest.mark.torch
def test_a_cross_encoder_becomes_the_reranker(tmp_path: Path) -> None:
    folder = save_tiny_bert(tmp_path / "cross", labels=1)
    chosen = settings(tmp_path, reranker={"kind": "hub", "path": folder})
    assert open_reranker(chosen) is not None
    broken = settings(tmp_path, reranker={"kind": "hub", "path": tmp_path / "absent"})
    with pytest.raises(ModelError, match="no model"):
        open_reranker(broken)
