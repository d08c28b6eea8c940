"""`kb.indexes` decides what searches for chunks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from osler.build.knowledge import make_retriever
from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseUnbuilt
from osler.extract import job, publish
from osler.extract.derived import EXTRACTED_FACTS
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.indexes import store as indexing
from osler.kb.base import KnowledgeBase
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.indexed import IndexedRetriever
from osler.settings import KbSettings, Settings
from osler_lab.testing.scripted import HashingEncoder


class Other(HashingEncoder):
    identity = "other"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# Scurvy\n\nScurvy is a disease. It is due to want.\n")
    with KnowledgeBase.create(tmp_path / "kb", derived=EXTRACTED_FACTS) as kb:
        kb.add([tmp_path / "a.md"], source="book")
        with DictionaryExtractor() as extractor:
            asyncio.run(job.run_extraction(kb.path, extractor))
        publish.publish_items(kb.path)
        indexing.make_indexes(kb.path, ["summary"], HashingEncoder())
        kb.build(HashingEncoder())
    return tmp_path


def settings(folder: Path, *indexes: str) -> Settings:
    kb = {"path": folder / "kb", **({"indexes": indexes} if indexes else {})}
    return Settings(home=folder, kb=KbSettings.model_validate(kb))


async def test_the_chunks_alone_are_the_default(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb", derived=EXTRACTED_FACTS) as kb:
        for chosen in (settings(folder), settings(folder, "chunk")):
            assert isinstance(
                make_retriever(chosen, kb, HashingEncoder(), ("book",)), HybridRetriever
            )


@pytest.mark.parametrize(
    ("on", "finders"),
    [
        (("chunk", "summary"), {"dense", "lexical", "summary"}),
        (("summary",), {"summary"}),
        (("graph",), {"exact", "walk"}),
        (("chunk", "graph"), {"dense", "lexical", "exact", "walk"}),
    ],
)
async def test_each_index_is_switched_on_by_its_name(
    folder: Path, on: tuple[str, ...], finders: set[str]
) -> None:
    with KnowledgeBase.open(folder / "kb", derived=EXTRACTED_FACTS) as kb:
        found = make_retriever(settings(folder, *on), kb, HashingEncoder(), ("book",))
        assert isinstance(found, IndexedRetriever)
        hits = await found.search("What is scurvy?", k=3)
        assert [hit.passage.title for hit in hits] == ["Scurvy"]
        assert {hit.source for hit in hits} <= finders


def test_what_is_not_made_or_of_another_encoder_is_told_before_a_search(folder: Path) -> None:
    with KnowledgeBase.open(folder / "kb", derived=EXTRACTED_FACTS) as kb:
        with pytest.raises(KnowledgeBaseUnbuilt, match="outline"):
            make_retriever(settings(folder, "outline"), kb, HashingEncoder(), ("book",))
        kb.build(Other(), rebuild=True)
        with pytest.raises(KnowledgeBaseMismatch, match="another encoder"):
            make_retriever(settings(folder, "summary"), kb, Other(), ("book",))


def test_a_list_without_a_name_is_refused(folder: Path) -> None:
    for wrong in ([], ["chunks"]):
        with pytest.raises(ValueError, match="indexes"):
            KbSettings.model_validate({"path": folder, "indexes": wrong})
