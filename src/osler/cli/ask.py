"""`osler ask`, `plan` and `replay`: questions, their runs, and the runs again."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import Asked, Choices, Offered, Planner, Trace
from osler.cli.session import (
    ABSTAINED,
    PARTIAL,
    REFUSED,
    CliSession,
    complete_preset,
    complete_strategy,
    write_json,
)
from osler.errors import BadQuestion, OslerError
from osler.text import escape_controls

if TYPE_CHECKING:
    from osler.app.config import Settings
    from osler.app.runs import FinishedRun
    from osler.cli.render import RunPage
    from osler.cli.waiting import Step
    from osler.methods.omni.dossier import SavedPlan
    from osler.trace import Event, Sink
    from osler.types import Question


Strategy = Annotated[
    str | None,
    typer.Option(
        help="How to solve it: tc-rag, kag-thinker, omni-rag, unified, direct, cot, rag or"
        " another of docs/guide/baselines.md.",
        autocompletion=complete_strategy,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        help="Settings by name, as --profile before the verb.", autocompletion=complete_preset
    ),
]
GivenPlan = Annotated[
    Path | None,
    typer.Option(help="Run this source plan (of `osler plan`, or written by hand) with omni-rag."),
]

WithFilm = Annotated[
    bool, typer.Option("--film", help="Show how it went: live, and below the answer.")
]

# Bytes; far above any question, far below what would fill the memory.
STDIN_LIMIT = 1_000_000


def ask(
    here: CliSession,
    question: Asked = None,
    option: Choices = None,
    strategy: Strategy = None,
    sources: Annotated[
        str | None, typer.Option(help='Sources to search, as in "book,guideline".')
    ] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, help="Passages of one search.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same run.")] = None,
    preset: Preset = None,
    trace: Trace = None,
    plan: GivenPlan = None,
    plan_only: Annotated[
        bool, typer.Option("--plan-only", help="Show what would be searched, and stop.")
    ] = False,
    film: WithFilm = False,
) -> None:
    """Answer a question from cited evidence, or say that the evidence does not.

    Exit code 0: answered. 1: the evidence does not say. 6: answered, but a source
    was down. 7: refused.
    """
    here.preset = preset or here.preset
    given = _read_plan(plan)
    asked = _pick_question(question, tuple(option or ()), given)
    settings = here.load_settings(
        {
            "strategy.kind": strategy or ("omni-rag" if given else None),
            "strategy.k": k,
            "kb.sources": sources,
            "sampling.seed": seed,
        }
    )
    # Verbs import what they run: `--help` and a usage error load neither numpy nor a model.
    from osler.app.runs import ask as solve

    with watch_events(here, trace, first=_first_step(settings), film=film) as sink:
        finished = asyncio.run(solve(settings, asked, sink=sink, plan_only=plan_only, plan=given))
    _show_result(here, _make_report(finished, asked), film=film)


def replay(
    here: CliSession,
    run: Annotated[str, typer.Argument(help='The start of a run\'s id, "last", or its folder.')],
    trace: Trace = None,
    film: WithFilm = False,
) -> None:
    """Replay a recorded run without a model; fails where an event differs."""
    from osler.app.runs import replay as again
    from osler.cli.runs import find_run, open_runs, read_report

    settings = here.load_settings()
    log = find_run(run, settings.runs.path, open_runs(settings))
    question = read_report(log).question
    with watch_events(here, trace, first=("replaying the run", ""), film=film) as sink:
        finished = asyncio.run(again(log.parent, sink=sink))
    here.print_line(f"replayed {len(finished.events)} events: each is as it was\n")
    _show_result(here, _make_report(finished, question), film=film)


def _first_step(settings: Settings) -> Step:
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
        from osler.cli.render import danger_block, danger_document

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

    try:
        out = path.open("w", encoding="utf-8")
    except OSError as error:
        raise OslerError(
            f"cannot write {path}: {error.strerror}", fix="name another file with --trace"
        ) from error
    with out:

        def write_event(event: Event) -> None:
            out.write(f"{to_line(event)}\n")

        yield write_event


def _read_plan(path: Path | None) -> SavedPlan | None:
    if path is None:
        return None
    from osler.methods.omni.dossier import read_saved_plan

    return read_saved_plan(path)


def _pick_question(text: str | None, options: tuple[str, ...], plan: SavedPlan | None) -> Question:
    """The question; that of the plan where none is given."""
    if text is None and plan is not None and plan.question is not None:
        return plan.question
    return read_question(text, options)


def read_question(text: str | None, options: tuple[str, ...]) -> Question:
    from osler.questions import parse_question

    return parse_question(_read_text(text), options=options)


def _read_text(text: str | None) -> str | bytes:
    if text not in (None, "-"):
        return str(text)
    if text is None and sys.stdin.isatty():
        raise BadQuestion("no question", fix='write it after the verb: osler ask "…"')
    # One byte over the limit shows that there is more, without reading all of it.
    data = sys.stdin.buffer.read(STDIN_LIMIT + 1)
    if len(data) > STDIN_LIMIT:
        raise BadQuestion(f"the question has over {STDIN_LIMIT:,} bytes", fix="ask one thing")
    return data


def _make_report(finished: FinishedRun, question: Question) -> RunPage:
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


def _show_result(here: CliSession, report: RunPage, *, film: bool) -> None:
    from osler.cli.render import report_document, run_page, short_page

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


def plan(
    here: CliSession,
    question: Asked = None,
    option: Choices = None,
    planner: Planner = None,
    sources: Offered = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search as well, so that readers need not.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write plan, question and what was found to this file, as JSON."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Same seed, same plan.")] = None,
    trace: Trace = None,
) -> None:
    """Make a source plan, to be read, edited and run with `osler ask --plan FILE`."""
    settings = here.load_settings(
        {
            "strategy.kind": "omni-rag",
            "strategy.planner": planner,
            "kb.sources": sources,
            "sampling.seed": seed,
        }
    )
    from osler.app.runs import plan_question

    asked = read_question(question, tuple(option or ()))
    first = _first_step(settings)
    with watch_events(here, trace, first=first, film=True, danger_aside=True) as sink:
        made = asyncio.run(plan_question(settings, asked, search=search, sink=sink))
    if out is not None:
        _write_plan(out, made.document)
    if here.json:
        sys.stdout.write(f"{made.document}\n")
    elif out is None:
        sys.stdout.write(f"{escape_controls(made.plan)}\n")
    else:
        here.print_line(f"written to {out}; run it: osler ask --plan {out}")


def _write_plan(path: Path, text: str) -> None:
    try:
        path.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise OslerError(
            f"cannot write {path}: {error.strerror}", fix="name another file with --out"
        ) from error
