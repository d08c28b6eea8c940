"""TC-RAG's machine is what the settings say: metric, threshold, moves, notes."""

from __future__ import annotations

from typing import get_args

import pytest

from osler.build import Parts
from osler.build.composers import note_roles
from osler.build.models import LoadedModel
from osler.build.tc_rag import build_machine
from osler.errors import CapabilityMissing
from osler.llm.core.base import LanguageModel
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.stack import Metric, make_monitor
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings, TcRagSettings
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly

SERVER = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}


def settings(writes: object = "auto", **strategy: object) -> Settings:
    return Settings.model_validate(
        {"model": {**SERVER, "writes": writes}, "strategy": {"kind": "tc-rag", **strategy}}
    )


def parts_of(model: LanguageModel | None = None) -> Parts:
    ready = LoadedModel(model or ScriptedModel([], name="m"))
    return Parts(
        {"planner": ready, "summariser": ready, "reader": ready},
        lambda *_: ScriptedRetriever({}),
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
    )


def built(given: Settings, model: LanguageModel | None = None) -> TuringMachine:
    assert isinstance(given.strategy, TcRagSettings)
    return build_machine(given, given.strategy, parts_of(model))


@pytest.mark.parametrize("metric", get_args(Metric))
def test_each_metric_has_its_monitor(metric: Metric) -> None:
    assert make_monitor(metric, ScriptedModel([])).metric == metric


def test_perplexity_is_refused_where_the_model_scores_no_given_text() -> None:
    with pytest.raises(CapabilityMissing, match="blind has none"):
        make_monitor("cppl", TextOnly(ScriptedModel([], name="blind")))


@pytest.mark.parametrize(("metric", "top"), [("cppl", 0), ("off", 0), ("uct", 1)])
def test_tokens_are_asked_for_where_the_metric_reads_them(metric: str, top: int) -> None:
    assert built(settings(metric=metric, sigma=1.0)).sampling.top == top


def test_a_composed_answer_that_cannot_be_valued_is_refused_before_the_run() -> None:
    """Each Conclusion would be unsure, and the run would only spend its steps."""
    blind = TextOnly(ScriptedModel([], name="blind"))
    with pytest.raises(CapabilityMissing, match="blind scores no given text"):
        built(settings(writes="no", metric="uct"), blind)
    assert built(settings(writes="yes", metric="uct"), blind).monitor.metric == "uct"


def test_what_is_answered_from_and_how_tools_are_told_is_a_setting() -> None:
    default = built(settings())
    assert (default.exhausted, default.template) == ("draft", "line")
    given = built(settings(exhausted="top", dialect="released"))
    assert (given.exhausted, given.template) == ("top", "json")


@pytest.mark.parametrize(("moves", "chars"), [("any", 600), ("guided", 160)])
def test_the_text_of_a_guided_action_is_short(moves: str, chars: int) -> None:
    assert built(settings(moves=moves)).longest == chars


def test_roles_whose_model_may_not_word_medicine_write_notes() -> None:
    assert note_roles(settings(writes="no")) == ("planner", "summariser", "reader")
    assert note_roles(settings(writes="yes")) == ()
    packaged = Settings.model_validate({"model": {"kind": "packaged"}, "strategy": {"kind": "rag"}})
    assert note_roles(packaged) == ("reader",)
