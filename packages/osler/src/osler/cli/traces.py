"""`osler trace`: recorded runs, listed, shown, and side by side."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession
from osler.cli.session import CliSession

if TYPE_CHECKING:
    from osler.cli.render import RunPage
    from osler.settings import Settings
    from osler.types import Answer


def trace(
    here: JsonSession,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help='The start of a run\'s id, "last", or a file; several stand side by side.',
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, help="Without a run: how many to list, newest first.")
    ] = 20,
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
    """List the recorded runs; show one of them, or several side by side.

    Of one run: answer, evidence and film; with --json its events, as JSON Lines. Side by side: the
    films, as of one question under two strategies.
    """
    from osler.build.privacy import open_runs
    from osler.cli.runs import find_run, list_runs, read_report

    settings = here.load_settings()
    opens = open_runs(settings)
    if not runs:
        listed = list_runs(settings.runs.path, limit=limit, opens=opens)
        here.show({"runs": [asdict(one) for one in listed]}, [asdict(one) for one in listed])
        if not listed:
            here.print_line("no runs yet")
        return
    reports = [read_report(find_run(run, settings.runs.path, opens)) for run in runs]
    if len(reports) > 1:
        from osler.cli.render import compare_page
        from osler.cli.run_output import report_document

        here.show_result(compare_page(reports), {"runs": [report_document(one) for one in reports]})
        return
    _show_run(here, settings, reports[0], html, notes=notes)


def _show_run(
    here: CliSession, settings: Settings, found: RunPage, html: Path | None, *, notes: bool
) -> None:
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
    from osler.build.knowledge import open_knowledge_base
    from osler.errors import KnowledgeBaseError
    from osler.runs.files import find_changed

    try:
        with open_knowledge_base(settings) as kb:
            changed = find_changed(settings, kb, answer) if kb.snapshot != snapshot else ()
    except KnowledgeBaseError:
        return []
    return [str(one) for one in changed]


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
