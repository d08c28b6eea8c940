"""`osler ask --file`: many questions with models that are loaded once."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from osler.cli.run_output import make_report, watch_events
from osler.cli.session import ABSTAINED, CliSession
from osler.errors import BadQuestion, read_text_file

if TYPE_CHECKING:
    from osler.app.config import Settings
    from osler.app.runs import FinishedRun
    from osler.trace import Sink
    from osler.types import Question


def ask_of_file(here: CliSession, settings: Settings, path: Path, trace: Path | None) -> None:
    """Asks every question of a file; with --json one document a line.

    Ends with exit code 1 where none was answered. Raises `BadQuestion` for a file that cannot be
    read, before anything is loaded.
    """
    questions = read_questions(path)
    with watch_events(here, trace, first=("opening the knowledge base", "")) as sink:
        if not asyncio.run(_answer_all(here, settings, questions, sink)):
            raise typer.Exit(ABSTAINED)


def read_questions(path: Path) -> list[Question]:
    """One question a line, or JSON Lines with `question` and, if it has any, `options`."""
    if path.suffix in (".jsonl", ".json"):
        from osler.evaluate.labeled_questions import read_labeled

        return [one.question for one in read_labeled(path)]
    from osler.questions import parse_question

    lines = read_text_file(path, BadQuestion, "name a text file").splitlines()
    if not (found := [parse_question(line) for line in lines if line.strip()]):
        raise BadQuestion(f"{path} has no question", fix="write one question a line")
    return found


async def _answer_all(
    here: CliSession, settings: Settings, questions: Sequence[Question], sink: Sink
) -> int:
    """Shows each answer when it is there; the number of questions that were answered."""
    from osler.cli.render import run_page, short_page
    from osler.cli.run_documents import report_document
    from osler.types import Grounding

    answered = 0
    async for question, finished in _solve_in_turn(settings, questions, sink):
        report = make_report(finished, question)
        if here.json:
            document = {"question": question.text, **report_document(report)}
            sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")
        else:
            console = here.make_console()
            console.print(f"? {question.text}", style="bold", markup=False)
            console.print(short_page(report) if here.quiet else run_page(report))
            console.print("")
        sys.stdout.flush()
        solution = finished.solution
        answered += solution is not None and solution.answer.grounding is not Grounding.ABSTAINED
    return answered


async def _solve_in_turn(
    settings: Settings, questions: Sequence[Question], sink: Sink
) -> AsyncIterator[tuple[Question, FinishedRun]]:
    from osler.app.runs import ask
    from osler.app.wiring.resource_cache import ResourceCache

    cache = ResourceCache(settings)
    try:
        parts = await cache.parts_for(settings)
        for question in questions:
            yield question, await ask(settings, question, sink=sink, parts=parts)
    finally:
        cache.close()
