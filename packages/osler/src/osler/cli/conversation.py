"""A conversation at the terminal: questions that lean on those before them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import typer

from osler.cli.run_output import first_step, make_report, show_result, watch_events
from osler.cli.session import CliSession
from osler.errors import BadConfig

if TYPE_CHECKING:
    from osler.answer.follow_up import Standalone
    from osler.cli.render import RunPage
    from osler.runs.answering import FinishedRun
    from osler.runs.threads import Thread
    from osler.settings import Settings
    from osler.trace import Sink
    from osler.types import Question


def converse(
    here: CliSession,
    settings: Settings,
    name: str | None,
    *,
    film: bool,
    passages: bool,
    keep: bool,
) -> None:
    """Asks what is typed, each question after those before it, until an empty line."""
    from osler.questions import parse_question

    thread = name or f"{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    here.print_line(f"Conversation {thread}; an empty line ends it.")
    with suppress(EOFError):
        while text := input("? ").strip():
            with watch_events(here, None, first=first_step(settings), film=film) as sink:
                asked = parse_question(text)
                report = ask_in_thread(here, settings, thread, asked, None, sink, keep=keep)
            with suppress(typer.Exit):
                show_result(here, report, film=film, passages=passages)


def ask_in_thread(
    here: CliSession,
    settings: Settings,
    name: str,
    asked: Question,
    standalone: str | None,
    sink: Sink,
    *,
    keep: bool,
) -> RunPage:
    """Answers in the thread and shows how the question was searched for; with `keep`, through the
    filters of the question before it.

    Raises `BadConfig` where runs are not kept: a thread consists of runs.
    """
    from osler.runs.threads import ThreadMoved, ThreadStore, UnknownThread, keep_filters

    if not settings.runs.keep:
        raise BadConfig("a thread needs its runs", fix="set runs.keep = true")
    store = ThreadStore(settings.home)
    thread = store.create_thread(name)
    store.require_room(thread)
    if keep and thread.turns:
        settings = keep_filters(settings, thread.turns[-1].run)
    alone, question, finished = asyncio.run(
        _answer_turn(here, settings, thread, asked, standalone, sink)
    )
    report = make_report(finished, question)
    try:
        store.add_turn(thread, finished.run, asked.text, alone)
    except (ThreadMoved, UnknownThread) as moved:
        # Somebody else asked in it meanwhile: the answer is shown, and its run is kept.
        moved.fix = f"`osler trace {finished.run}` has this answer; ask again in the thread"
        with suppress(typer.Exit):
            show_result(here, report, film=False)
        raise
    return report


async def _answer_turn(
    here: CliSession,
    settings: Settings,
    thread: Thread,
    asked: Question,
    standalone: str | None,
    sink: Sink,
) -> tuple[Standalone, Question, FinishedRun]:
    """How the question was searched for, and its run."""
    from osler.answer.follow_up import Standalone
    from osler.build.danger import danger_notice
    from osler.questions import parse_question
    from osler.runs.answering import ask
    from osler.runs.threads import make_standalone

    # Danger may stand in the reader's own words, or in those of an earlier turn.
    notice = danger_notice(settings, asked, [turn.question for turn in thread.turns])
    alone = (
        Standalone(standalone, "user")
        if standalone
        else await make_standalone(settings, asked.text, thread.asked)
    )
    question = parse_question(alone.text, options=asked.options)
    if alone.by:
        here.print_line(f"searched for: {alone.text}")
        here.print_line("")
    finished = await ask(settings, question, sink=sink, danger=notice)
    return alone, question, finished
