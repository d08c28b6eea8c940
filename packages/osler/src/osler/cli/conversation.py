"""`osler ask --thread`: a question asked after others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from typer import Exit

from osler.answer.follow_up import Standalone
from osler.build.danger import danger_notice
from osler.cli.run_output import first_step, make_report, show_result, watch_events
from osler.cli.session import CliSession
from osler.errors import BadConfig
from osler.questions import parse_question
from osler.runs.answering import FinishedRun, ask
from osler.runs.threads import Thread, ThreadMoved, ThreadStore, UnknownThread, make_standalone
from osler.settings import Settings
from osler.trace import Sink
from osler.types import Question


def ask_in_thread(
    here: CliSession,
    settings: Settings,
    name: str,
    asked: Question,
    standalone: str | None,
    *,
    film: bool,
    trace: Path | None,
) -> None:
    """Answers in the thread and shows how the question was searched for.

    Raises `BadConfig` where runs are not kept: a thread consists of runs.
    """
    if not settings.runs.keep:
        raise BadConfig("a thread needs its runs", fix="set runs.keep = true")
    store = ThreadStore(settings.home)
    thread = store.create_thread(name)
    store.require_room(thread)
    with watch_events(here, trace, first=first_step(settings), film=film) as sink:
        alone, question, finished = asyncio.run(
            _answer_turn(here, settings, thread, asked, standalone, sink)
        )
    try:
        store.add_turn(thread, finished.run, asked.text, alone)
    except (ThreadMoved, UnknownThread) as moved:
        # Somebody else asked in it meanwhile: the answer is shown, and its run is kept.
        moved.fix = f"`osler trace {finished.run}` has this answer; ask again in the thread"
        with suppress(Exit):
            show_result(here, make_report(finished, question), film=film)
        raise
    show_result(here, make_report(finished, question), film=film)


async def _answer_turn(
    here: CliSession,
    settings: Settings,
    thread: Thread,
    asked: Question,
    standalone: str | None,
    sink: Sink,
) -> tuple[Standalone, Question, FinishedRun]:
    """How the question was searched for, and its run."""
    # Danger may stand in the reader's own words, or in those of an earlier turn.
    notice = danger_notice(settings, asked, [turn.question for turn in thread.turns])
    alone = (
        Standalone(standalone, "user")
        if standalone
        else await make_standalone(settings, asked.text, thread.asked)
    )
    question = parse_question(alone.text, options=asked.options)
    if alone.by:
        here.print_line(f"searched for: {alone.text}\n")
    finished = await ask(settings, question, sink=sink, danger=notice)
    return alone, question, finished
