"""Answers that a reader gave in a method's stead: marked, noted, and compared only on request."""

from dataclasses import replace
from pathlib import Path

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


def test_the_command_line_refuses_and_allows_it(log: Path) -> None:
    words = ["eval", "report", "--log-dir", str(log), "--against", str(log)]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert "--allow-undecided" in refused.output
    allowed = CliRunner().invoke(app, [*words, "--allow-undecided"])
    assert allowed.exit_code == 0
    assert "react" in allowed.output


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
