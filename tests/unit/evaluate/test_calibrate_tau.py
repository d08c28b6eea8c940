"""`osler calibrate` for KAG-Thinker: tau is fitted, written, and used for that model alone."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.build.thinking import boundary_tau
from osler.errors import BadConfig, BadQuestion
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import KagThinkerSettings, Settings, load
from osler.trace import Noted, Run
from osler.types import Question
from osler_lab.studies import calibrate
from osler_lab.studies.calibrate import (
    CalibrationAttempt,
    GoldAnswer,
    TauFit,
    fit_tau,
    measure_tau,
    write_calibration,
)
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

TODAY = date(2026, 11, 21)
FITTED = TauFit(0.62, "reader", 0.9, 6, "2026-11-21", "mine.jsonl")
GRADED = [GoldAnswer(Question(f"q{n}", f"Which drug treats {n}?"), f"drug {n}") for n in range(6)]
SERVER = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}


def settings(**strategy: object) -> Settings:
    chosen = {"kind": "kag-thinker", **strategy}
    return Settings.model_validate({"model": SERVER, "strategy": chosen})


def parts(script: ScriptedModel) -> Parts:
    ready = LoadedModel(script)
    roles: Any = {"planner": ready, "reader": ready}
    found = ScriptedRetriever({})
    return Parts(roles, lambda *_: found, OverlapRelevance(), OverlapRelevance(), ("book",))


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """Right on the first five, wrong on the last."""
    said = [*(f"drug {n}" for n in range(5)), "tea"]
    script = ScriptedModel([rf"<answer>\boxed{{{text}}}</answer>" for text in said], name="reader")

    async def live(settings: Settings) -> Parts:
        return parts(script)

    monkeypatch.setattr("osler_lab.studies.calibrate.live_parts", live)
    return script


async def test_each_question_is_answered_out_of_the_model_s_own_head(live: ScriptedModel) -> None:
    model, points = await measure_tau(settings(), GRADED)
    live.finish()
    assert model == "reader"
    assert [point.right for point in points] == [True] * 5 + [False]
    assert all("step by step" in turn[-1].content for turn in live.seen)
    found = fit_tau(model, points, share=0.8, questions="mine.jsonl", today=TODAY)
    assert found == TauFit(0.5, "reader", 0.8, 6, "2026-11-21", "mine.jsonl")


@pytest.mark.parametrize("strategy", [{"boundary": "none"}, {"boundary": "self-check"}])
async def test_a_boundary_that_weighs_nothing_has_no_tau(strategy: dict[str, object]) -> None:
    with pytest.raises(BadConfig, match="weighs likelihood"):
        await measure_tau(settings(**strategy), GRADED)


def test_a_model_that_refuses_everything_is_not_fitted() -> None:
    refused = [CalibrationAttempt(each.question, "", None, False) for each in GRADED]
    with pytest.raises(BadConfig, match=r"answered 0 of 6 questions"):
        fit_tau("m", refused, share=0.9, questions="x", today=TODAY)


def test_tau_stands_beside_sigma_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "osler.toml"
    path.write_text("[calibration]\nsigma = 3.5\nmodel = 'p'\n", encoding="utf-8")
    write_calibration(FITTED, path)
    now = load({}, cwd=tmp_path, env={}, file=path).settings.calibration
    assert (now.sigma, now.model) == (3.5, "p")
    assert (now.tau, now.tau_model) == (0.62, "reader")
    assert now.tau_basis == "calibrated: 90% right of 6 answers (mine.jsonl), 2026-11-21"


def test_a_hand_set_tau_is_refused_and_force_takes_it_out(tmp_path: Path) -> None:
    path = tmp_path / "osler.toml"
    path.write_text('[strategy]\nkind = "kag-thinker"\ntau = 0.4\n', encoding="utf-8")
    found = load({}, cwd=tmp_path, env={})
    with pytest.raises(BadConfig, match=r"osler\.toml:3: strategy\.tau = 0\.4 is set by hand"):
        calibrate.refuse_hand_set(found)
    write_calibration(FITTED, path, force=True)
    assert "#tau = 0.4" in path.read_text("utf-8")


def fitted(model: str) -> Settings:
    data = {
        "model": SERVER,
        "strategy": {"kind": "kag-thinker"},
        "calibration": {"tau": 0.62, "tau_model": model, "tau_basis": "fitted today"},
    }
    return Settings.model_validate(data)


def test_a_calibrated_tau_is_used_for_its_model_alone() -> None:
    chosen = KagThinkerSettings()
    assert boundary_tau(fitted("reader"), chosen, "reader") == (
        0.62,
        "tau 0.62: fitted today",
    )
    value, note = boundary_tau(fitted("other"), chosen, "reader")
    assert value == 0.5
    assert "is for other, not for reader: it is not used" in note
    assert boundary_tau(fitted("reader"), KagThinkerSettings(tau=0.3), "reader") == (0.3, "")
    assert boundary_tau(settings(), chosen, "reader") == (0.5, "")


async def test_a_run_under_a_calibrated_tau_says_so() -> None:
    script = ScriptedModel(["nothing"] * 30, name="reader")
    run = Run()
    await build_solver(fitted("reader"), parts(script)).solve(Question("q", "Why?"), run)
    assert run.events[0] == Noted("tau 0.62: fitted today")


def test_a_graded_file_needs_answers_and_reads_letters_as_options(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"question": "Which?", "options": {"A": "iron", "B": "tea"}, "answer": "B"},
        {"question": "How long?", "answer": "36 hours"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [each.answer for each in calibrate.read_graded(path)] == ["tea", "36 hours"]
    path.write_text('{"question": "Which?"}', encoding="utf-8")
    with pytest.raises(BadQuestion, match=r":1: no answer"):
        calibrate.read_graded(path)
    assert len(calibrate.packaged_graded()) == 24
    assert all(each.answer for each in calibrate.packaged_graded())


def test_the_command_fits_tau_where_the_strategy_is_kag_thinker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from osler.cli import app

    async def measured(settings: Settings, graded: Any, *, progress: Any) -> Any:
        return "m", [
            CalibrationAttempt(each.question, "x", 0.9 - n / 10, n < 4)
            for n, each in enumerate(GRADED)
        ]

    monkeypatch.setattr(calibrate, "measure_tau", measured)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["--set", "strategy.kind=kag-thinker", "calibrate"])
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "tau 0.6 model m share 0.9" in said
    text = (tmp_path / "osler.toml").read_text("utf-8")
    assert "tau = 0.6\n" in text
    assert 'tau_model = "m"' in text
