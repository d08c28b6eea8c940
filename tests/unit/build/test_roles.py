"""Each role asks its own model, equal ones share one, and nothing else is ever asked."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from osler.answer.extractive import ExtractiveComposer
from osler.answer.written import Rewriter, WrittenComposer
from osler.build import Parts
from osler.build import models as wired
from osler.build.composers import answer_wording
from osler.build.live import live_parts, record_parts, replay_parts
from osler.build.models import LoadedModel, load_roles
from osler.build.strategies import build_solver
from osler.build.tc_rag import Threshold, halting_threshold
from osler.errors import BadRun, CapabilityMissing, ModelUnreachable
from osler.llm.core.base import LanguageModel
from osler.llm.recording.tape import Tape
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.stack import FrameKind
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import ModelSettings, Settings, TcRagSettings
from osler.trace import Asked, Budget, Noted, Pushed, Run
from osler.types import Halt, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever, TextOnly

QUESTION = Question("q", "What does oral iron treat?")
PASSAGE = Passage("book:iron#0", "Oral iron treats iron deficiency anaemia.", "book", "Iron")
SERVER = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "big"}


def settings(**sections: object) -> Settings:
    given = {"strategy": {"kind": "tc-rag", "metric": "off", "max_loop": 4}, **sections}
    return Settings.model_validate(given)


def parts(**models: LanguageModel) -> Parts:
    return Parts(
        {role: LoadedModel(model) for role, model in models.items()},  # type: ignore[misc]
        lambda *_: ScriptedRetriever({"": [PASSAGE]}),
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
    )


def scripted(name: str, *replies: str) -> ScriptedModel:
    return ScriptedModel(list(replies), name=name)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ModelSettings]:
    """The models that were really made."""
    made: list[ModelSettings] = []

    async def language_model(chosen: ModelSettings, section: str) -> LoadedModel:
        made.append(chosen)
        return LoadedModel(scripted(f"model {len(made)}"))

    monkeypatch.setattr(wired, "load_model", language_model)
    return made


async def test_roles_with_equal_settings_share_one_loaded_model(asked: list[ModelSettings]) -> None:
    chosen = settings(model=SERVER, roles={"judge": {"name": "strict"}, "reader": {"writes": "no"}})
    cast = await load_roles(chosen, ("planner", "reader", "summariser", "judge"))
    assert [model.name for model in asked] == ["big", "strict"]
    assert cast["planner"] is cast["reader"] is cast["summariser"]
    assert cast["judge"].model.name == "model 2"


async def test_a_model_that_no_role_of_the_strategy_has_is_never_asked(
    asked: list[ModelSettings],
) -> None:
    chosen = settings(strategy={"kind": "direct"}, roles={"judge": SERVER, "planner": SERVER})
    await live_parts(chosen)
    assert [model.kind for model in asked] == ["packaged"]


async def test_a_server_that_is_down_is_an_error_never_another_model() -> None:
    chosen = settings(roles={"reader": SERVER}, strategy={"kind": "direct"})
    with pytest.raises(ModelUnreachable, match=r"127\.0\.0\.1:9"):
        await live_parts(chosen)


async def test_the_planner_acts_the_summariser_sums_up_and_the_reader_answers() -> None:
    planner = scripted(
        "planner",
        "Tool_Use: DOC_RAG\nTool_Input: iron",
        "Summary: mine",
        "Conclusion: Iron treats everything.",
    )
    summariser = scripted("summariser", "Iron treats iron deficiency anaemia. [1]\nEnd.")
    reader = scripted("reader", "Oral iron treats iron deficiency anaemia. [1]")
    chosen = settings(model=SERVER, roles={"reader": {"name": "r"}, "summariser": {"name": "s"}})
    made = parts(planner=planner, summariser=summariser, reader=reader)
    run = Run()
    solution = await build_solver(chosen, made).solve(QUESTION, run)
    for model in (planner, summariser, reader):
        model.finish()
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.text == "Oral iron treats iron deficiency anaemia. [1]"
    summed = [e.text for e in run.events if isinstance(e, Pushed) and e.kind == FrameKind.SUMMARY]
    assert summed == ["Iron treats iron deficiency anaemia. [1] End."]
    roles = [e.role for e in run.events if isinstance(e, Asked)]
    assert roles == ["planner", "planner", "summariser", "planner", "reader"]
    assert "Iron treats everything." in reader.seen[0][-1].content


async def test_one_model_in_every_role_writes_its_own_summary_and_conclusion() -> None:
    """As in the paper: no call more than the actions."""
    only = scripted("one", "Tool_Use: DOC_RAG", "Summary: short [1]", "Conclusion: It does. [1]")
    made = parts(planner=only, summariser=only, reader=only)
    run = Run()
    await build_solver(settings(model=SERVER), made).solve(QUESTION, run)
    only.finish()
    assert {e.role for e in run.events if isinstance(e, Asked)} == {"planner"}


async def test_a_reader_that_the_budget_has_no_call_for_leaves_the_draft() -> None:
    planner = scripted("planner", "Tool_Use: DOC_RAG", "Conclusion: Iron treats anaemia.")
    chosen = settings(model=SERVER, roles={"reader": {"name": "r"}})
    made = parts(planner=planner, summariser=planner, reader=scripted("reader"))
    run = Run(budget=Budget(calls=2))
    solution = await build_solver(chosen, made).solve(QUESTION, run)
    assert solution.answer.text.startswith("Iron treats anaemia.")
    assert run.spent == "calls 2 of 2"


@pytest.mark.parametrize(
    ("roles", "kind"),
    [
        ({}, WrittenComposer),
        ({"reader": {"name": "r"}}, Rewriter),
        ({"reader": {"kind": "packaged"}}, ExtractiveComposer),
        ({"planner": {"kind": "packaged"}}, Rewriter),
    ],
)
def test_answer_wording_follows_from_the_reader(roles: dict[str, object], kind: type) -> None:
    chosen = settings(model=SERVER, roles=roles)
    planner = scripted("p")
    reader = planner if not roles else scripted("r")
    made = parts(planner=planner, summariser=planner, reader=reader)
    assert isinstance(answer_wording(chosen, made), kind)


def test_the_monitor_is_the_planner_s() -> None:
    blind = TextOnly(scripted("blind"))
    chosen = settings(model=SERVER, strategy={"kind": "tc-rag", "metric": "cppl"})
    with pytest.raises(CapabilityMissing, match="blind"):
        build_solver(chosen, parts(planner=blind, summariser=blind, reader=scripted("r")))


def test_recorded_parts_note_what_each_model_could_do() -> None:
    tape = Tape()
    blind = TextOnly(scripted("blind"))
    made = record_parts(parts(planner=blind, reader=scripted("r")), tape)
    assert {name: able.scores for name, able in tape.models.items()} == {"blind": False, "r": True}
    again = replay_parts(tape, made.names, ("book",), "")
    assert again.names == {"planner": "blind", "reader": "r"}
    with pytest.raises(BadRun, match="no model 'other', but blind, r"):
        replay_parts(tape, {"reader": "other"}, (), "")


FITTED = {"sigma": 3.5, "metric": "off", "model": "planner", "basis": "fitted today"}


def threshold(chosen: Settings, planner: str) -> Threshold:
    assert isinstance(chosen.strategy, TcRagSettings)
    return halting_threshold(chosen, chosen.strategy, planner)


def test_a_calibrated_sigma_is_for_its_own_model_and_metric_alone() -> None:
    fitted = {**FITTED, "metric": "cppl"}
    chosen = settings(model=SERVER, strategy={"kind": "tc-rag"}, calibration=fitted)
    used = threshold(chosen, "planner")
    assert (used.sigma, used.basis) == (3.5, "fitted today")
    other = threshold(chosen, "another")
    assert (other.sigma, other.basis) == (10.0, "")
    assert other.note == (
        "the calibrated sigma 3.5 is for cppl of planner, not for cppl of another: it is not used"
    )
    by_uct = settings(
        model=SERVER, strategy={"kind": "tc-rag", "metric": "uct"}, calibration=fitted
    )
    assert threshold(by_uct, "planner").sigma == 20.0
    by_hand = settings(model=SERVER, strategy={"kind": "tc-rag", "sigma": 7.0}, calibration=fitted)
    assert threshold(by_hand, "planner") == Threshold(7.0)


def steered(chosen: Settings, replies: Sequence[str]) -> tuple[TuringMachine, Run]:
    planner = scripted("planner", *replies)
    solver = build_solver(chosen, parts(planner=planner, summariser=planner, reader=planner))
    assert isinstance(solver, TuringMachine)
    return solver, Run()


async def test_an_answer_under_a_calibrated_sigma_says_so() -> None:
    fitted = {**FITTED, "metric": "cppl"}
    chosen = settings(model=SERVER, strategy={"kind": "tc-rag"}, calibration=fitted)
    solver, run = steered(chosen, ["Tool_Use: DOC_RAG", "Conclusion: Anaemia. [1]"])
    solution = await solver.solve(QUESTION, run)
    assert solution.why == "cppl 2 < sigma 3.5 (fitted today)"


async def test_a_calibration_for_another_model_is_told_in_the_trace() -> None:
    fitted = {**FITTED, "metric": "cppl", "model": "older"}
    chosen = settings(model=SERVER, strategy={"kind": "tc-rag"}, calibration=fitted)
    solver, run = steered(chosen, ["Conclusion: Anaemia."])
    await solver.solve(QUESTION, run)
    assert any(isinstance(e, Noted) and "for cppl of older" in e.text for e in run.events)


async def test_a_key_is_read_from_the_role_s_own_file(tmp_path: Path) -> None:
    absent = tmp_path / "key"
    chosen = settings(roles={"reader": {**SERVER, "key_file": absent}}, strategy={"kind": "direct"})
    with pytest.raises(Exception, match=r"key file .* cannot be read"):
        await live_parts(chosen)
