"""Answers that a reader gave in a method's stead: marked, noted, and compared only on request."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from osler.cli import app
from osler.errors import BadRun
from osler.trace import Run
from osler.types import Answer, DecidedBy, Halt, Question, Solution
from osler_lab.cli.evaluate_pages import summarise_log
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.compare import compare_logs
from osler_lab.evaluate.log import LogWriter
from osler_lab.evaluate.plan import EvaluatedTask, EvaluationPlan
from osler_lab.evaluate.record import Gold, RecordedOutcome, Sample, SampleRecord, outcome_of
from osler_lab.evaluate.report import build_report, render_markdown


def record(strategy: str, number: int, option: str, decided: DecidedBy) -> SampleRecord:
    question = Question(f"q{number}", f"Case {number}?", ("yes", "no"))
    solution = Solution(Answer(option=option), Halt.CONVERGED, "said so", decided=decided)
    outcome = outcome_of(solution, Run())
    sample = Sample("pubmedqa", "choice", question, Gold(("A",)))
    return SampleRecord(strategy, sample, "done", "2026-01-01T00:00:00", 1.0, 0, outcome)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of ten answers of react two were a reader's; rag leaves all to its reader, sure none."""
    folder = tmp_path / "log"
    task = EvaluatedTask("pubmedqa", "choice", "d" * 64, 10, 10)
    labels = ("rag", "sure", "react")
    entrants = {one: planning.make_entrant(one, {"strategy": {"kind": one}}) for one in labels}
    asked = {one: {"pubmedqa": 10} for one in labels}
    planning.save_plan(folder, EvaluationPlan(0, {"pubmedqa": task}, entrants, asked, "0.1"))
    with LogWriter(folder, "w") as writer:
        for n in range(10):
            writer.write_record(record("rag", n, "AB"[n % 2], DecidedBy.READER))
            writer.write_record(record("sure", n, "A", DecidedBy.METHOD))
            stood_in = DecidedBy.FALLBACK if n < 2 else DecidedBy.METHOD
            writer.write_record(record("react", n, "A", stood_in))
    return folder


def test_a_record_keeps_who_decided_and_old_records_say_nothing_of_it() -> None:
    assert record("sure", 1, "A", DecidedBy.FALLBACK).outcome.decided == "fallback"
    assert RecordedOutcome().decided == ""


def test_the_table_marks_figures_that_are_not_the_method_s_own(log: Path) -> None:
    report = build_report(log)
    note = "‡ react on pubmedqa: in 2 of 10 answers a reader stood in for the method's own decision"
    text = render_markdown(report)
    assert note in text
    assert "| react | 100.0 [72.2, 100.0] ‡ |" in text
    assert "| sure | 100.0 [72.2, 100.0] |" in text


def test_the_report_leaves_their_comparison_out_unless_it_is_asked_for(log: Path) -> None:
    assert [one.second for one in build_report(log).compared] == ["sure"]
    every = build_report(log, allow_undecided=True).compared
    assert [one.second for one in every] == ["sure", "react"]


def test_a_comparison_with_them_is_refused_unless_it_is_asked_for(log: Path) -> None:
    with pytest.raises(BadRun, match="react on pubmedqa: 2 of 10") as caught:
        compare_logs(log, log)
    assert "--allow-undecided" in caught.value.fix
    assert [one.second for one in compare_logs(log, log, undecided="allow")] == ["sure", "react"]


def compare(*words: object) -> Any:
    done = CliRunner().invoke(app, ["--json", "eval", "report", *map(str, words)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_the_command_line_leaves_them_out_by_name_or_allows_them(log: Path) -> None:
    words = ("--log-dir", log, "--against", log)
    told = compare(*words)
    assert [one["second"] for one in told["compared"]] == ["sure"]
    assert told["left_out"] == [
        f"react on pubmedqa in {log}: in 2 of 10 answers a reader stood in for the method's own"
        " decision (--allow-undecided compares them)"
    ]
    allowed = compare(*words, "--allow-undecided")
    assert [one["second"] for one in allowed["compared"]] == ["sure", "react"]
    assert allowed["left_out"] == []


def test_a_log_with_nothing_else_to_compare_is_refused(log: Path, tmp_path: Path) -> None:
    with LogWriter(tmp_path, "w") as writer:
        writer.write_record(record("react", 0, "A", DecidedBy.FALLBACK))
    words = ["eval", "report", "--log-dir", str(log), "--against", str(tmp_path)]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert "--allow-undecided" in refused.output


def test_what_only_one_of_two_logs_has_is_counted_and_named(log: Path, tmp_path: Path) -> None:
    with LogWriter(tmp_path, "w") as writer:
        for n in range(8):
            writer.write_record(record("sure", n, "A", DecidedBy.METHOD))
        writer.write_record(record("new", 0, "A", DecidedBy.METHOD))
    told = compare("--log-dir", log, "--against", tmp_path)
    (one,) = told["compared"]
    assert (one["second"], one["change"]["n"], one["unpaired"]) == ("sure", 8, 2)
    assert f"rag on pubmedqa in {log}: no sample to compare it with" in told["left_out"]
    assert f"new on pubmedqa in {tmp_path}: no sample to compare it with" in told["left_out"]
    words = ["eval", "report", "--log-dir", str(log), "--against", str(tmp_path)]
    assert "unpaired" in CliRunner().invoke(app, words).stdout


def test_a_log_of_one_strategy_has_nothing_to_compare(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "w") as writer:
        writer.write_record(record("sure", 0, "A", DecidedBy.METHOD))
    with pytest.raises(BadRun, match="has one strategy alone"):
        compare_logs(tmp_path, tmp_path)


def test_the_cells_of_a_run_count_them(log: Path) -> None:
    rows = {row["strategy"]: row for row in summarise_log(log)}
    assert {name: row["undecided"] for name, row in rows.items()} == {
        "rag": 0,
        "sure": 0,
        "react": 2,
    }


def test_a_log_without_them_is_compared_as_ever(log: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    with LogWriter(plain, "w") as writer:
        for n in range(10):
            made = record("rag", n, "A", DecidedBy.READER)
            writer.write_record(replace(made, outcome=replace(made.outcome, decided="")))
    (one,) = compare_logs(plain, log)
    assert (one.first, one.second, one.change.n) == ("rag", "rag", 10)
