"""What each model can do is found out by asking it; what that means for each strategy follows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from osler.build.models import LoadedModel
from osler.cli.setup import doctor_page
from osler.doctor import DoctorReport
from osler.doctor.abilities import Ability, probe_models
from osler.doctor.checks import Check
from osler.doctor.needs import StrategyVerdict, judge_strategies
from osler.errors import ModelError, ModelUnreachable
from osler.llm.core.base import Attended, Completion, Message, Sampling
from osler.settings import ROLES, STRATEGIES, ModelSettings, Settings
from osler_lab.testing.scripted import ScriptedModel, TextOnly, tokens_of

SERVER = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "big"}
FULL = Ability(
    ROLES,
    "openai",
    "big@host",
    completes=True,
    logprobs="exact",
    likeliest=5,
    scores=True,
    attends=True,
    constrains=True,
    formats=("GBNF",),
    writes=True,
    context=8192,
    seconds=0.5,
)


@dataclass
class Obedient(ScriptedModel):
    """Keeps to a grammar of one word."""

    context: int = 2048

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if sampling.grammar:
            return Completion("osler")
        return await super().complete(messages, sampling)


@dataclass
class Looking(Obedient):
    """Shows an attention."""

    async def attend(self, context: Sequence[Message] | str, text: str) -> Attended:
        tokens = tokens_of(text, 0.5)
        return Attended(tokens, (0.0,) * len(tokens), tuple((0.5,) * n for n in range(len(tokens))))


class Refusing(ScriptedModel):
    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if sampling.grammar:
            raise ModelError("no grammars here")
        return await super().complete(messages, sampling)


def models(monkeypatch: pytest.MonkeyPatch, made: dict[str, LoadedModel]) -> None:
    async def language_model(chosen: ModelSettings, section: str) -> LoadedModel:
        if chosen.name not in made:
            raise ModelUnreachable(f"{chosen.name}: no connection", fix="start it")
        return made[chosen.name]

    monkeypatch.setattr("osler.doctor.abilities.load_model", language_model)


async def test_a_model_is_asked_for_what_it_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    models(monkeypatch, {"": LoadedModel(Obedient(["yes"], name="m"))})
    (found,) = await probe_models(Settings())
    assert found == Ability(
        ROLES,
        "packaged",
        "m",
        completes=True,
        logprobs="exact",
        scores=True,
        constrains=True,
        formats=("GBNF",),
        context=2048,
        seconds=found.seconds,
    )


@pytest.mark.parametrize(
    "ready",
    [
        LoadedModel(TextOnly(ScriptedModel(["yes"])), constrains=False, formats=()),
        LoadedModel(TextOnly(Refusing(["yes"]))),
        LoadedModel(TextOnly(ScriptedModel(["yes", "free text"]))),
    ],
)
async def test_what_it_only_says_it_can_do_does_not_count(
    monkeypatch: pytest.MonkeyPatch, ready: LoadedModel
) -> None:
    models(monkeypatch, {"": ready})
    (found,) = await probe_models(Settings())
    assert (found.logprobs, found.scores, found.constrains) == ("none", False, False)


async def test_a_server_that_is_down_is_one_line_and_the_others_are_still_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models(monkeypatch, {"big": LoadedModel(Obedient(["yes"], name="big"))})
    chosen = Settings.model_validate({"model": SERVER, "roles": {"reader": {"name": "gone"}}})
    first, second = await probe_models(chosen)
    assert (first.roles, first.completes) == (("planner", "judge", "summariser"), True)
    assert (second.roles, second.error, second.fix) == (
        ("reader",),
        "gone: no connection",
        "start it",
    )
    assert {v.status for v in judge_strategies((first, second))} == {"refused"}
    assert {v.why for v in judge_strategies((first, second))} == {"the reader cannot be asked"}


def statuses(*found: Ability) -> dict[str, str]:
    return {verdict.strategy: verdict.status for verdict in judge_strategies(found)}


def test_a_model_that_can_do_all_runs_every_strategy_in_full() -> None:
    found = statuses(FULL)
    # Whether a model is a checkpoint of Self-RAG's is seen when it is asked.
    assert found.pop("self-rag") == "degraded"
    assert set(found.values()) == {"full"}


def test_every_strategy_that_can_be_set_has_a_verdict_and_no_other() -> None:
    told = [verdict.strategy.partition(",")[0] for verdict in judge_strategies([FULL])]
    assert set(told) == set(STRATEGIES)
    assert all(verdict.needs for verdict in judge_strategies([FULL]))


def test_without_a_concept_graph_what_walks_it_is_refused_and_what_may_use_it_degraded() -> None:
    found = {verdict.strategy: verdict for verdict in judge_strategies([FULL], graph=False)}
    assert (found["hykge"].status, found["kag-thinker"].status) == ("refused", "degraded")
    assert "no concept graph" in found["hykge"].why
    assert {
        v.status
        for name, v in found.items()
        if name not in {"hykge", "kag-thinker", "unified", "auto", "self-rag"}
    } == {"full"}


async def test_attention_counts_where_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    models(monkeypatch, {"": LoadedModel(Looking(["yes"], name="m"))})
    (found,) = await probe_models(Settings())
    assert found.attends


@pytest.mark.parametrize(
    ("lacks", "wanted"),
    [
        ({"scores": False}, {"rag": "full", "tc-rag, cppl": "refused", "tc-rag, uct": "full"}),
        ({"scores": False}, {"self-rag": "refused", "self-rag-prompted": "full"}),
        ({"attends": False}, {"dragin": "refused", "dragin-entropy": "full", "rag": "full"}),
        (
            {"logprobs": "none", "likeliest": 0},
            {"flare": "degraded", "dragin-entropy": "degraded", "kag-thinker": "degraded"},
        ),
        (
            {"writes": False},
            {"omni-rag": "degraded", "kag-thinker": "degraded", "r1-gen": "degraded"},
        ),
        ({"constrains": False}, {"rag": "full", "tc-rag, cppl": "degraded"}),
        (
            {"scores": False, "logprobs": "none"},
            {"tc-rag, uct": "refused", "tc-rag, off": "full"},
        ),
        ({"writes": False}, {"direct": "degraded", "rag": "degraded", "tc-rag, cppl": "degraded"}),
        (
            {"writes": False, "scores": False},
            {"direct": "refused", "rag": "degraded", "tc-rag, uct": "refused"},
        ),
    ],
)
def test_what_a_model_lacks_degrades_or_refuses_what_needs_it(
    lacks: dict[str, object], wanted: dict[str, str]
) -> None:
    found = statuses(replace(FULL, **lacks))  # type: ignore[arg-type]
    assert {name: found[name] for name in wanted} == wanted
    reasons = {v.strategy: v.why for v in judge_strategies([replace(FULL, **lacks)])}  # type: ignore[arg-type]
    assert all(reasons[name] for name, status in wanted.items() if status != "full")


@pytest.mark.parametrize(
    ("lacks", "status", "why"),
    [
        ({}, "full", ""),
        ({"scores": False}, "full", ""),
        ({"scores": False, "logprobs": "none"}, "degraded", "no state value: auto is off"),
        ({"scores": False, "writes": False}, "degraded", "no state value: auto is off"),
    ],
)
def test_auto_is_refused_by_no_model_and_says_where_it_is_off(
    lacks: dict[str, Any], status: str, why: str
) -> None:
    told = {one.strategy: one for one in judge_strategies([replace(FULL, **lacks)])}
    assert told["tc-rag, auto"].status == status
    assert why in told["tc-rag, auto"].why
    # Its state value is auto too, so no server without scores is refused.
    assert told["unified"].status != "refused"


def test_a_letter_needs_no_scores() -> None:
    reader = replace(FULL, writes=False, scores=False)
    texts, letters = alone(reader), alone(reader, options="written")
    assert (texts.status, letters.status) == ("refused", "degraded")
    free = alone(replace(reader, constrains=False), options="written")
    assert "asked for again" in free.why


def alone(reader: Ability, **options: Any) -> StrategyVerdict:
    """What would become of the model alone."""
    return next(told for told in judge_strategies([reader], **options) if told.strategy == "direct")


def page(report: DoctorReport, **how: bool) -> str:
    out = StringIO()
    Console(file=out, width=160).print(doctor_page(report, **how))
    return out.getvalue()


def test_the_page_shows_a_row_for_each_model_and_for_each_strategy() -> None:
    down = Ability(("reader",), "openai", error="gone")
    found = (replace(FULL, roles=("planner", "judge", "summariser")), down)
    check = Check("model of reader", "fail", "gone", "start it")
    report = DoctorReport(
        (Check("disk", "pass", "9 GB free"), check), found, judge_strategies(found)
    )
    shown = page(report, everything=True)
    for part in (
        "fail  model of reader: gone",
        "planner, judge, summariser",
        "exact",
        "8,192",
        "GBNF",
        "tc-rag, cppl",
        "refused",
        "the reader cannot be asked",
    ):
        assert part in shown
    wrong = "fail  model of reader: gone\n      start it\n"
    assert shown.startswith(wrong), "what is wrong comes first"
    assert page(report, short=True) == wrong
    first = page(report).removeprefix(wrong)
    assert first.startswith("1 of 2 checks are right; strategies: ")
    assert first.count("\n") == 1
    assert "cannot run with these models (osler doctor --all)" in first
