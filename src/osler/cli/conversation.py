"""`osler ask --thread`: a question asked after others."""

from __future__ import annotations

import asyncio
from pathlib import Path

from osler.answer.follow_up import Standalone
from osler.app.config import Settings
from osler.app.danger import danger_notice
from osler.app.runs import ask
from osler.app.threads import ThreadStore, make_standalone
from osler.cli.run_output import first_step, make_report, show_result, watch_events
from osler.cli.session import CliSession
from osler.errors import BadConfig
from osler.questions import parse_question
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
    alone = (
        Standalone(standalone, "user")
        if standalone
        else make_standalone(settings, asked.text, thread.asked)
    )
    question = parse_question(alone.text, options=asked.options)
    if alone.by:
        here.print_line(f"searched for: {alone.text}\n")
    # Danger may stand in the reader's own words, or in those of an earlier turn.
    earlier = [turn.question for turn in thread.turns]
    notice = danger_notice(settings, asked, earlier)
    with watch_events(here, trace, first=first_step(settings), film=film) as sink:
        finished = asyncio.run(ask(settings, question, sink=sink, danger=notice))
    store.add_turn(thread, finished.run, asked.text, alone)
    show_result(here, make_report(finished, question), film=film)
