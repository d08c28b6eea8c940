"""Follow-up questions at the doors: who words them, by the settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from osler.answer.follow_up import Standalone
from osler.app.config import ModelSettings, Settings
from osler.app.follow_ups import make_standalone, standalone_of
from osler.app.wiring.models import LoadedModel
from osler.app.wiring.resource_cache import ResourceCache
from osler.testing.scripted import ScriptedModel

ASKED = ["How is cystitis treated?"]
BY_RULE = Standalone("How is cystitis treated: in pregnancy?", "rule")
WORDED = "How is cystitis treated in pregnancy?"
SERVED: dict[str, Any] = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}


def rewritten(
    home: Path, how: str, model: dict[str, Any], question: str, replies: list[str]
) -> tuple[Standalone, ScriptedModel]:
    settings = Settings.model_validate(
        {"home": home, "model": model, "retrieve": {"follow_ups": how}}
    )
    chosen = ModelSettings.model_validate(model).model_copy(update={"writes": "auto"})
    scripted = ScriptedModel(replies)
    cache = ResourceCache(settings, ready={chosen: LoadedModel(scripted)})
    return asyncio.run(make_standalone(settings, question, ASKED, cache)), scripted


@pytest.mark.parametrize(
    ("how", "model", "made"),
    [
        ("rule", SERVED, BY_RULE),
        ("model", SERVED, Standalone(WORDED, "model")),
        ("model", {**SERVED, "writes": "no"}, BY_RULE),
        ("model", {"kind": "packaged"}, BY_RULE),
    ],
)
def test_a_model_words_follow_ups_where_it_is_asked_for_and_may(
    tmp_path: Path, how: str, model: dict[str, Any], made: Standalone
) -> None:
    alone, scripted = rewritten(tmp_path, how, model, "And in pregnancy?", [WORDED])
    assert alone == made
    assert len(scripted.seen) == (made.by == "model")


def test_whoever_is_in_danger_waits_for_no_wording(tmp_path: Path) -> None:
    alone, scripted = rewritten(tmp_path, "model", SERVED, "And if I want to kill myself?", [])
    assert alone.by == "rule"
    assert scripted.seen == []


def test_a_server_that_is_down_leaves_the_rule(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"home": tmp_path, "model": SERVED, "retrieve": {"follow_ups": "model"}}
    )
    made = asyncio.run(
        make_standalone(settings, "And in pregnancy?", ASKED, ResourceCache(settings))
    )
    assert made == BY_RULE


def test_of_a_conversation_each_question_rests_on_those_before_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    questions = ["How is lithium monitored?", "When is it stopped?", "And in pregnancy?"]
    made = asyncio.run(standalone_of(settings, questions, ResourceCache(settings)))
    assert made == Standalone("When is lithium stopped: in pregnancy?", "rule")
