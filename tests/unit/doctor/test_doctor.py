"""What each model can do is found out by asking it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import StringIO

import pytest
from rich.console import Console

from osler.build.models import LoadedModel
from osler.cli.setup import doctor_page
from osler.doctor import Check, DoctorReport
from osler.doctor.abilities import Ability, probe_models
from osler.errors import ModelError, ModelUnreachable
from osler.llm.core.base import Attended, Completion, Message, Sampling
from osler.settings import ROLES, ModelSettings, Settings
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


async def test_attention_counts_where_it_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    models(monkeypatch, {"": LoadedModel(Looking(["yes"], name="m"))})
    (found,) = await probe_models(Settings())
    assert found.attends


def page(report: DoctorReport, **how: bool) -> str:
    out = StringIO()
    Console(file=out, width=160).print(doctor_page(report, **how))
    return out.getvalue()


def test_the_page_shows_what_is_wrong_and_a_column_for_each_model() -> None:
    down = Ability(("reader",), "openai", error="gone")
    found = (replace(FULL, roles=("planner", "judge", "summariser")), down)
    check = Check("model of reader", "fail", "gone", "start it")
    report = DoctorReport((Check("disk", "pass", "9 GB free"), check), found)
    shown = page(report, everything=True)
    for part in (
        "fail  model of reader: gone",
        "planner, judge, summariser",
        "exact",
        "8,192",
        "GBNF",
    ):
        assert part in shown
    wrong = "fail  model of reader: gone\n      start it\n"
    assert shown.startswith(wrong), "what is wrong comes first"
    assert page(report, short=True) == wrong
    first = page(report).removeprefix(wrong)
    assert first == "1 of 2 checks are right (osler doctor --all)\n"
