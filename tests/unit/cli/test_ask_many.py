"""`osler ask` without a strategy takes the cheap path, and asks many questions of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.build.resource_cache import ResourceCache
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import AutoSettings, Role, Settings
from osler.types import Passage
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

QUESTION = "Which drug is given first in anaphylaxis?"
OTHER = "What causes zorblax?"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, passage: Passage) -> list[Settings]:
    """The settings each time that models and index are opened; these two are scripted."""
    seen: list[Settings] = []

    def make_parts(settings: Settings) -> Parts:
        seen.append(settings)
        index = ScriptedRetriever({"anaphylaxis": [passage]})
        reader = LoadedModel(ScriptedModel([]))
        near = OverlapRelevance()
        roles: tuple[Role, ...] = ("planner", "summariser", "reader")
        return Parts(
            dict.fromkeys(roles, reader), lambda *_: index, near, near, ("guideline",), "5f2a"
        )

    async def live(settings: Settings) -> Parts:
        return make_parts(settings)

    async def cached(self: ResourceCache, settings: Settings) -> Parts:
        return make_parts(settings)

    monkeypatch.setattr("osler.runs.answering.live_parts", live)
    monkeypatch.setattr(ResourceCache, "parts_for", cached)
    monkeypatch.setenv("OSLER__ANSWER__ANSWERS_FROM", "0.2")
    return seen


def test_without_a_strategy_it_is_auto(osler: Any, opened: list[Settings]) -> None:
    assert osler("ask", QUESTION).exit_code == 0
    assert osler("ask", QUESTION, "--k", "3").exit_code == 0
    assert [one.strategy for one in opened] == [AutoSettings(), AutoSettings(k=3)]


def test_a_strategy_of_the_settings_stands(
    osler: Any, folder: Path, opened: list[Settings]
) -> None:
    (folder / "osler.toml").write_text('[strategy]\nkind = "tc-rag"\n', encoding="utf-8")
    osler("ask", QUESTION, "--plan-only")
    assert [one.strategy.kind for one in opened] == ["tc-rag"]


def test_questions_of_a_file_share_what_is_loaded(
    osler: Any, folder: Path, opened: list[Settings]
) -> None:
    (folder / "q.txt").write_text(f"{QUESTION}\n\n{OTHER}\n", encoding="utf-8")
    result = osler("ask", "--file", "q.txt", "--json")
    assert result.exit_code == 0
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert [one["question"] for one in documents] == [QUESTION, OTHER]
    assert [one["grounding"] for one in documents] == ["grounded", "abstained"]
    assert [one["decided"] for one in documents] == ["reader", "reader"]
    assert all("sureness" in one["answer"] for one in documents)
    assert len(opened) == 1


def test_json_lines_may_have_options(osler: Any, folder: Path, opened: list[Settings]) -> None:
    line = {"question": QUESTION, "id": "x"}
    for name in ("q.jsonl", "q.JSONL"):
        (folder / name).write_text(json.dumps(line) + "\n", encoding="utf-8")
        assert osler("ask", "--file", name).stdout.startswith(f"? {QUESTION}\n")


@pytest.mark.parametrize(
    ("content", "more", "said"),
    [
        ("", (), "has no question"),
        (None, (), "cannot be read"),
        (QUESTION, ("and one more?",), "--file stands alone"),
        (QUESTION, ("--plan-only",), "--file stands alone"),
        (QUESTION, ("--film",), "--file stands alone"),
        (QUESTION, ("--as", "and one more?"), "it goes with --thread"),
    ],
)
def test_a_file_that_cannot_be_asked_is_refused_before_anything_is_opened(
    osler: Any,
    folder: Path,
    opened: list[Settings],
    content: str | None,
    more: tuple[str, ...],
    said: str,
) -> None:
    if content is not None:
        (folder / "q.txt").write_text(content, encoding="utf-8")
    result = osler("ask", *more, "--file", "q.txt")
    assert (result.exit_code, said in result.stderr) == (2, True)
    assert opened == []


def test_where_nothing_is_answered_the_exit_code_says_so(
    osler: Any, folder: Path, opened: list[Settings]
) -> None:
    (folder / "q.txt").write_text(OTHER, encoding="utf-8")
    assert osler("ask", "--file", "q.txt").exit_code == 1
