"""Starts, follows and stops runs, for every endpoint.

A run's events are lines in a list. Whoever watches reads on from a number, at its own
speed, and waits at the end: there is no queue a slow reader could fill, and two readers
cannot get different streams.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial

from osler.build import Parts
from osler.build.danger import danger_notice
from osler.build.resource_cache import ResourceCache
from osler.errors import BadConfig, OslerError, StorageFailed, translate_os_errors
from osler.kb.store.durable import probe_folder
from osler.methods.omni.dossier import SavedPlan
from osler.runs import answering
from osler.runs.files import RECORD
from osler.settings import ServeSettings, Settings
from osler.trace import Answered, Asked, DangerNoticed, Event, to_line
from osler.types import DangerNotice, Question
from osler_serve.active_runs import ActiveRun, FairRoom, line_of_end, name_run
from osler_serve.admission import Admission, TokenBudget, WrittenTogether
from osler_serve.keys import Caller
from osler_serve.ledger import Ledger, LedgerEntry
from osler_serve.problems import RefusedRequest, refusal_for
from osler_serve.replies import Status
from osler_serve.scopes import reach_of
from osler_serve.shared_runs import SharedRuns

_LOG = logging.getLogger("osler_serve")
# Runs that ended and are still answered for from memory.
_KEPT = 256

Watcher = Callable[["ActiveRun", Event], None]


class RunManager:
    """Bounded: what can neither be worked on nor wait is sent away with a time to come back."""

    def __init__(
        self,
        shelf: ResourceCache,
        ledger: Ledger,
        limits: ServeSettings,
        watchers: tuple[Watcher, ...] = (),
        watch_end: Callable[[ActiveRun], None] = lambda _: None,
        shared: SharedRuns | None = None,
    ) -> None:
        self.shared = shared or SharedRuns(ledger, shelf.settings.home / "serve" / "live")
        self.shelf = shelf
        self.ledger = ledger
        self.limits = limits
        self.draining = False
        self.pace = Admission()
        self.tokens = TokenBudget(ledger, self.shared)
        self._watchers = watchers
        self._watch_end = watch_end
        self._live: dict[str, ActiveRun] = {}
        self._ended: OrderedDict[str, ActiveRun] = OrderedDict()
        # Runs that are over, and of which the ledger does not know it yet.
        self._unfiled: dict[str, ActiveRun] = {}
        self._planning = 0
        self._room = FairRoom(limits.runs)
        self._begun = WrittenTogether(self._begin_records)
        self._took = 1.0
        """Seconds of the last runs, roughly: the wait that a client is advised."""

    @property
    def unfinished(self) -> int:
        """Runs, and plans that are being made: both take model calls."""
        return len(self._live) + self._planning

    @property
    def running(self) -> int:
        return sum(live.status == "running" for live in self._live.values())

    def count_ahead(self, id: str) -> int:
        """Runs that wait for a place before this one does; 0 for one that does not wait."""
        waiting = self._room.list_waiting()
        known = set(waiting)
        late = [each.id for each in self._live.values() if each.status == "queued"]
        waiting += [each for each in late if each not in known]
        return waiting.index(id) if id in waiting else 0

    async def start_run(
        self,
        caller: Caller,
        question: Question,
        settings: Settings,
        plan: SavedPlan | None = None,
        earlier: Sequence[str] = (),
    ) -> ActiveRun:
        """The run, which continues without a listener; with `plan`, of that one.

        `earlier` is what the asker wrote before in the conversation: it counts for `danger` alone.

        Raises `RefusedRequest`: 422 for a source that is not there, 429 when the caller has too
        many unfinished ones, 503 when there is no place to wait or the server is about to stop.
        """
        danger = await asyncio.to_thread(danger_notice, settings, question, earlier)
        await self._check_request(caller, settings, danger)
        settings, reserved = self.tokens.reserve(caller, settings)
        now = datetime.now(UTC)
        live = ActiveRun(
            name_run(now),
            caller,
            question,
            settings,
            now.isoformat(timespec="milliseconds"),
            plan,
            danger,
            reserved=reserved,
        )
        self._take_place(live)
        try:
            # Before it is acknowledged: after a crash the run is known as interrupted.
            await self._begun.put(live)
        except BaseException as error:
            self._release_place(live)
            if isinstance(error, StorageFailed):
                refused = refusal_for(error)
                refused.danger = danger
                raise refused from error
            raise
        return self._set_to_work(live)

    def _take_place(self, live: ActiveRun) -> None:
        if live.danger is not None:
            live.append_line(to_line(DangerNoticed(live.danger)))
        self._live[live.id] = live
        live.caller.running += 1
        live.caller.reserved += live.reserved

    def _set_to_work(self, live: ActiveRun) -> ActiveRun:
        live.task = asyncio.create_task(self._work_on(live), name=f"run {live.id}")
        return live

    def begin_again(self, live: ActiveRun) -> None:
        """Works on a run that a server of this home left when it died."""
        self._take_place(live)
        self._share_lines(live)
        self._set_to_work(live)

    def _share_lines(self, live: ActiveRun) -> None:
        self.shared.open_lines(live.id, live.lines)
        live.share = partial(self.shared.write_line, live.id)

    async def make_plan(self, caller: Caller, question: Question, settings: Settings) -> SavedPlan:
        """A source plan. It takes a place like a run, and is not kept.

        Raises `RefusedRequest` as `start` does, and 503 when it takes longer than a run may.
        """
        danger = await asyncio.to_thread(danger_notice, settings, question)
        await self._check_request(caller, settings, danger)
        settings, reserved = self.tokens.reserve(caller, settings)
        caller.running += 1
        caller.reserved += reserved
        self._planning += 1
        spent = 0

        def count(event: Event) -> None:
            nonlocal spent
            if isinstance(event, Asked):
                spent += event.usage.tokens

        try:
            async with (
                self._room.hold_place(caller.id),
                asyncio.timeout(self.limits.run_seconds),
            ):
                parts = await self.shelf.parts_for(settings)
                return await answering.plan_question(settings, question, parts=parts, sink=count)
        except TimeoutError:
            said = f"no plan within {self.limits.run_seconds:g} seconds"
            raise RefusedRequest(503, "timeout", said, retry_after=self._took) from None
        finally:
            self._planning -= 1
            caller.running -= 1
            caller.reserved -= reserved
            await asyncio.to_thread(self.tokens.book, caller, spent)

    def is_kept(self, id: str) -> bool:
        """Whether the run is whole in its folder."""
        return (self.shelf.settings.runs.path / id / RECORD).is_file()

    def _begin_records(self, runs: list[ActiveRun]) -> None:
        self._file_late()
        self._check_folder()  # the ledger grows where a full inode table takes no folder of a run
        # What is not kept is told to nobody else, and nobody else goes on with it.
        told = [live for live in runs if self.shared.worker and live.settings.runs.keep]
        claims = {live.id: self.shared.make_claim(live) for live in told}
        self.ledger.begin_runs((self._ledger_entry(live), claims.get(live.id)) for live in runs)
        for live in told:
            self._share_lines(live)

    def check_writable(self) -> None:
        """Raises `StorageFailed` where a run could not be kept."""
        self.ledger.check_writable()
        self._file_late()
        self._check_folder()

    def _check_folder(self) -> None:
        if self.shelf.settings.runs.keep:
            fix = "check free disk space and write permissions"
            with translate_os_errors("runs cannot be kept", StorageFailed, fix):
                probe_folder(self.shelf.settings.runs.path)

    def _release_place(self, live: ActiveRun) -> None:
        live.caller.running -= 1
        live.caller.reserved -= live.reserved
        del self._live[live.id]

    async def _check_request(
        self, caller: Caller, settings: Settings, danger: DangerNotice | None
    ) -> None:
        """A rejected request gets the notice all the same."""
        try:
            await self.shelf.require_sources(settings)
            self._require_place(caller)
        except (BadConfig, RefusedRequest) as error:
            refused = refusal_for(error)
            refused.danger = danger
            raise refused from error

    def _require_place(self, caller: Caller) -> None:
        if self.draining:
            raise RefusedRequest(503, "stopping", "the server is about to stop", retry_after=10.0)
        elsewhere, _ = self.ledger.count_elsewhere(caller.id, self.shared.worker)
        if (running := caller.running + elsewhere) >= caller.runs:
            said = f"{running} runs of yours are not finished; the limit is {caller.runs}"
            raise RefusedRequest(429, "too_many_runs", said, retry_after=self._took)
        if self.unfinished >= self.limits.runs + self.limits.waiting:
            raise RefusedRequest(503, "full", "all places are taken", retry_after=self._took)

    async def _work_on(self, live: ActiveRun) -> None:
        began = time.perf_counter()
        try:
            await self.pace.wait_for_lull()
            async with (
                self._room.hold_place(live.caller.id, live.id),
                asyncio.timeout(self.limits.run_seconds),
            ):
                live.status = "running"
                await self._solve_run(live)
            self._set_outcome(live, "finished")
        except asyncio.CancelledError:
            self._set_outcome(live, "cancelled", "cancelled", "it was asked to stop")
        except TimeoutError:
            said = f"over {self.limits.run_seconds:g} seconds"
            self._set_outcome(live, "failed", "timeout", said)
        except OslerError as error:
            self._set_outcome(live, "failed", type(error).__name__, str(error))
        except Exception:
            # A defect ends one run, not the server; what it was is for the log alone.
            _LOG.exception("run %s failed", live.id)
            said = "something failed inside; see the server's log"
            self._set_outcome(live, "failed", "internal", said)
        finally:
            live.seconds = round(time.perf_counter() - began, 3)
            # A moving mean: one slow run does not send clients away for minutes.
            self._took += 0.2 * (live.seconds - self._took)
            try:
                await self._file_run(live)
            finally:
                self._release_place(live)

    async def _solve_run(self, live: ActiveRun) -> None:
        def record_event(event: Event) -> None:
            if isinstance(event, DangerNoticed):  # said when the run was taken on
                return
            live.append_line(to_line(event))
            if isinstance(event, Asked):
                live.spent += event.usage.tokens
            if isinstance(event, Answered):
                live.solution = event.solution
            for watch in self._watchers:
                watch(live, event)

        parts: Parts = await self.shelf.parts_for(live.settings)
        await answering.ask(
            live.settings,
            live.question,
            sink=record_event,
            parts=parts,
            id=live.id,
            plan=live.plan,
            danger=live.danger,
        )

    def _set_outcome(
        self, live: ActiveRun, status: Status, code: str = "", detail: str = ""
    ) -> None:
        """The answer is the last event of a run that finished; any other says how it ended."""
        live.code, live.detail = code, detail
        if status != "finished":
            live.solution = None  # an answer that could not be kept is none
            live.lines.append(line_of_end(status, code, detail))
        live.status = status

    async def _file_run(self, live: ActiveRun) -> None:
        """Puts the run where a reload finds it; only then do its watchers learn that it ended."""
        self._ended[live.id] = live
        # The oldest go first; the ledger and the folders still answer for them.
        while len(self._ended) > _KEPT:
            self._ended.popitem(last=False)
        try:
            await answering.finish_write(self._write_end, live)
        except StorageFailed as error:
            # Its place is free all the same, and this process knows how it ended.
            self._unfiled[live.id] = live
            _LOG.error("the end of run %s is not on disk yet: %s", live.id, error)
        finally:
            self._watch_end(live)
            for last in live.at_end:
                last()
            live.wake_watchers()

    def _write_end(self, live: ActiveRun) -> None:
        alone = live.settings.runs.keep and live.status != "finished"
        events = "\n".join(live.lines) if alone else ""
        self.ledger.end_run(live.id, live.status, code=live.code, detail=live.detail, events=events)
        self.shared.close_lines(live.id)
        self.tokens.book(live.caller, live.spent)

    def _file_late(self) -> None:
        """Writes the ends that could not be written when they came. Raises `StorageFailed`."""
        for live in list(self._unfiled.values()):
            self._write_end(live)
            self._unfiled.pop(live.id, None)

    def _ledger_entry(self, live: ActiveRun) -> LedgerEntry:
        return LedgerEntry(
            live.id,
            live.caller.workspace,
            live.caller.id,
            live.created,
            live.status,
            live.settings.strategy.kind,
            live.question.text if live.settings.runs.keep else "",
            reach=json.dumps(asdict(reach_of(live.settings))),
        )

    def find_run(self, id: str, workspace: str) -> ActiveRun | None:
        """A run of this process; `None` for another's, as for one that is not there."""
        found = self.find_any(id)
        return found if found and found.caller.workspace == workspace else None

    def find_any(self, id: str) -> ActiveRun | None:
        """A run of this process, whoever asked."""
        return self._live.get(id) or self._ended.get(id) or self._unfiled.get(id)

    def drop_ended(self, id: str) -> None:
        """Forgets a run that is over and deleted."""
        self._ended.pop(id, None)

    async def cancel_run(self, live: ActiveRun) -> None:
        """Stops its model call and returns when it is put away; one that is over stays so."""
        if live.task is None or live.is_over or live.solution is not None:
            return
        live.task.cancel()
        await asyncio.wait([live.task])

    async def follow_lines(
        self, live: ActiveRun, after: int = 0, *, ping: float | None = None
    ) -> AsyncIterator[tuple[int, str] | None]:
        """Lines after the number `after`, as they come, to the end; `None` = `ping` seconds
        without one."""
        while True:
            while after < len(live.lines):
                after += 1
                yield after, live.lines[after - 1]
            if live.is_over:
                return
            try:
                await asyncio.wait_for(live.wait_for_line(), ping)
            except TimeoutError:
                yield None

    async def drain(self, seconds: float) -> None:
        """Takes nothing new, and gives what runs so long to end; the rest is cancelled."""
        self.draining = True
        if not (tasks := [live.task for live in self._live.values() if live.task is not None]):
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        if late:
            for task in late:
                task.cancel()
            await asyncio.wait(late)
