"""`osler calibrate --risk`: a bound on wrong answers, from graded ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.judge import JUDGE
from osler.runs.feedback import Feedback, FeedbackStore, Verdict
from osler.trace import Answered, to_line
from osler.types import Answer, Halt, Solution, Statement, Sureness


@pytest.fixture(scope="module")
def model() -> str:
    return open_expert(JUDGE).card.identity


def write_answers(path: Path, by: str, rights: int, wrongs: int, **changes: Any) -> Path:
    """Right answers are surer than wrong ones; one more abstained."""
    lines = [
        {"answer": {"sureness": {"probability": p, "by": by}}, "grounding": "grounded", "right": r}
        | changes
        for p, r in [(0.9 - n / 1000, True) for n in range(rights)]
        + [(0.4 - n / 1000, False) for n in range(wrongs)]
    ]
    lines.append({"answer": {"sureness": None}, "grounding": "abstained"})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def test_the_bound_is_fitted_shown_and_written(osler: Any, folder: Path, model: str) -> None:
    graded = write_answers(folder / "graded.jsonl", model, 80, 20)
    result = osler("calibrate", "--risk", "0.1", "--questions", str(graded))
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "answered 83 wrong 3" in said
    assert "at most 9.1% of the answered are wrong, with 95% confidence" in said
    shown = json.loads(osler("config", "--json").stdout)
    assert shown["calibration.sureness"] == pytest.approx(0.398)
    assert shown["calibration.sureness_model"] == model
    assert "by 100 graded answers" in shown["calibration.sureness_basis"]


def test_a_dry_run_writes_nothing(osler: Any, folder: Path, model: str) -> None:
    graded = write_answers(folder / "graded.jsonl", model, 80, 20)
    result = osler("calibrate", "--risk", "0.2", "--questions", str(graded), "--dry-run", "--json")
    document = json.loads(result.stdout)
    assert document["path"] is None
    assert document["bound"] <= 0.2
    assert document["coverage"] > 0.83
    assert not (folder / "osler.toml").exists()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"rights": 20, "wrongs": 2}, "22 graded answers; 29 are needed"),
        ({"rights": 60, "wrongs": 0}, "all 60 graded answers are right"),
        ({"rights": 60, "wrongs": 9, "right": None}, "1: the answer is not graded"),
        ({"rights": 60, "wrongs": 9, "by": "other@1"}, "bear the sureness of other@1, not of"),
        ({"rights": 60, "wrongs": 9, "grounding": 7, "answer": 3}, "not an answer of `osler ask"),
    ],
)
def test_what_shows_nothing_is_refused_with_the_fix(
    osler: Any, folder: Path, model: str, made: dict[str, Any], said: str
) -> None:
    graded = write_answers(folder / "graded.jsonl", **{"by": model, **made})
    result = osler("calibrate", "--risk", "0.1", "--questions", str(graded))
    assert result.exit_code != 0
    assert said in " ".join(result.output.split())
    assert not (folder / "osler.toml").exists()


def test_a_risk_without_graded_answers_is_refused(osler: Any) -> None:
    result = osler("calibrate", "--risk", "0.1")
    assert "--risk needs graded answers" in result.output


def judge_runs(home: Path, by: str, verdicts: list[Verdict]) -> None:
    """Recorded answers, each with what a reader said of it; helpful ones are surer."""
    for n, verdict in enumerate(verdicts):
        sure = Sureness((0.9 if verdict == "helpful" else 0.4) - n / 1000, by)
        answer = Answer((Statement("It is so."),), sureness=sure)
        log = home / "runs" / f"20260101-000000-{n:04}" / "events.jsonl"
        log.parent.mkdir(parents=True)
        log.write_text(to_line(Answered(Solution(answer, Halt.CONVERGED, "read"))) + "\n", "utf-8")
        store = FeedbackStore(home)
        first: Verdict = "wrong" if verdict == "helpful" else "helpful"
        store.add_all([Feedback("run", log.parent.name, one) for one in (first, verdict)])
    store.add_all([Feedback("run", "20260101-000000-gone", "helpful")])


def test_readers_verdicts_grade_the_answers(osler: Any, folder: Path, model: str) -> None:
    home = Path(json.loads(osler("config", "--json").stdout)["home"])
    verdicts: dict[Verdict, int] = {"helpful": 80, "wrong": 10, "unsafe": 10}
    judge_runs(home, model, [one for one, count in verdicts.items() for _ in range(count)])
    result = osler("calibrate", "--risk", "0.1")
    assert result.exit_code == 0, result.output
    shown = json.loads(osler("config", "--json").stdout)
    assert "by 100 graded answers (feedback)" in shown["calibration.sureness_basis"]
    assert 0.3 < shown["calibration.sureness"] < 0.4
