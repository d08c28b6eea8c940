"""The folder of recorded runs: lists them, and finds one by the start of its id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from osler.cli.render import RunPage
from osler.errors import BadRun
from osler.trace import Answered, DangerNoticed, Started, read_events

if TYPE_CHECKING:
    pass

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
    raise BadRun(f"no run {word!r} in {folder}", fix="`osler trace` lists the runs")


def read_report(path: Path) -> RunPage:
    """A recorded run as a page shows it. Raises `BadRun` for what is no log of a run."""
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
