"""What a terminal shows of a run: its steps while it works, and its result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from osler.cli.session import ABSTAINED, PARTIAL, REFUSED, CliSession, write_json
from osler.errors import OslerError, translate_os_errors

if TYPE_CHECKING:
    from osler.app.config import Settings
    from osler.app.runs import FinishedRun
    from osler.cli.render import RunPage
    from osler.cli.waiting import Step
    from osler.trace import Event, Sink
    from osler.types import Question


def first_step(settings: Settings) -> Step:
    """What a run does before its first event."""
    from osler.app.config import ROLES

    asked = [one for one in map(settings.model_for, ROLES) if one.kind == "openai"]
    if asked:
        return f"asking the model server at {asked[0].url} what it can do", "reading the question"
    return "opening the knowledge base and the model", "reading the question"


@contextmanager
def watch_events(
    here: CliSession,
    trace: Path | None,
    *,
    first: Step,
    film: bool = False,
    danger_aside: bool = False,
) -> Iterator[Sink]:
    """Hands each event to whoever watches: the terminal, a file.

    `first`: the step before the first event. `film`: each event as a line, else one line that
    says what is being done. `danger_aside`: the notice goes to standard error, since a file is
    made of the output.
    """
    with ExitStack() as stack:
        # Watchers are called in the run's own thread, in the order of the events.
        watchers = [_danger_watcher(here, aside=danger_aside), _film_watcher(here, film)]
        if not film and _shows_progress(here):
            from osler.cli.waiting import show_waiting

            watchers.append(stack.enter_context(show_waiting(first)))
        if trace is not None:
            watchers.append(stack.enter_context(_open_trace(trace)))

        def hand_on(event: Event) -> None:
            for watcher in filter(None, watchers):
                watcher(event)

        yield hand_on


def _danger_watcher(here: CliSession, *, aside: bool) -> Callable[[Event], None] | None:
    """The first words to somebody in danger, at once: a run may take minutes."""
    if here.progress == "json":  # there the event itself is the first line
        return None
    from osler.trace import DangerNoticed

    def show_danger(event: Event) -> None:
        if not isinstance(event, DangerNoticed):
            return
        from osler.cli.render import danger_block
        from osler.cli.run_documents import danger_document

        if here.json:
            _write_stderr(json.dumps({"danger": danger_document(event.notice)}, ensure_ascii=False))
        else:
            here.make_console(stderr=aside).print(danger_block(event.notice))
            sys.stdout.flush()

    return show_danger


def _film_watcher(here: CliSession, film: bool) -> Callable[[Event], None] | None:
    """The film on standard error, while it is made."""
    if here.progress == "json":
        from osler.trace import to_line

        return lambda event: _write_stderr(to_line(event))
    if not (film and _shows_progress(here)):
        return None
    from osler.cli.film import Film

    camera, console = Film(), here.make_console(stderr=True)

    def show_event(event: Event) -> None:
        for line in camera.event_lines(event):
            console.print(line, no_wrap=True, overflow="ellipsis")

    return show_event


def _shows_progress(here: CliSession) -> bool:
    return not (here.json or here.quiet or here.progress in ("json", "none"))


def _write_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    # Another program follows the run through a pipe, which is buffered by blocks.
    sys.stderr.flush()


@contextmanager
def _open_trace(path: Path) -> Iterator[Callable[[Event], None]]:
    from osler.trace import to_line

    with translate_os_errors(f"cannot write {path}", OslerError, "name another file with --trace"):
        # By lines, so that what was done is there when the run is killed.
        out = path.open("w", encoding="utf-8", buffering=1)
    with out:

        def write_event(event: Event) -> None:
            out.write(f"{to_line(event)}\n")

        yield write_event


def make_report(finished: FinishedRun, question: Question) -> RunPage:
    from osler.cli.render import RunPage

    return RunPage(
        run=finished.run,
        strategy=finished.strategy,
        snapshot=finished.snapshot,
        models=finished.models,
        solution=finished.solution,
        events=finished.events,
        question=question,
        seconds=finished.seconds,
        kept=finished.folder is not None,
    )


def show_result(here: CliSession, report: RunPage, *, film: bool) -> None:
    from osler.cli.render import run_page, short_page
    from osler.cli.run_documents import report_document

    # Where the live film and the page meet on one terminal, the film is not shown twice.
    seen = film and _shows_progress(here) and sys.stdout.isatty() and sys.stderr.isatty()
    if here.json:
        write_json(report_document(report))
    else:
        if seen:
            here.print_line("")
        here.make_console().print(
            short_page(report)
            if here.quiet
            else run_page(report, with_film=film and not seen, with_danger=seen, with_facts=film)
        )
    if code := _exit_code(report):
        raise typer.Exit(code)


def _exit_code(report: RunPage) -> int:
    from osler.trace import Retrieved
    from osler.types import Grounding, Halt

    if report.solution is None:
        return 0
    # A refusal abstains as well, so it is asked first; a source that was down weighs least.
    if report.solution.halt is Halt.REFUSED:
        return REFUSED
    if report.solution.answer.grounding is Grounding.ABSTAINED:
        return ABSTAINED
    down = any(isinstance(event, Retrieved) and event.failed for event in report.events)
    return PARTIAL if down else 0
