"""Progress: silent for what is quick, a line every ten seconds for what is not."""

from __future__ import annotations

import io
import json
import threading
from dataclasses import dataclass, field

import pytest

from osler.cli import progress
from osler.cli.progress import BarDisplay, DelayedDisplay, LineDisplay, resolve_mode, show_progress
from osler.cli.session import CliSession, ProgressMode


@dataclass
class Watch:
    """A clock that is set by hand."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Seen:
    shown: list[tuple[str, int, int | None]] = field(default_factory=list)

    def show(self, stage: str, done: int, total: int | None) -> None:
        self.shown.append((stage, done, total))

    def close(self) -> None:
        self.shown.append(("closed", 0, None))


def test_progress_shows_nothing_within_two_seconds() -> None:
    clock, seen = Watch(), Seen()
    patient = DelayedDisplay(seen, clock)
    for seconds, done in ((0.0, 1), (1.9, 2), (2.0, 3), (2.1, 4)):
        clock.now = 100 + seconds
        patient.report_progress("files", done, None)
    assert [done for _, done, _ in seen.shown] == [3, 4]


def test_a_line_is_written_every_ten_seconds_whatever_the_stage() -> None:
    clock, out = Watch(), io.StringIO()
    lines = LineDisplay(out, clock=clock)
    for second in range(31):
        clock.now = 100 + second
        lines.show("files" if second % 2 else "vectors", second * 5, 600)
    written = out.getvalue().splitlines()
    assert len(written) == 4
    assert written[0] == "vectors: 0 of 600"
    assert written[1] == "vectors: 50 of 600, 5.0/s, 110 s left"


def test_a_job_in_a_pipe_is_seen_to_be_alive_while_one_step_takes_minutes() -> None:
    clock, out = Watch(), io.StringIO()
    patient = DelayedDisplay(LineDisplay(out, clock=clock), clock)
    patient.repeat_report()
    patient.report_progress("rag on medqa-us", 0, 2)
    for second in range(46):
        clock.now = 100 + second
        patient.repeat_report()
    assert out.getvalue().splitlines() == ["rag on medqa-us: 0 of 2"] * 5


def test_the_last_report_is_repeated_until_the_job_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = threading.Event()

    class Telling(LineDisplay):
        def show(self, stage: str, done: int, total: int | None) -> None:
            super().show(stage, done, total)
            shown.set()

    monkeypatch.setattr(progress, "LineDisplay", Telling)
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setattr(progress, "BEAT", 0.01)
    with show_progress(CliSession(progress="plain")) as report:
        assert report is not None
        report("files", 0, 2)  # within the time that nothing is shown
        assert shown.wait(10)
    assert capsys.readouterr().err == "files: 0 of 2\n"
    assert not [one for one in threading.enumerate() if one.name == "progress"]


def test_lines_end_with_how_far_the_job_came() -> None:
    clock, out = Watch(), io.StringIO()
    lines = LineDisplay(out, clock=clock)
    lines.show("files", 1, 2)
    clock.now += 3
    lines.show("files", 2, 2)
    lines.close()
    assert out.getvalue().splitlines() == ["files: 1 of 2", "files: 2 of 2"]


def test_slow_steps_are_told_by_the_seconds_of_each() -> None:
    clock, out = Watch(), io.StringIO()
    lines = LineDisplay(out, clock=clock)
    lines.show("samples", 0, 4)
    clock.now += 50
    lines.show("samples", 1, 4)
    assert out.getvalue().splitlines()[1] == "samples: 1 of 4, 50 s each, 150 s left"


def test_an_unknown_total_has_no_end_in_sight() -> None:
    clock, out = Watch(), io.StringIO()
    lines = LineDisplay(out, clock=clock)
    lines.show("documents", 0, None)
    clock.now += 10
    lines.show("documents", 12_345, None)
    assert out.getvalue().splitlines()[1] == "documents: 12,345, 1,234.5/s"


def test_lines_of_json_are_objects() -> None:
    clock, out = Watch(), io.StringIO()
    lines = LineDisplay(out, as_json=True, clock=clock)
    lines.show("文件", 1, 3)
    clock.now += 10
    lines.show("文件", 2, 3)
    first, second = map(json.loads, out.getvalue().splitlines())
    assert first["per_second"] is None
    assert second == {
        "stage": "文件",
        "done": 2,
        "total": 3,
        "per_second": 0.1,
        "seconds_left": 10,
    }


@pytest.mark.parametrize(
    ("wanted", "terminal", "mode"),
    [("auto", True, "rich"), ("auto", False, "plain"), ("json", True, "json")],
)
def test_auto_is_a_bar_on_a_terminal_and_lines_elsewhere(
    wanted: ProgressMode, terminal: bool, mode: ProgressMode
) -> None:
    assert resolve_mode(wanted, terminal=terminal) == mode


@pytest.mark.parametrize("session", [CliSession(progress="none"), CliSession(quiet=True)])
def test_progress_is_off_for_none_and_quiet(session: CliSession) -> None:
    with show_progress(session) as report:
        assert report is None


def test_a_quick_job_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with show_progress(CliSession(progress="plain")) as report:
        assert report is not None
        report("files", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_that_was_never_shown_is_closed_without_a_sign(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bar = BarDisplay(CliSession())
    bar.close()
    assert bar._bar is None, "closing starts nothing"
    with show_progress(CliSession(progress="rich")) as report:
        assert report is not None
    assert capsys.readouterr() == ("", "")


def test_a_bar_takes_stages_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    bar = BarDisplay(CliSession(no_color=True))
    bar.show("[red]files", 1, None)
    bar.show("[red]files", 2, 4)
    bar.show("vectors", 1, 2)
    bar.close()
    assert "Traceback" not in capsys.readouterr().err
