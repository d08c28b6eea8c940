"""A run as it can be told, wherever it is: in this process, in its folder, in the ledger."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path

from osler.app.runs import EVENTS, Record, read_record
from osler.errors import BadRun
from osler.serve.keys import Caller
from osler.serve.ledger import WORKSPACE, Entry, Status
from osler.serve.problems import Refused
from osler.serve.run_manager import Desk, Live
from osler.trace import Answered, Started, from_line
from osler.types import Question, Solution

_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class Told:
    """What there is to say of a run."""

    id: str
    status: Status
    created: str
    strategy: str
    question: Question | None
    """`None` of a run of which only the entry is left."""
    solution: Solution | None
    models: dict[str, str]
    snapshot: str
    seconds: float | None
    code: str
    detail: str
    lines: tuple[str, ...]


async def told(desk: Desk, caller: Caller, id: str) -> Told:
    """Raises `Refused` (404) for a run that is not there, or another workspace's."""
    if live := live_run(desk, caller, id):
        return _of_live(live)
    entry = await _entry(desk, caller, id)
    return await asyncio.to_thread(_of_folder, desk, id, entry)


def live_run(desk: Desk, caller: Caller, id: str) -> Live | None:
    return desk.live(id, caller.workspace) if _ID.fullmatch(id) else None


async def folder_of(desk: Desk, caller: Caller, id: str) -> Path:
    """The folder of a run that finished. Raises `Refused` as `told` does."""
    if live_run(desk, caller, id) is None:
        await _entry(desk, caller, id)
    return _folder(desk, id)


async def _entry(desk: Desk, caller: Caller, id: str) -> Entry | None:
    """`None` for a run that the command line made, which is the default workspace's."""
    if not _ID.fullmatch(id):
        raise _absent(id)
    entry = await asyncio.to_thread(desk.ledger.run, id)
    if entry is None and (caller.workspace != WORKSPACE or not _folder(desk, id).is_dir()):
        raise _absent(id)
    if entry is not None and entry.workspace != caller.workspace:
        raise _absent(id)
    return entry


def _folder(desk: Desk, id: str) -> Path:
    return desk.shelf.settings.runs.path / id


def _absent(id: str) -> Refused:
    return Refused(404, "unknown_run", f"there is no run {id[:64]!r}")


def _of_live(live: Live) -> Told:
    first = _started(live.lines)
    return Told(
        live.id,
        live.status,
        live.created,
        live.settings.strategy.kind,
        live.question,
        live.solution,
        first.models if first else {},
        first.snapshot if first else "",
        live.seconds,
        live.code,
        live.detail,
        tuple(live.lines),
    )


def _of_folder(desk: Desk, id: str, entry: Entry | None) -> Told:
    folder = _folder(desk, id)
    record = _record(folder) if (folder / EVENTS).is_file() else None
    if record is None:
        if entry is None:
            raise _absent(id)
        return _of_entry(entry, desk.ledger.events(id))
    lines = tuple((folder / EVENTS).read_text(encoding="utf-8").splitlines())
    last = from_line(lines[-1]) if lines else None
    return Told(
        id,
        "finished",
        entry.created if entry else record.when,
        record.strategy,
        record.question,
        last.solution if isinstance(last, Answered) else None,
        {str(role): name for role, name in record.models.items()},
        record.snapshot,
        record.seconds,
        "",
        "",
        lines,
    )


def _record(folder: Path) -> Record | None:
    try:
        return read_record(folder)
    except BadRun as error:
        message = f"the run {folder.name} is damaged"
        raise Refused(404, "damaged_run", message) from error


def _of_entry(entry: Entry, lines: list[str]) -> Told:
    first = _started(lines)
    question = first.question if first else None
    if question is None and entry.question:
        question = Question("", entry.question)
    return Told(
        entry.id,
        entry.status,
        entry.created,
        entry.strategy,
        question,
        None,
        first.models if first else {},
        first.snapshot if first else "",
        None,
        entry.code,
        entry.detail,
        tuple(lines),
    )


def _started(lines: list[str]) -> Started | None:
    """The first event, where the run came so far as to have one."""
    if not lines or '"type":"run.started"' not in lines[0]:
        return None
    event = from_line(lines[0])
    return event if isinstance(event, Started) else None
