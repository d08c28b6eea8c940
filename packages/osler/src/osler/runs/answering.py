"""One question answered and kept: the events, the tape, and what was set.

A run is a folder: `run.json` (what was asked, set and found), `events.jsonl` (what
happened) and `tape.jsonl` (what models and indexes said). It appears whole or not
at all, and it is replayed from its own folder alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from osler.answer.abstention import (
    answer_below_notice,
    explain_abstention,
    note_filter,
    note_languages,
    note_unindexed,
    tell_unread,
)
from osler.answer.written import say_unconfirmed
from osler.audit.entries import HeldAnswer, begin_entry, end_entry
from osler.build import Parts, make_run, roles_of, run_budget, run_prices
from osler.build.composers import note_roles
from osler.build.danger import announce_danger, danger_notice
from osler.build.live import live_parts, record_parts, replay_parts
from osler.build.privacy import shared_cautions
from osler.build.strategies import build_solver
from osler.errors import BadConfig, BadRun, OslerError
from osler.llm.recording.tape import Tape
from osler.methods.single_pass import fixed_plan
from osler.runs.files import (
    EVENTS,
    TAPE,
    RunRecord,
    compare_events,
    read_record,
    read_run_events,
    read_run_settings,
    write_run,
)
from osler.settings import Settings
from osler.trace import Answered, Asked, BudgetExceeded, Event, Run, Sink, Solver, Started, to_line
from osler.types import DangerNotice, Question, Solution

if TYPE_CHECKING:
    from osler.methods.omni.dossier import SavedPlan
    from osler.methods.omni.solver import OmniRag

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FinishedRun:
    run: str
    folder: Path | None
    """Where the run is kept; `None` when it is not."""
    solution: Solution | None
    """`None` when only the plan was asked for."""
    seconds: float
    models: dict[str, str]
    snapshot: str
    strategy: str
    events: tuple[Event, ...]

    def _repr_html_(self) -> str | None:
        """In a notebook: the answer with its references, the words to somebody in danger first."""
        from osler.answer.export.layout import ExportedAnswer
        from osler.answer.export.texts import write_html_part

        begun = next((event for event in self.events if isinstance(event, Started)), None)
        if self.solution is None or begun is None:
            return None
        shown = ExportedAnswer(
            begun.question, self.solution, self.run, self.strategy, self.snapshot
        )
        return write_html_part([shown])


def new_run_id(when: datetime) -> str:
    """A name for a run: its second, and six hexadecimal digits of chance."""
    return f"{when:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


async def ask(
    settings: Settings,
    question: Question,
    *,
    sink: Sink | None = None,
    plan_only: bool = False,
    plan: SavedPlan | None = None,
    parts: Parts | None = None,
    id: str = "",
    danger: DangerNotice | None = None,
) -> FinishedRun:
    """Solves the question as the settings say, and keeps the run if they say so.

    `danger` is the notice that a caller found already: the first event, before what may fail.
    `parts` are what is open already (`ResourceCache`); without them all is opened now.
    `plan`: Omni-RAG runs this one. Raises `BadConfig` where the strategy runs none.
    """
    began = time.perf_counter()
    when = datetime.now(UTC)
    held = HeldAnswer(sink, hold=settings.audit.log != "off")
    run = Run(
        id=id or new_run_id(when),
        seed=settings.sampling.seed,
        budget=run_budget(settings),
        sink=held,
    )
    await asyncio.to_thread(begin_entry, settings, run.id, question)
    if danger is None:
        danger = await asyncio.to_thread(danger_notice, settings, question)
    announce_danger(danger, run)
    # The tape records what parts say, whoever opened them; a replay needs nothing else.
    live = parts or await live_parts(settings)
    tape = Tape(date=when.isoformat(timespec="seconds"))
    parts = record_parts(live, tape)
    run.prices = run_prices(settings, parts.names)
    if plan_only:
        await _propose_plan(build_solver(settings, parts, plan), parts, question, run)
        solution = None
    else:
        solution = await _solve_question(settings, parts, question, run, plan, danger)
    seconds = round(time.perf_counter() - began, 3)
    folder = None
    if solution is not None:
        kept = _make_record(settings, parts, run, question, when, seconds, solution, plan)
        tape.prompts = _prompt_hashes(run.events)
        folder = await finish_write(_keep_run, settings, kept, run.events, tape)
    held.release()
    return FinishedRun(
        run.id,
        folder,
        solution,
        seconds,
        dict(parts.names.items()),
        parts.snapshot,
        settings.strategy.kind,
        tuple(run.events),
    )


def _make_record(
    settings: Settings,
    parts: Parts,
    run: Run,
    question: Question,
    when: datetime,
    seconds: float,
    solution: Solution,
    plan: SavedPlan | None = None,
) -> RunRecord:
    return RunRecord(
        id=run.id,
        when=when.isoformat(timespec="seconds"),
        question=question,
        strategy=settings.strategy.kind,
        models=parts.names,
        sources=parts.sources,
        snapshot=parts.snapshot,
        seconds=seconds,
        halt=solution.halt,
        settings=settings.model_dump(mode="json"),
        carriers=parts.carriers,
        offers=parts.offers,
        plan=plan,
        danger=solution.danger,
        unindexed=parts.unindexed,
    )


def save_run(
    folder: Path,
    settings: Settings,
    parts: Parts,
    tape: Tape,
    run: Run,
    question: Question,
    when: datetime,
    seconds: float,
    solution: Solution,
) -> str:
    """Keeps a run that another led, so that `replay` can repeat it; returns its folder's name.

    Raises `StorageFailed` where it cannot be written.
    """
    readable = re.sub(r"[^\w.=-]+", "_", run.id)[:100]
    place = folder / f"{readable}-{secrets.token_hex(4)}"
    tape.date, tape.prompts = when.isoformat(timespec="seconds"), _prompt_hashes(run.events)
    kept = _make_record(settings, parts, run, question, when, seconds, solution)
    return write_run(place, kept, run.events, tape).name


async def open_planning(settings: Settings, parts: Parts | None = None) -> tuple[OmniRag, Parts]:
    """Omni-RAG over live parts, or over these. Raises `BadConfig` for another strategy."""
    from osler.methods.omni.solver import OmniRag

    kind = settings.strategy.kind
    if kind != "omni-rag":
        raise BadConfig(f"{kind} makes no source plan", fix="add --strategy omni-rag")
    parts = parts or await live_parts(settings)
    solver = build_solver(settings, parts)
    assert isinstance(solver, OmniRag), "the settings name it"  # noqa: S101
    return solver, parts


async def plan_question(
    settings: Settings,
    question: Question,
    *,
    search: bool = False,
    sink: Sink | None = None,
    parts: Parts | None = None,
) -> SavedPlan:
    """Omni-RAG's plan for the question, and with `search` what it finds.

    `parts` are what is open already. Raises `BadConfig` for another strategy, and `BadRun`
    where the budget ends first.
    """
    from osler.build.planning import planner_name
    from osler.methods.omni.dossier import save_plan

    run = Run("plan", settings.sampling.seed, run_budget(settings), sink=sink)
    announce_danger(await asyncio.to_thread(danger_notice, settings, question), run)
    solver, parts = await open_planning(settings, parts)
    run.prices = run_prices(settings, parts.names)
    try:
        proposal = await solver.propose_plan(question, run)
    except BudgetExceeded as spent:
        raise BadRun(f"there is no plan: spent: {spent}", fix="raise the [budget]") from spent
    results = await solver.search_plan(proposal, run) if search else dict(proposal.found)
    return save_plan(
        proposal.plan,
        parts.sources,
        {query: result for query, result in results.items() if query in proposal.plan.queries},
        question=question,
        dropped=proposal.dropped,
        planner=planner_name(settings, parts),
        snapshot=parts.snapshot,
    )


async def replay(folder: Path, *, sink: Sink | None = None) -> FinishedRun:
    """Lets the run happen again from its tape, without a model or a knowledge base.

    Raises `BadRun` at the first event that is not, byte for byte, the recorded one,
    and `TapeMiss` where the code asks for what was never recorded.
    """
    began = time.perf_counter()
    record = read_record(folder)
    settings = read_run_settings(folder, record)
    # An older log lacks fields that came later; both sides are written as this version writes.
    expected = [to_line(event) for event in read_run_events(folder / EVENTS)]
    names = {role: record.models.get(role, "") for role in roles_of(settings)}
    tape = Tape.read(folder / TAPE)
    parts = replay_parts(
        tape,
        names,
        record.sources,
        record.snapshot,
        record.carriers,
        record.offers,
        record.unindexed,
    )
    run = make_run(settings, parts.names, record.id, sink)
    announce_danger(record.danger, run)
    solution = await _solve_question(
        settings, parts, record.question, run, record.plan, record.danger
    )
    compare_events(folder / EVENTS, expected, [to_line(event) for event in run.events])
    return FinishedRun(
        record.id,
        folder,
        solution,
        round(time.perf_counter() - began, 3),
        dict(parts.names.items()),
        record.snapshot,
        record.strategy,
        tuple(run.events),
    )


async def _propose_plan(solver: Solver, parts: Parts, question: Question, run: Run) -> None:
    """Records the source plan alone; a strategy without a planner proposes the question itself."""
    from osler.methods.omni.solver import OmniRag

    if isinstance(solver, OmniRag):
        with contextlib.suppress(BudgetExceeded):  # the run says which bound it was
            await solver.propose_plan(question, run)
    else:
        run.emit(fixed_plan(question, parts.sources))


async def _solve_question(
    settings: Settings,
    parts: Parts,
    question: Question,
    run: Run,
    plan: SavedPlan | None = None,
    danger: DangerNotice | None = None,
) -> Solution:
    solver = build_solver(settings, parts, plan)
    run.emit(
        Started(
            run.id,
            settings.strategy.kind,
            question,
            parts.snapshot,
            dict(parts.names.items()),
            run.seed,
            run.budget,
            notes_of=note_roles(settings),
        )
    )
    explained = explain_abstention(await solver.solve(question, run), run)
    solved = tell_unread(say_unconfirmed(explained), run)
    answer = answer_below_notice(solved.answer, question, danger)
    solution = replace(solved, answer=answer, danger=danger)
    if shared := shared_cautions(
        settings, parts.sources, roles_of(settings), solution.answer.language
    ):
        answer = solution.answer
        solution = replace(solution, answer=replace(answer, cautions=(*answer.cautions, *shared)))
    solution = note_languages(note_unindexed(solution, parts.unindexed))
    described = settings.retrieve.describe_filter(solution.answer.language)
    solution = note_filter(solution, described)
    run.emit(Answered(solution))
    return solution


def _prompt_hashes(events: Sequence[Event]) -> tuple[str, ...]:
    """Identities of the wordings that were used."""
    asked = {event.prompt for event in events if isinstance(event, Asked)}
    return tuple(sorted(name for name in asked if "@" in name))


def _keep_run(
    settings: Settings, record: RunRecord, events: Sequence[Event], tape: Tape
) -> Path | None:
    """Writes the run, where runs are kept, and its entry in the audit log, where there is one."""
    place = settings.runs.path / record.id
    folder = write_run(place, record, events, tape) if settings.runs.keep else None
    try:
        facts = {
            "run": record.id,
            "strategy": record.strategy,
            "sources": list(record.sources),
            "models": record.models,
            "snapshot": record.snapshot,
        }
        end_entry(settings, record.question, facts, events, folder)
    except OslerError:  # an answer that is not on record is none
        shutil.rmtree(place, ignore_errors=True)
        raise
    return folder


async def finish_write(write: Callable[..., T], *values: Any) -> T:
    """Runs `write(*values)` in a thread to its end, even if the task is cancelled meanwhile."""
    task = asyncio.ensure_future(asyncio.to_thread(write, *values))
    while not task.done():
        # The write cannot be stopped: whoever gave up on it would not know what is on disk.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    return task.result()
