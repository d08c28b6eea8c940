"""A sigma with a bound: from graded answers, for one metric and one model."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest

from osler.build.tc_rag import halting_threshold
from osler.cli.run_output import find_state
from osler.errors import BadConfig, BadQuestion
from osler.settings import Settings, TcRagSettings
from osler.settings.layers import load
from osler.trace import StateValued
from osler_lab.studies.calibrate import SigmaFit, write_calibration
from osler_lab.studies.calibrate_sureness import (
    GradedState,
    fit_guaranteed_sigma,
    read_graded_states,
)

TODAY = date(2026, 11, 22)
GRADED = [GradedState(0.1 + n / 1000, "sureness", "m", True) for n in range(80)] + [
    GradedState(0.6 + n / 1000, "sureness", "m", False) for n in range(20)
]


def fitted(graded: list[GradedState], risk: float = 0.1) -> tuple[Any, Any]:
    return fit_guaranteed_sigma(
        graded, "sureness", risk=risk, confidence=0.95, questions="g.jsonl", today=TODAY
    )


def test_the_values_that_passed_converge_and_no_other() -> None:
    values, kept = fitted(GRADED)
    below = [one for one in GRADED if one.value < values.sigma]
    assert (len(below), sum(not one.right for one in below)) == (kept.answered, kept.wrong)
    assert kept.bound <= 0.1
    assert kept.answered == 83  # as many wrong ones as the bound bears


@pytest.mark.parametrize(
    ("graded", "said"),
    [
        (GRADED[:5], "5 graded answers; 29 are needed"),
        (GRADED[:60], "all 60 graded answers are right"),
        ([GradedState(0.5, "cppl", "m", True), *GRADED], "bear values of cppl, not of sureness"),
        ([GradedState(0.5, "sureness", "other", True), *GRADED], "several models: m, other"),
        ([GradedState(1 - g.value, g.metric, g.model, g.right) for g in GRADED], "no threshold"),
    ],
)
def test_what_bounds_nothing_is_refused(graded: list[GradedState], said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        fitted(graded)


def test_the_bound_holds_on_answers_that_no_fit_saw() -> None:
    """At most a tenth is wrong below sigma after 95 of 100 fits; one that is refused answers none.

    Values overlap: the wrong ones lie higher, not apart.
    """
    chance = Random(3)

    def draw(n: int) -> list[GradedState]:
        rights = [chance.random() < 0.7 for _ in range(n)]
        return [
            GradedState(
                chance.betavariate(2, 6) if r else chance.betavariate(5, 4), "sureness", "m", r
            )
            for r in rights
        ]

    unseen, kept, covered = draw(4_000), 0, 0.0
    for _ in range(100):
        try:
            sigma = fitted(draw(200))[0].sigma
        except BadConfig:
            sigma = 0.0
        below = [one for one in unseen if one.value < sigma]
        kept += sum(not one.right for one in below) <= 0.1 * len(below)
        covered += len(below) / len(unseen) / 100
    assert kept >= 95
    assert covered > 0.4


def test_graded_answers_are_read_with_their_state(tmp_path: Path) -> None:
    state = {"metric": "sureness", "value": 0.2, "sigma": 0.9, "halted": True}
    rows: list[dict[str, Any]] = [
        {"state": state, "models": {"planner": "m"}, "right": True},
        {"state": {**state, "halted": False}, "models": {"planner": "m"}},
        {"state": None, "models": {"planner": "m"}},
    ]
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert read_graded_states(path) == [GradedState(0.2, "sureness", "m", True)]
    path.write_text(json.dumps({**rows[0], "right": "yes"}), encoding="utf-8")
    with pytest.raises(BadQuestion, match="not graded"):
        read_graded_states(path)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(BadQuestion, match="not an answer of TC-RAG"):
        read_graded_states(path)


def test_a_question_that_was_asked_twice_counts_once(tmp_path: Path) -> None:
    state = {"metric": "sureness", "value": 0.2, "sigma": 0.9, "halted": True}
    row = {"state": state, "models": {"planner": "m"}, "right": True}
    lines = [json.dumps({**row, "question": f"q{n // 2}"}) for n in range(40)]
    path = tmp_path / "g.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    graded = read_graded_states(path)
    with pytest.raises(BadConfig, match="20 graded answers; 29 are needed"):
        fitted(graded)


def test_the_state_of_a_run_is_its_last() -> None:
    events = [StateValued(i, "cppl", i, 5.0, i == 2) for i in (1, 2)]
    assert find_state(events) == {"metric": "cppl", "value": 2, "sigma": 5.0, "halted": True}
    assert find_state([]) is None


def test_a_run_says_what_its_sigma_promises(tmp_path: Path) -> None:
    values, _ = fitted(GRADED)
    path = tmp_path / "osler.toml"
    write_calibration(values, path)
    settings = load({}, cwd=tmp_path, env={}).settings
    chosen = TcRagSettings(metric="sureness")
    limit = halting_threshold(settings, chosen, "m")
    assert limit.sigma == values.sigma
    assert limit.basis.startswith("at most 10% wrong with 95% confidence, by 100 graded answers")
    # A later quantile takes the promise away.
    write_calibration(SigmaFit(0.4, "sureness", "m", 0.9, 24, "2026-11-22", "packaged"), path)
    later = load({}, cwd=tmp_path, env={}).settings
    assert "wrong" not in halting_threshold(later, chosen, "m").basis
    assert halting_threshold(Settings(), chosen, "m").sigma == 0.5
