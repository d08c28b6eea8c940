"""A run wherever it is (this process, its folder, the ledger), and the list of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from heapq import merge
from itertools import islice
from pathlib import Path

from osler.errors import BadRun, KnowledgeBaseError, StorageFailed
from osler.runs.files import EVENTS, find_changed, read_record, read_whole_run
from osler.settings.sections import AccessSettings
from osler.trace import (
    Answered,
    DangerNoticed,
    Event,
    ProofStep,
    Started,
    from_line,
    proof_steps,
    read_events,
)
from osler.types import DangerNotice, Question, Solution
from osler_serve import replies
from osler_serve.active_runs import ActiveRun, line_of_end
from osler_serve.keys import Caller
from osler_serve.ledger import WORKSPACE, LedgerEntry
from osler_serve.problems import RefusedRequest
from osler_serve.run_manager import RunManager
from osler_serve.scopes import RunReach, reach_from_lines, reach_of, read_reach, recorded_reach

_DANGER = '"type":"run.danger"}'
_PLANNED = '"type":"lf.parsed"'
_OF_STEPS = (_PLANNED, '"type":"lf.node"', '"type":"math.run"', '"type":"run.started"')
"""In lines of events that steps are made of; the line that ends a run is no event."""
_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class RunView:
    """All that can be reported of a run."""

    id: str
    status: replies.Status
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

    @property
    def notes_of(self) -> tuple[str, ...]:
        """As in `Started`."""
        begun = started_event(list(self.lines[:2]))
        return begun.notes_of if begun else ()

    @property
    def steps(self) -> tuple[ProofStep, ...]:
        """By which steps the answer came about."""
        if not any(_PLANNED in line for line in self.lines):
            return ()
        told = (line for line in self.lines if any(kind in line for kind in _OF_STEPS))
        return proof_steps(map(from_line, told))

    def report(self) -> replies.RunReport:
        return replies.RunReport.of(
            self,
            run_id=self.id,
            status=self.status,
            created=self.created,
            events=len(self.lines),
            ahead=0,
            changed=[],
            outdated=False,
            error=replies.RunError(code=self.code, detail=self.detail) if self.code else None,
            notice=replies.NOTICE,
        )

    @property
    def danger(self) -> DangerNotice | None:
        """The emergency notice shown first."""
        if not self.lines or not self.lines[0].endswith(_DANGER):
            return None
        event = from_line(self.lines[0])
        return event.notice if isinstance(event, DangerNoticed) else None


async def load_run(desk: RunManager, caller: Caller, id: str) -> RunView:
    """Raises `RefusedRequest` (404) for a run that is not there, or another workspace's."""
    if live := active_run(desk, caller, id):
        strategy, lines = live.settings.strategy.kind, live.lines
        return _view_lines(live, strategy, live.question, lines, live.solution, live.seconds)
    entry = await _find_entry(desk, caller, id)
    return await asyncio.to_thread(_view_folder, desk, id, entry)


async def list_changed(desk: RunManager, view: RunView) -> list[replies.ChangedView]:
    """What of the evidence changed since; nothing where it cannot be compared."""
    if view.solution is None or not view.solution.answer.evidence:
        return []
    try:
        kb = (await desk.shelf.open_knowledge()).kb
    except KnowledgeBaseError:
        return []
    answer = view.solution.answer
    found = await asyncio.to_thread(find_changed, desk.shelf.settings, kb, answer)
    return [replies.ChangedView.from_value(one) for one in found]


async def outdated_runs(desk: RunManager, runs: Iterable[str]) -> set[str]:
    """Those that finished over another state of the knowledge base.

    Of a run that read passages without a vector nothing is said: its state has no name, and
    becomes another by the vectors alone.
    """
    try:
        kb = (await desk.shelf.open_knowledge()).kb
    except KnowledgeBaseError:
        return set()

    def compare_snapshots() -> set[str]:
        now, found = kb.snapshot, set[str]()
        for run in runs:
            with suppress(BadRun):  # one that is not finished, or gone
                record = read_record(desk.shelf.settings.runs.path / run)
                if record.snapshot not in ("", now) and not record.unindexed:
                    found.add(run)
        return found

    return await asyncio.to_thread(compare_snapshots)


def active_run(desk: RunManager, caller: Caller, id: str) -> ActiveRun | None:
    """A run of this process that the caller may see."""
    found = desk.find_run(id, caller.workspace) if _ID.fullmatch(id) else None
    return found if found and reach_of(found.settings).is_open_to(_access(desk, caller)) else None


async def is_elsewhere(desk: RunManager, caller: Caller, id: str) -> bool:
    """Whether another server of this home works on the run, which the caller may see."""
    if desk.find_any(id) is not None or not await is_visible_run(desk, caller, id):
        return False
    return await asyncio.to_thread(desk.shared.find_lines, id) is not None


async def stop_run(desk: RunManager, caller: Caller, id: str) -> None:
    """Cancels a run that the caller may see, at whichever server of this home; returns when it is
    put away, or the other server long did not answer."""
    if live := active_run(desk, caller, id):
        await desk.cancel_run(live)
        return
    for _ in range(_STOP_LOOKS):
        if not await is_elsewhere(desk, caller, id):
            return
        await asyncio.to_thread(desk.shared.ask_to_stop, id)
        await asyncio.sleep(_STOP_PAUSE)


_STOP_LOOKS, _STOP_PAUSE = 100, 0.1


def visible_entries(
    desk: RunManager, caller: Caller, before: str, limit: int
) -> tuple[list[LedgerEntry], str | None]:
    """A page of `walk_entries`; where the next one begins. Blocks."""
    shown = list(islice(walk_entries(desk, caller, before), limit))
    return shown, shown[-1].id if len(shown) == limit else None


def walk_entries(desk: RunManager, caller: Caller, before: str = "") -> Iterator[LedgerEntry]:
    """The caller's workspace's runs that it may see, the newest first; those of the command line,
    which no ledger knows, among them. Blocks."""
    access = _access(desk, caller)
    own = _walk_folders(desk, before) if caller.workspace == WORKSPACE else iter(())
    every = merge(_walk_ledger(desk, caller, before), own, key=lambda one: one.id, reverse=True)
    for entry in every:
        known = None if entry.caller == _COMMAND_LINE else entry
        if _reach(desk, entry.id, known).is_open_to(access):
            yield entry


def _walk_ledger(desk: RunManager, caller: Caller, before: str) -> Iterator[LedgerEntry]:
    while page := desk.ledger.list_runs(caller.workspace, before=before, limit=_PAGE):
        yield from page
        before = page[-1].id


_PAGE = 100
_COMMAND_LINE = "the command line"


def _walk_folders(desk: RunManager, before: str) -> Iterator[LedgerEntry]:
    """The finished runs that are in their folders alone, by their names."""
    folder = desk.shelf.settings.runs.path
    names = sorted(os.listdir(folder), reverse=True) if folder.is_dir() else []
    for name in names:
        if not _ID.fullmatch(name) or (before and name >= before):
            continue
        with suppress(BadRun, StorageFailed):  # a damaged one, or one that is being written
            if desk.ledger.find_run(name) is None:
                yield _entry_of(folder / name)


@lru_cache(maxsize=4_096)  # as of `_kept_reach`
def _entry_of(folder: Path) -> LedgerEntry:
    """Raises `BadRun`."""
    record = read_record(folder)
    who = (WORKSPACE, _COMMAND_LINE, record.when)
    return LedgerEntry(folder.name, *who, "finished", record.strategy, record.question.text)


def _access(desk: RunManager, caller: Caller) -> AccessSettings:
    return caller.scope.narrow_settings(desk.shelf.settings).access


def _reach(desk: RunManager, id: str, entry: LedgerEntry | None) -> RunReach:
    """What a run that is over could find; of one that no ledger knows, by what it left."""
    if entry is not None and (stored := read_reach(entry.reach)):
        return stored
    folder = _run_folder(desk, id)
    try:
        return _kept_reach(folder)
    except BadRun:
        log = folder / EVENTS
        text = log.read_text("utf-8", "replace") if log.is_file() else ""
        return reach_from_lines(desk.shelf.settings.access, [*desk.ledger.run_lines(id), text])


# A kept run does not change; who asks again must not wait longer.
_kept_reach = lru_cache(maxsize=4_096)(recorded_reach)


async def finished_folder(desk: RunManager, caller: Caller, id: str) -> Path:
    """The folder of a run that finished. Raises `RefusedRequest` as `load_run` does."""
    if active_run(desk, caller, id) is None:
        await _find_entry(desk, caller, id)
    return _run_folder(desk, id)


async def _find_entry(desk: RunManager, caller: Caller, id: str) -> LedgerEntry | None:
    """`None` for a run that the command line made, which is the default workspace's."""
    if not _ID.fullmatch(id):
        raise _unknown_run(id)
    entry, is_open = await asyncio.to_thread(_find_visible, desk, caller, id)
    if not is_open:
        raise _unknown_run(id)
    return entry


async def is_visible_run(desk: RunManager, caller: Caller, id: str) -> bool:
    """Whether the caller may see the run, which may be over or not."""
    return await asyncio.to_thread(sees_run, desk, caller, id)


def sees_run(desk: RunManager, caller: Caller, id: str) -> bool:
    """As `is_visible_run`. Blocks."""
    if active_run(desk, caller, id):
        return True
    return bool(_ID.fullmatch(id)) and _find_visible(desk, caller, id)[1]


def _find_visible(desk: RunManager, caller: Caller, id: str) -> tuple[LedgerEntry | None, bool]:
    """The entry, and whether the caller may see the run.

    Of a run that is not there, or another workspace's, the same is done as of one over a source
    that the caller may not see: the time does not tell which it is (benchmarks/hidden_runs.py).
    """
    entry, in_folder = desk.ledger.find_run(id), _run_folder(desk, id).is_dir()
    workspace = entry.workspace if entry else WORKSPACE if in_folder else None
    is_mine = workspace == caller.workspace
    reach = _reach(desk, id, entry) if is_mine else read_reach(_NO_REACH)
    assert reach is not None  # noqa: S101  `_NO_REACH` is one
    return entry, reach.is_open_to(_access(desk, caller)) and is_mine


_NO_REACH = json.dumps(asdict(RunReach(("",), ())))


def _run_folder(desk: RunManager, id: str) -> Path:
    return desk.shelf.settings.runs.path / id


def _unknown_run(id: str) -> RefusedRequest:
    return RefusedRequest(404, "unknown_run", f"there is no run {id[:64]!r}")


def _view_folder(desk: RunManager, id: str, entry: LedgerEntry | None) -> RunView:
    folder = _run_folder(desk, id)
    try:
        record = read_whole_run(folder) if (folder / EVENTS).is_file() else None
    except BadRun as error:
        raise _damaged_run(folder) from error
    if record is None:
        if entry is None:
            raise _unknown_run(id)
        return _view_entry(entry, desk.ledger.run_lines(id) or desk.shared.read_lines(id))
    lines, last = _load_events(folder)
    return RunView(
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


def _load_events(folder: Path) -> tuple[tuple[str, ...], Event]:
    """The lines, each of which is an event, and the last of them."""
    try:
        events = list(read_events(folder / EVENTS))
    except BadRun as error:
        raise _damaged_run(folder) from error
    if not events:
        raise _damaged_run(folder)
    # A line holds no line break, whichever of them (U+2028) a text in it has.
    lines = (folder / EVENTS).read_bytes().decode().removesuffix("\n").split("\n")
    return tuple(lines), events[-1]


def _damaged_run(folder: Path) -> RefusedRequest:
    return RefusedRequest(404, "damaged_run", f"the run {folder.name} is damaged")


def _view_entry(entry: LedgerEntry, lines: list[str]) -> RunView:
    first = started_event(lines)
    if entry.status == "interrupted":  # whoever had the run could not say that it is over
        lines = [*lines, line_of_end("failed", entry.code, entry.detail)]
    question = first.question if first else None
    if question is None and entry.question:
        question = Question("", entry.question)
    return _view_lines(entry, entry.strategy, question, lines)


def _view_lines(
    told: ActiveRun | LedgerEntry,
    strategy: str,
    question: Question | None,
    lines: list[str],
    solution: Solution | None = None,
    seconds: float | None = None,
) -> RunView:
    first = started_event(lines)
    return RunView(
        *(told.id, told.status, told.created, strategy, question, solution),
        models=first.models if first else {},
        snapshot=first.snapshot if first else "",
        seconds=seconds,
        code=told.code,
        detail=told.detail,
        lines=tuple(lines),
    )


def started_event(lines: list[str]) -> Started | None:
    """The event that begins the run, where it came so far."""
    begun = next((line for line in lines[:2] if '"type":"run.started"' in line), None)
    event = from_line(begun) if begun is not None else None
    return event if isinstance(event, Started) else None
