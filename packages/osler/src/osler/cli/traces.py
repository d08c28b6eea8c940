"""`osler trace` and `replay`: recorded runs, listed, shown, side by side, exported, and again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession, Trace, refuse_options
from osler.cli.render import RunPage
from osler.cli.session import CliSession
from osler.cli.words import say
from osler.errors import BadRun, OslerError, UnknownRun, translate_os_errors
from osler.trace import Answered, DangerNoticed, Started, read_events

if TYPE_CHECKING:
    from osler.answer.export import ExportedAnswer
    from osler.settings import Settings
    from osler.types import Answer

# File name endings that name a format, so that --to need not.
_BY_SUFFIX = {
    ".md": "markdown",
    ".html": "html",
    ".docx": "docx",
    ".pdf": "pdf",
    ".ris": "ris",
    ".bib": "bibtex",
    ".csv": "csv",
}


@dataclass(frozen=True)
class ExportOptions:
    """The answer written for other programs."""

    to: Annotated[
        str | None,
        typer.Option(
            help="Write the answer with its references as markdown, html, docx, pdf; its"
            " references as ris, bibtex; its evidence as csv; what its studies state as studies"
            " (CSV); or as fhir (R4 resources). By default as --out ends."
        ),
    ] = None
    out: Annotated[
        Path | None, typer.Option(help="The file to write; else a text goes to standard output.")
    ] = None


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
    *,
    export: ExportOptions,
) -> None:
    """List the recorded runs; show or export one of them, or show several side by side.

    Of one run: answer, evidence and film; with --json its events, as JSON Lines. Side by side: the
    films, as of one question under two strategies. With --to or --out the answer is written for
    other programs; Word and PDF need the extra `export`, and --out.
    """
    from osler.build.privacy import open_runs

    if len(runs or ()) != 1:
        refuse_options("it takes one run", html=html, to=export.to, out=export.out)
    elif export.to or export.out:
        refuse_options("it stands alone", html=html)
    settings = here.load_settings()
    opens = open_runs(settings)
    if not runs:
        listed = list_runs(settings.runs.path, limit=limit, opens=opens)
        page = [asdict(one) | {"halt": say(one.halt)} for one in listed]
        here.show({"runs": [asdict(one) for one in listed]}, page)
        if not listed:
            here.print_line("no runs yet")
        return
    reports = [read_report(find_run(run, settings.runs.path, opens)) for run in runs]
    if len(reports) > 1:
        from osler.cli.render import compare_page
        from osler.cli.run_output import report_document

        here.show_result(compare_page(reports), {"runs": [report_document(one) for one in reports]})
        return
    if export.to or export.out:
        chosen = format_of(export.to, export.out)
        write_out(here, [_exported_answer(reports[0])], chosen, export.out)
        return
    _show_run(here, settings, reports[0], html, notes=notes)


def _show_run(
    here: CliSession, settings: Settings, found: RunPage, html: Path | None, *, notes: bool
) -> None:
    if html is not None:
        _write_page(html, found)
        here.report_line(f"written to {html}", {"path": str(html)})
        return
    if here.json:
        from osler.trace import to_line

        sys.stdout.writelines(f"{to_line(event)}\n" for event in found.events)
        return
    from osler.cli.render import run_page

    here.make_console().print(run_page(found, notes=notes))
    if found.solution is not None:
        for line in _changed_lines(settings, found.solution.answer):
            here.make_console().print(line, style="yellow")


def _changed_lines(settings: Settings, answer: Answer) -> list[str]:
    """What of the evidence changed since; nothing where there is no knowledge base by now."""
    from osler.build.knowledge import open_knowledge_base
    from osler.errors import KnowledgeBaseError
    from osler.runs.files import find_changed

    try:
        with open_knowledge_base(settings) as kb:
            changed = find_changed(settings, kb, answer)
    except KnowledgeBaseError:
        return []
    return [str(one) for one in changed]


def _write_page(path: Path, report: RunPage) -> None:
    """The page, wholly or not at all. Raises `BadConfig` where it cannot be written."""
    from osler.cli.page import render_page
    from osler.errors import BadConfig
    from osler.llm.core.cache import write_whole

    text = render_page(report)
    problem = f"{path} cannot be written"
    with (
        translate_os_errors(problem, BadConfig, "choose another --html"),
        write_whole(path) as draft,
    ):
        draft.write_text(text, encoding="utf-8")


def replay(
    here: CliSession,
    run: Annotated[str, typer.Argument(help='The start of a run\'s id, "last", or its folder.')],
    trace: Trace = None,
) -> None:
    """Replay a recorded run without a model; fails where an event differs."""
    from osler.build.privacy import open_runs
    from osler.cli.run_output import make_report, show_result, watch_events
    from osler.runs.answering import replay as again

    settings = here.load_settings()
    log = find_run(run, settings.runs.path, open_runs(settings))
    question = read_report(log).question
    with watch_events(here, trace, first=("replaying the run", "")) as sink:
        finished = asyncio.run(again(log.parent, sink=sink))
    here.print_line(f"replayed {len(finished.events)} events; all identical")
    here.print_line("")
    show_result(here, make_report(finished, question), film=False)


def _exported_answer(found: RunPage) -> ExportedAnswer:
    from osler.answer.export import ExportedAnswer

    if found.solution is None:
        raise BadRun(f"run {found.run} has no answer", fix="choose another run")
    return ExportedAnswer(found.question, found.solution, found.run, found.strategy, found.snapshot)


def format_of(to: str | None, out: Path | None) -> str:
    """The format that is wanted, or that the file's name ends with; Markdown by default.

    Raises `BadArgument` for an unknown one, and for a file of no text without `out`.
    """
    from osler.answer.export import find_kind
    from osler.errors import BadArgument

    ending = out.suffix.lower() if out and not to else ""
    if ending not in ("", ".txt", *_BY_SUFFIX):
        known = ", ".join(_BY_SUFFIX)
        raise BadArgument(f"{ending} is no ending of a format", fix=f"--to, or one of {known}")
    chosen = to or _BY_SUFFIX.get(ending, "markdown")
    if out is None and not find_kind(chosen).is_text:
        raise BadArgument(f"{chosen} cannot be shown in a terminal", fix="name a file with --out")
    return chosen


def write_out(
    here: CliSession, answers: Sequence[ExportedAnswer], to: str, out: Path | None
) -> None:
    """Writes the file, or without one its text to standard output."""
    from osler.answer.export import write_export

    data = write_export(answers, to)
    if out is None:
        sys.stdout.write(data.decode("utf-8-sig"))
        return
    with translate_os_errors(f"cannot write {out}", OslerError, "name another file with --out"):
        out.write_bytes(data)
    here.report_line(f"written to {out}", {"path": str(out), "format": to, "bytes": len(data)})


EVENTS = "events.jsonl"
LAST, UNREADABLE = "last", "unreadable"


@dataclass(frozen=True)
class ListedRun:
    """One run in a list."""

    id: str
    when: str
    """Local time, to the minute."""
    strategy: str
    question: str
    halt: str


Opens = Callable[[Path], bool]


def list_runs(folder: Path, *, limit: int, opens: Opens = lambda _: True) -> list[ListedRun]:
    """The runs in `folder`, newest first; one that cannot be read is listed as such."""
    from osler.runs.files import run_folders

    return [_list_run(run) for run in islice(filter(opens, run_folders(folder)), limit)]


def find_run(word: str, folder: Path, opens: Opens = lambda _: True) -> Path:
    """The events file that `word` means: "last", a folder, a file or the start of an id.

    Raises `BadRun` when it means none or several.
    """
    from osler.runs.files import run_folders

    runs = list(filter(opens, run_folders(folder)))
    if word == LAST and runs:
        return runs[0] / EVENTS
    for given in (Path(word), Path(word) / EVENTS):
        if given.is_file() and opens(given.parent):
            return given
    # A whole id wins over longer ids that begin with it.
    meant = [run for run in runs if run.name == word]
    meant = meant or [run for run in runs if word and run.name.startswith(word)]
    if len(meant) == 1:
        return meant[0] / EVENTS
    if meant:
        raise BadRun(
            f"{word!r} is the start of {len(meant)} runs",
            fix=f"write more of it: {', '.join(run.name for run in meant[:5])}",
        )
    raise UnknownRun(f"no run {word!r} in {folder}", fix="`osler trace` lists the runs")


def read_report(path: Path) -> RunPage:
    """A recorded run as a page shows it. Raises `BadRun` for what is no log of a run."""
    from osler.runs.files import RECORD, read_whole_run

    if (path.parent / RECORD).is_file():
        read_whole_run(path.parent)
    events = tuple(read_events(path))
    starts = [event for event in events[:2] if not isinstance(event, DangerNoticed)][:1]
    if not starts or not isinstance(starts[0], Started):
        raise BadRun(f"{path} does not begin with a started run", fix="choose another run")
    start, end = starts[0], events[-1]
    return RunPage(
        run=start.run,
        strategy=start.strategy,
        snapshot=start.snapshot,
        models=start.models,
        solution=end.solution if isinstance(end, Answered) else None,
        events=events,
        question=start.question,
    )


def _list_run(run: Path) -> ListedRun:
    from osler.runs.files import read_record

    try:
        record = read_record(run)
    except BadRun as error:
        return ListedRun(run.name, "", "", error.message, UNREADABLE)
    when = datetime.fromisoformat(record.when).astimezone().strftime("%Y-%m-%d %H:%M")
    return ListedRun(record.id, when, record.strategy, record.question.text, record.halt)
