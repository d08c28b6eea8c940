"""Terminal output of a run: its steps while it works, and its result."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from osler.cli.progress import INTERVAL, PATIENCE, repeat_often
from osler.cli.session import ABSTAINED, PARTIAL, REFUSED, CliSession, write_json
from osler.cli.words import LANGUAGE, say
from osler.errors import OslerError, translate_os_errors

if TYPE_CHECKING:
    from osler.cli.render import RunPage
    from osler.runs.answering import FinishedRun
    from osler.settings import Settings
    from osler.trace import Event, Sink
    from osler.types import Language, Question

# What is done, and what comes after it; empty where that is open.
Step = tuple[str, str]

# To the first column, and the rest of the line empty.
_AFRESH = "\r\x1b[2K"


def describe_step(event: Event, language: Language = "en") -> Step | None:
    """The step that begins with an event; `None` where the one before goes on."""
    from osler import trace

    zh = language == "zh"
    match event:
        case trace.Started():
            return "reading the question", "a search"
        case trace.SourcesPlanned():
            sources = dict.fromkeys(query.source for query in event.queries)
            asked = _join_words([*sources], language)
            return (f"要查 {asked}" if zh else f"planned what to ask of {asked}"), "a search"
        case trace.Searched():
            asked = _join_words(event.sources, language)
            return (f"正在检索 {asked}" if zh else f"searching {asked}"), "reading what is found"
        case trace.Retrieved():
            read = [hit.passage for hit in event.hits]
            return _reading_words(read, language), "the answer, or another search"
        case trace.PassagesOrdered():
            return _reading_words(event.passages, language), "the answer, or another search"
        case trace.FormsPlanned():
            count = len(event.nodes)
            return (f"分 {count} 步" if zh else f"planned {count} steps"), "the first step"
        case trace.FormBegun():
            head = f"第 {event.n} 步：" if zh else f"step {event.n}: "
            return f"{head}{event.question}", "its answer"
        case trace.FormSolved():
            done = f"第 {event.n} 步完成" if zh else f"step {event.n} is done"
            return done, "the next step, or the answer"
        case trace.Calculated():
            return "calculating", "the answer"
        case trace.Pushed() if event.kind == "Thought":
            return "thinking it over", "a search, or the answer"
        case trace.Pushed() if event.kind == "Conclusion":
            return "checking how sure the answer is", "the answer, or another look"
    return None


def _reading_words(passages: Sequence[str], language: Language) -> str:
    sources = dict.fromkeys(id.partition(":")[0] for id in passages)
    if not passages:
        return "nothing found there"
    named, count = _join_words([*sources], language), len(passages)
    if language == "zh":
        return f"正在读 {named} 的 {count} 段"
    return f"reading {count} passages of {named}"


def _join_words(words: Sequence[str], language: Language) -> str:
    """Three at most: the line must fit."""
    if language == "zh":
        return ("、".join(words[:3]) + ("等" if len(words) > 3 else "")) or "现有的内容"
    more = f" and {len(words) - 3} more" if len(words) > 3 else ""
    return (", ".join(words[:3]) + more) or "what there is"


@dataclass
class WaitingLine:
    """On a terminal one line that is written over; elsewhere a line every `INTERVAL` seconds."""

    out: TextIO
    terminal: bool
    now: Step
    width: int = 100
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    _said: float = field(init=False)
    language: Language = field(default_factory=LANGUAGE.get, init=False)

    def __post_init__(self) -> None:
        self.began = self._said = self.clock()

    def turn_to(self, event: Event) -> None:
        from osler import trace

        if isinstance(event, trace.Started):
            self.language = event.question.language
        self.now = describe_step(event, self.language) or self.now
        self.show()

    def show(self) -> None:
        """Writes the line where it is due: nothing in the first seconds."""
        at = self.clock()
        if self.terminal and at - self.began >= PATIENCE:
            self.out.write(f"{_AFRESH}{self.line[: self.width - 1]}")
            self.out.flush()
        elif not self.terminal and at - self._said >= INTERVAL:
            self._said = at
            self.out.write(f"{self.line}\n")
            self.out.flush()

    def close(self) -> None:
        if self.terminal:
            self.out.write(_AFRESH)
            self.out.flush()

    @property
    def line(self) -> str:
        from osler.text import escape_controls

        step, then = self.now
        told = self.language
        after = f"{say('; next: ', told)}{say(then, told)}" if then else ""
        waited = f"{self.clock() - self.began:.0f} {say('s', told)}"
        comma = "，" if told == "zh" else ", "
        return escape_controls(f"{say(step, told)}{comma}{waited}{after}")


@contextmanager
def show_waiting(first: Step) -> Iterator[Callable[[Event], None]]:
    """The line on standard error; the callback takes each event of the run."""
    import shutil

    width = shutil.get_terminal_size().columns
    line = WaitingLine(sys.stderr, sys.stderr.isatty(), first, width)
    try:
        with repeat_often(line.show):
            yield line.turn_to
    finally:
        line.close()


def first_step(settings: Settings) -> Step:
    """What a run does before its first event."""
    from osler.settings import ROLES

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
        from osler.reports import DangerView

        if here.json:
            told = {"danger": DangerView.document_of(event.notice)}
            _write_stderr(json.dumps(told, ensure_ascii=False))
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


def report_document(report: RunPage) -> dict[str, Any]:
    """One run as `--json` writes it; `plan` in place of the answer for a run that only planned."""
    from osler.cli.film import planned_sources
    from osler.reports import RunResult

    ran = RunResult.of(report, run_id=report.run).model_dump(mode="json")
    if report.solution is not None:
        return {**ran, "state": find_state(report.events)}
    plans = [
        {"origin": event.origin, "queries": [asdict(query) for query in event.queries]}
        for event in planned_sources(report.events)
    ]
    return {**ran, "plan": plans}


def find_state(events: Sequence[Event]) -> dict[str, Any] | None:
    """The last state value of a run: of the conclusion that stood, where it `halted`."""
    from osler.trace import StateValued

    valued = [event for event in events if isinstance(event, StateValued)]
    if not valued:
        return None
    return {key: getattr(valued[-1], key) for key in ("metric", "value", "sigma", "halted")}


def show_result(here: CliSession, report: RunPage, *, film: bool, passages: bool = False) -> None:
    from osler.cli.render import run_page, short_page

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
            else run_page(
                report,
                with_film=film and not seen,
                with_danger=seen,
                with_facts=film,
                with_passages=passages or film,
            )
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
