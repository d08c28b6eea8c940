"""What the settings switch on: patients by likeness, and the outside only when it is set."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from osler.build import online_sources
from osler.build.knowledge import make_retriever, searched_sources
from osler.errors import BadConfig
from osler.kb.base import KnowledgeBase
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.web import FusedRetriever, OnlineRetriever
from osler.settings import Settings
from osler.sources.catalogue import BOOK, EMR, RESEARCH, WEB, WIKI
from osler.sources.online.services import (
    BingService,
    MediaWikiService,
    PubMedService,
    SearxngService,
)
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.clinic.records.codes import CodeSystem
from osler_serve.clinic.records.search import SimilarPatients, open_patients

SAMPLE = Path(__file__).parents[3] / "packages/osler/src/osler/sample"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        for source in (BOOK, EMR):
            made.add([SAMPLE / source], source=source)
        made.build(HashingEncoder())
        yield made


def settings(home: Path, **sections: Any) -> Settings:
    return Settings.model_validate({"home": str(home), **sections})


def made(home: Path, kb: KnowledgeBase, *sources: str, **sections: Any) -> Any:
    return make_retriever(settings(home, **sections), kb, HashingEncoder(), sources)


def test_patients_are_searched_by_likeness_and_everything_else_by_words_and_meaning(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    assert isinstance(made(tmp_path, kb, EMR), SimilarPatients)
    assert isinstance(made(tmp_path, kb, BOOK), HybridRetriever)
    assert searched_sources(settings(tmp_path), kb) == (BOOK,)


def test_by_default_nothing_outside_is_searched_and_no_socket_is_opened(
    kb: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a socket was opened")

    every = (BOOK, WIKI, RESEARCH, WEB)
    assert online_sources.online_names(settings(tmp_path)) == ()
    assert online_sources.online_retrievers(settings(tmp_path), every) == []
    monkeypatch.setattr(socket.socket, "connect", refuse)
    hits = asyncio.run(made(tmp_path, kb, BOOK).search("heart failure", k=2))
    assert len(hits) == 2


def test_what_is_set_is_a_source_like_those_that_are_held(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    chosen = settings(
        tmp_path,
        web={"kind": "searxng", "url": "http://localhost:8888"},
        pedia={"kind": "mediawiki"},
        pubmed={"kind": "eutils", "email": "me@example.org"},
    )

    assert searched_sources(chosen, kb) == (BOOK, RESEARCH, WIKI, WEB)
    engines = [
        each.engine
        for each in online_sources.online_retrievers(chosen, (BOOK, RESEARCH, WIKI, WEB))
    ]
    assert [type(engine) for engine in engines] == [MediaWikiService, PubMedService, SearxngService]
    alone = make_retriever(chosen, kb, HashingEncoder(), (WEB,))
    both = make_retriever(chosen, kb, HashingEncoder(), (BOOK, RESEARCH))
    assert isinstance(alone, OnlineRetriever)
    assert isinstance(both, FusedRetriever)
    assert [type(each) for each in both.several] == [HybridRetriever, OnlineRetriever]


def test_keys_come_from_files_and_are_not_in_what_is_made(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n", encoding="utf-8")
    bing = {"kind": "bing", "url": "https://b.example/v7.0/search", "key_file": tmp_path / "key"}

    (web,) = online_sources.online_retrievers(settings(tmp_path, web=bing), (WEB,))

    assert isinstance(web.engine, BingService)
    assert web.engine.api_key == "s3cret"
    assert "s3cret" not in repr(web)
    missing = {**bing, "key_file": tmp_path / "none"}
    with pytest.raises(BadConfig, match="cannot be read"):
        online_sources.online_retrievers(settings(tmp_path, web=missing), (WEB,))


def test_ncbi_s_own_variables_are_honoured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCBI_API_KEY", "k3y")
    monkeypatch.setenv("NCBI_EMAIL", "me@example.org")
    (online,) = online_sources.online_retrievers(
        settings(tmp_path, pubmed={"kind": "eutils"}), (RESEARCH,)
    )
    assert isinstance(online.engine, PubMedService)
    assert (online.engine.api_key, online.engine.email) == ("k3y", "me@example.org")


@pytest.mark.parametrize(
    "wrong",
    [
        {"web": {"kind": "searxng"}},
        {"web": {"kind": "searxng", "url": "ftp://x"}},
        {"web": {"kind": "bing", "url": "https://x/"}},
        {"web": {"kind": "google"}},
        {"net": {"days": -1}},
        {"emr": {"target": "ICD-11"}},
    ],
)
def test_online_source_with_incomplete_settings_is_refused(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        settings(tmp_path, **wrong)


def test_the_vocabulary_of_comparison_is_a_setting(kb: KnowledgeBase, tmp_path: Path) -> None:
    chosen = settings(tmp_path, emr={"target": "ICD-10-CM"})
    assert open_patients(chosen, kb).target is CodeSystem.ICD10
