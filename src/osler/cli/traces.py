"""`osler trace …`: recorded runs, listed, shown, and side by side."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession

if TYPE_CHECKING:
    from osler.app.config import Settings
    from osler.cli.render import RunPage
    from osler.types import Answer


def ls(
    here: JsonSession,
    limit: Annotated[int, typer.Option(min=1, help="How many to show, newest first.")] = 20,
) -> None:
    """List the recorded runs, newest first."""
    from osler.cli.runs import list_runs, open_runs

    settings = here.load_settings()
    runs = list_runs(settings.runs.path, limit=limit, opens=open_runs(settings))
    here.show({"runs": [asdict(run) for run in runs]}, [asdict(run) for run in runs])
    if not runs:
        here.print_line("no runs yet")


def show(
    here: JsonSession,
    run: Annotated[str, typer.Argument(help='The start of a run\'s id, "last", or a file.')],
    html: Annotated[
        Path | None,
        typer.Option(help="Write one page that needs nothing else: no script, ready to print."),
    ] = None,
    notes: Annotated[
        bool,
        typer.Option(
            "--notes",
            help="Also show the notes of a model that may not word medicine: they steer the run,"
            " and nothing in them is medicine.",
        ),
    ] = False,
) -> None:
    """Show a recorded run: answer, evidence and film. With --json: its events, as JSON Lines."""
    from osler.cli.runs import find_run, open_runs, read_report

    settings = here.load_settings()
    found = read_report(find_run(run, settings.runs.path, open_runs(settings)))
    if here.json:
        from osler.trace import to_line

        sys.stdout.writelines(f"{to_line(event)}\n" for event in found.events)
        return
    if html is not None:
        _write_page(html, found)
        here.make_console().print(f"written to {html}")
        return
    from osler.cli.render import run_page

    here.make_console().print(run_page(found, notes=notes))
    if found.solution is not None:
        for line in _changed_lines(settings, found.solution.answer, found.snapshot):
            here.make_console().print(line, style="yellow")


def _changed_lines(settings: Settings, answer: Answer, snapshot: str) -> list[str]:
    """What of the evidence changed since; nothing where there is no knowledge base by now."""
    from osler.app.changed import find_changed
    from osler.app.wiring.knowledge import open_knowledge_base
    from osler.errors import KnowledgeBaseError

    try:
        with open_knowledge_base(settings) as kb:
            changed = find_changed(settings, kb, answer) if kb.snapshot != snapshot else ()
    except KnowledgeBaseError:
        return []
    return [str(one) for one in changed]


def compare(
    here: JsonSession,
    runs: Annotated[
        list[str], typer.Argument(help='Two or more: the start of an id, "last", or a file.')
    ],
) -> None:
    """Show the films of several runs side by side, as of one question under two strategies."""
    from osler.cli.render import compare_page
    from osler.cli.run_documents import report_document
    from osler.cli.runs import find_run, open_runs, read_report

    settings = here.load_settings()
    opens = open_runs(settings)
    reports = [read_report(find_run(run, settings.runs.path, opens)) for run in runs]
    here.show_result(compare_page(reports), {"runs": [report_document(one) for one in reports]})


def _write_page(path: Path, report: RunPage) -> None:
    """The page, wholly or not at all. Raises `BadConfig` where it cannot be written."""
    from osler.cli.page import render_page
    from osler.errors import BadConfig, translate_os_errors
    from osler.llm.core.cache import write_whole

    text = render_page(report)
    problem = f"{path} cannot be written"
    with (
        translate_os_errors(problem, BadConfig, "choose another --html"),
        write_whole(path) as draft,
    ):
        draft.write_text(text, encoding="utf-8")
