"""`osler calibrate`: what it shows, what it writes, when it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.settings import Settings, TcRagSettings
from osler.types import Question
from osler_lab.studies import calibrate
from osler_lab.studies.calibrate import QuestionValue, StateValues


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings of each measuring; the values are 1 to 10 and one abstention."""
    seen: list[Settings] = []

    async def measure(settings: Settings, questions: Any, *, progress: Any) -> StateValues:
        seen.append(settings)
        found = [QuestionValue(Question(str(n), "What?"), float(n)) for n in range(1, 11)]
        none = QuestionValue(Question("x", "什么？", language="zh"), None)
        assert isinstance(settings.strategy, TcRagSettings)
        assert settings.strategy.metric != "off"
        # What is measured where the choice is left to what the model can do.
        metric = "cppl" if settings.strategy.metric == "auto" else settings.strategy.metric
        return StateValues("m", metric, (*found, none))

    monkeypatch.setattr(calibrate, "measure_state_values", measure)
    return seen


def test_the_distribution_is_shown_and_the_fit_written(
    osler: Any, folder: Path, measured: list[Settings]
) -> None:
    result = osler("calibrate")
    assert result.exit_code == 0
    assert "a quantile of all conclusions, right or wrong" in result.stdout
    said = " ".join(result.stdout.split())
    assert "sigma 9.1 metric cppl model m quantile 0.9 n 10" in said
    assert "answered 10 of 11 quantiles 10% 1.9" in said
    assert f"written to {folder / 'osler.toml'}" in result.stdout
    shown = json.loads(osler("config", "--json").stdout)
    assert shown["calibration.sigma"] == 9.1
    assert shown["calibration.model"] == "m"
    assert "(packaged calibration questions)" in shown["calibration.basis"]


def test_a_dry_run_writes_nothing(osler: Any, folder: Path, measured: list[Settings]) -> None:
    document = json.loads(
        osler("calibrate", "--dry-run", "--json", "--quantile", "0.5", "--metric", "uct").stdout
    )
    assert (document["sigma"], document["metric"], document["n"]) == (5.5, "uct", 10)
    assert document["path"] is None
    assert document["values"][-1] == {"question": "什么？", "value": None}
    assert not (folder / "osler.toml").exists()


def test_a_hand_set_sigma_is_refused_before_anything_is_measured(
    osler: Any, folder: Path, measured: list[Settings]
) -> None:
    (folder / "mine.toml").write_text("[strategy]\nsigma = 9\n", encoding="utf-8")
    refused = osler("--config", "mine.toml", "calibrate")
    assert refused.exit_code == 3
    assert "mine.toml:2: strategy.sigma = 9 is set by hand" in refused.stderr
    assert not measured
    assert osler("--config", "mine.toml", "calibrate", "--force").exit_code == 0
    assert "#sigma = 9" in (folder / "mine.toml").read_text("utf-8")


def test_a_setting_is_given_by_name(osler: Any) -> None:
    shown = osler("--set", "retrieve.k=7", "--set", "model.slots=2", "config", "--json")
    assert json.loads(shown.stdout)["retrieve.k"] == 7
    for late in (("--set", "retrieve.k=7"), ("--set=retrieve.k=7",)):
        again = osler("config", *late, "--json")
        assert json.loads(again.stdout)["retrieve.k"] == 7
    assert osler("config", "--set").exit_code == 2
    wrong = osler("--set", "retrieve.kk=7", "config")
    assert wrong.exit_code == 3
    assert "command line: unknown key 'kk' in [retrieve]" in wrong.stderr
    assert osler("--set", "retrieve.k", "config").exit_code == 2
