"""Saved questions, asked again when new evidence has come."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from served import (
    FixedModel,
    fill_knowledge_base,
    loaded_shelf,
    serving_settings,
)

from osler.answer.follow_up import Standalone
from osler.errors import BadRun
from osler.kb.base import KnowledgeBase
from osler.questions import parse_question
from osler.runs.answering import ask
from osler.runs.threads import Thread, ThreadStore
from osler.settings import Settings
from osler.types import Answer, Evidence, Hit, Passage, Statement
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.ops.asked_again import AnswerChange, ask_again, compare_answers

QUESTION = "What is the first treatment of gout?"
OLD = "The first treatment of gout is colchicine."
NEW = "The first treatment of gout is naproxen."


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    fill_knowledge_base(tmp_path, {"book": f"# Gout\n\n{OLD}\n"})
    return serving_settings(tmp_path, model={"writes": "no"})


def _again(settings: Settings, *threads: Thread) -> list[AnswerChange]:
    async def collect() -> list[AnswerChange]:
        with closing(loaded_shelf(settings, FixedModel())) as cache:
            return [change async for change in ask_again(settings, threads, cache)]

    return asyncio.run(collect())


def _save(settings: Settings) -> ThreadStore:
    async def solve() -> str:
        with closing(loaded_shelf(settings, FixedModel())) as cache:
            parts = await cache.parts_for(settings)
            return (await ask(settings, parse_question(QUESTION), parts=parts)).run

    store = ThreadStore(settings.home)
    thread = store.create_thread("gout")
    store.add_turn(thread, asyncio.run(solve()), QUESTION, Standalone(QUESTION))
    return store


def test_a_question_is_asked_again_only_when_the_knowledge_base_changed(
    settings: Settings,
) -> None:
    store = _save(settings)
    assert _again(settings, store.read_thread("gout")) == []
    with KnowledgeBase.open(settings.kb.path or settings.home / "kb") as kb:
        (passage,) = next(kb.read_documents("book"))
        kb.correct(passage.id, NEW, HashingEncoder())
    (change,) = _again(settings, store.read_thread("gout"))
    assert change.new_statements == (NEW,)
    assert change.gone_statements == (OLD,)
    assert change.new_passages == change.gone_passages == (passage.id,)
    assert f"  + {NEW}" in list(change.lines())
    turns = store.read_thread("gout").turns
    assert [turn.run for turn in turns] == [change.before, change.after]
    assert {turn.question for turn in turns} == {QUESTION}
    assert _again(settings, store.read_thread("gout")) == []


def test_an_empty_thread_is_passed_over_and_a_lost_run_is_said(settings: Settings) -> None:
    store = ThreadStore(settings.home)
    empty = store.create_thread("empty")
    assert _again(settings, empty) == []
    store.add_turn(empty, "20260102-030405-0123456789ab", QUESTION, Standalone(QUESTION))
    with pytest.raises(BadRun, match="no run"):
        _again(settings, store.read_thread("empty"))


def test_answers_that_say_the_same_have_not_changed() -> None:
    passage = Passage("book:gout#0", OLD, "book", "Gout")
    evidence = Evidence(Hit(passage, 1.0, 1, "q", "x"), 0, len(OLD))
    answer = Answer((Statement(OLD, (1,)),), (evidence,))
    same = compare_answers(QUESTION, ("a", answer), ("b", answer))
    assert not same.is_change
    assert "as it was" in list(same.lines())[1]
    none = compare_answers(
        QUESTION, ("a", answer), ("b", replace(answer, statements=(), evidence=()))
    )
    assert none.gone_passages == (passage.id,)
    assert none.grounding[0] != none.grounding[1]
    assert any("now" in line for line in none.lines())
