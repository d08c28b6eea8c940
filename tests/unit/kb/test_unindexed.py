"""A knowledge base answers by words from the moment that files are in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.answer.abstention import note_unindexed
from osler.build.knowledge import make_retriever
from osler.build.live import with_knowledge
from osler.build.models import LoadedModel
from osler.extract.derived import EXTRACTED_FACTS
from osler.kb.base import KnowledgeBase
from osler.questions import parse_question
from osler.retrieve.hybrid import HybridRetriever, LexicalRetriever
from osler.runs.answering import FinishedRun, ask, replay
from osler.settings import AnswerSettings, KbSettings, RagSettings, RunsSettings, Settings
from osler.types import Answer, Halt, Solution
from osler_lab.testing.scripted import HashingEncoder, ScriptedModel

TEXT = "# Scurvy\n\nScurvy is caused by lack of vitamin C. It is treated with ascorbic acid.\n"


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "a.md").write_text(TEXT)
    with KnowledgeBase.create(tmp_path / "kb", derived=EXTRACTED_FACTS) as made:
        made.add([tmp_path / "a.md"], source="book")
        yield made


def settings_at(folder: Path) -> Settings:
    return Settings(
        home=folder,
        kb=KbSettings(path=folder / "kb"),
        runs=RunsSettings(path=folder / "runs"),
        strategy=RagSettings(kind="rag"),
        answer=AnswerSettings(answers_from=0.0, nearest_from=0.0),
    )


def answer_now(folder: Path, kb: KnowledgeBase) -> FinishedRun:
    settings = settings_at(folder)
    models = {"reader": LoadedModel(ScriptedModel([]))}
    parts = with_knowledge(settings, models, kb, HashingEncoder(), None)  # type: ignore[arg-type]
    return asyncio.run(ask(settings, parse_question("What causes scurvy?"), parts=parts))


def test_before_any_vector_an_answer_is_found_by_words_and_says_so(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    done = answer_now(tmp_path, kb)
    assert done.solution is not None
    assert "lack of vitamin C" in done.solution.answer.text
    assert "searched by words alone: 1." in done.solution.answer.note
    assert done.folder is not None
    again = asyncio.run(replay(done.folder))
    assert again.solution == done.solution


def test_once_built_it_is_found_by_meaning_too_and_nothing_is_said(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    settings, encoder = settings_at(tmp_path), HashingEncoder()
    assert isinstance(make_retriever(settings, kb, encoder, ("book",)), LexicalRetriever)
    kb.build(encoder)
    assert isinstance(make_retriever(settings, kb, encoder, ("book",)), HybridRetriever)
    done = answer_now(tmp_path, kb)
    assert done.solution is not None
    assert "no vector" not in done.solution.answer.note


def test_what_was_added_since_the_build_is_found_by_words(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    kb.build(HashingEncoder())
    (tmp_path / "b.md").write_text("# Gout\n\nGout is treated with colchicine.\n")
    kb.add([tmp_path / "b.md"], source="book")
    assert kb.count_unindexed("hashing-64") == 1
    assert kb.has_vectors("hashing-64")
    search = make_retriever(settings_at(tmp_path), kb, HashingEncoder(), ("book",))
    hits = asyncio.run(search.search("colchicine in gout", k=3))
    assert {hit.passage.title for hit in hits} == {"Gout", "Scurvy"}
    assert hits[0].score == hits[1].score, "words count as much as meaning meanwhile"


def test_many_that_wait_leave_the_others_to_be_found_by_meaning(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    """Whoever may send files could switch off the search by meaning for everybody."""
    kb.build(HashingEncoder())
    for n in range(8):
        (tmp_path / f"sent-{n}.md").write_text(f"# Sent {n}\n\nNothing of interest, number {n}.\n")
    (tmp_path / "gout.md").write_text("# Gout\n\nGout is treated with colchicine.\n")
    kb.add([*tmp_path.glob("sent-*.md"), tmp_path / "gout.md"], source="own")
    assert 2 * kb.count_unindexed("hashing-64") > 9
    search = make_retriever(settings_at(tmp_path), kb, HashingEncoder(), ("book", "own"))
    hits = asyncio.run(search.search("colchicine or vitamin C", k=9))
    assert {hit.passage.title: hit.source for hit in hits} == {"Scurvy": "dense", "Gout": "lexical"}


def test_an_abstention_still_says_that_the_evidence_does_not() -> None:
    silent = Solution(Answer(language="zh"), Halt.NO_EVIDENCE, "nothing")
    note = note_unindexed(silent, 3).answer.note
    assert note.endswith("3 个段落还没有向量：对它们只按词语检索。")
    assert len(note) > len("3 个段落还没有向量：对它们只按词语检索。") + 2
    assert note_unindexed(silent, 0) is silent
