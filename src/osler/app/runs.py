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
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from osler.app import wiring
from osler.app.config import Role, Settings
from osler.errors import BadConfig, BadRun
from osler.llm.recording.tape import Tape
from osler.methods.baselines.rag import fixed_plan
from osler.methods.omni.describe import Offer
from osler.methods.omni.dossier import Dossier, dossier
from osler.methods.omni.solver import OmniRag
from osler.trace import (
    Answered,
    Asked,
    Event,
    Run,
    Sink,
    Solver,
    Spent,
    Started,
    read_events,
    to_line,
)
from osler.types import Question, Solution

RECORD, EVENTS, TAPE = "run.json", "events.jsonl", "tape.jsonl"


@dataclass(frozen=True, slots=True)
class Record:
    """What `run.json` holds."""

    id: str
    when: str
    """ISO 8601, UTC."""
    question: Question
    strategy: str
    models: dict[Role, str]
    sources: tuple[str, ...]
    snapshot: str
    seconds: float
    """Wall clock."""
    halt: str
    settings: dict[str, Any]
    carriers: tuple[str, ...] = ()
    """What could be looked up in the concept graph besides the source."""
    offers: tuple[Offer, ...] = ()
    """The sources as the planner was told of them."""
    plan: Dossier | None = None
    """The one that was given, where nobody planned."""


@dataclass(frozen=True, slots=True)
class Finished:
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


def new_id(when: datetime, digits: int = 6) -> str:
    """A name for a run: its second, and `digits` hexadecimal digits of chance."""
    return f"{when:%Y%m%d-%H%M%S}-{secrets.token_hex(digits // 2)}"


async def ask(
    settings: Settings,
    question: Question,
    *,
    sink: Sink | None = None,
    plan_only: bool = False,
    plan: Dossier | None = None,
    parts: wiring.Parts | None = None,
    id: str = "",
) -> Finished:
    """Solves the question as the settings say, and keeps the run if they say so.

    `parts` are what is open already (`wiring.Shelf`); without them all is opened now.
    `plan`: Omni-RAG runs this one. Raises `BadConfig` where the strategy runs none.
    """
    began = time.perf_counter()
    when = datetime.now(UTC)
    live = parts or await wiring.live(settings)
    tape = Tape(date=when.isoformat(timespec="seconds"))
    parts = wiring.recorded(live, tape)
    run = Run(
        id=id or new_id(when),
        seed=settings.sampling.seed,
        budget=wiring.budget(settings),
        sink=sink,
    )
    if plan_only:
        await _propose(wiring.solver(settings, parts, plan), parts, question, run)
        solution = None
    else:
        solution = await _solve(settings, parts, question, run, plan)
    seconds = round(time.perf_counter() - began, 3)
    folder = None
    if solution is not None and settings.runs.keep:
        kept = _record(settings, parts, run, question, when, seconds, solution, plan)
        tape.prompts = _prompts(run.events)
        place = settings.runs.path / run.id
        folder = await asyncio.to_thread(_keep, place, kept, run.events, tape)
    return Finished(
        run.id,
        folder,
        solution,
        seconds,
        _models(parts),
        parts.snapshot,
        settings.strategy.kind,
        tuple(run.events),
    )


def _record(
    settings: Settings,
    parts: wiring.Parts,
    run: Run,
    question: Question,
    when: datetime,
    seconds: float,
    solution: Solution,
    plan: Dossier | None = None,
) -> Record:
    return Record(
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
    )


def keep_under(
    folder: Path,
    settings: Settings,
    parts: wiring.Parts,
    tape: Tape,
    run: Run,
    question: Question,
    when: datetime,
    seconds: float,
    solution: Solution,
) -> str:
    """Keeps a run that another led, so that `replay` can repeat it; returns its folder's name.

    Raises `BadRun` where it cannot be written.
    """
    readable = re.sub(r"[^\w.=-]+", "_", run.id)[:100]
    place = folder / f"{readable}-{secrets.token_hex(4)}"
    tape.date, tape.prompts = when.isoformat(timespec="seconds"), _prompts(run.events)
    kept = _record(settings, parts, run, question, when, seconds, solution)
    return _keep(place, kept, run.events, tape).name


async def planning(
    settings: Settings, parts: wiring.Parts | None = None
) -> tuple[OmniRag, wiring.Parts]:
    """Omni-RAG over live parts, or over these. Raises `BadConfig` for another strategy."""
    kind = settings.strategy.kind
    if kind != "omni-rag":
        raise BadConfig(f"{kind} makes no source plan", fix="add --strategy omni-rag")
    parts = parts or await wiring.live(settings)
    solver = wiring.solver(settings, parts)
    assert isinstance(solver, OmniRag), "the settings name it"  # noqa: S101
    return solver, parts


async def plan(
    settings: Settings,
    question: Question,
    *,
    search: bool = False,
    sink: Sink | None = None,
    parts: wiring.Parts | None = None,
) -> Dossier:
    """Omni-RAG's plan for the question, and with `search` what it finds.

    `parts` are what is open already. Raises `BadConfig` for another strategy, and `BadRun`
    where the budget ends first.
    """
    solver, parts = await planning(settings, parts)
    run = Run("plan", settings.sampling.seed, wiring.budget(settings), sink=sink)
    try:
        proposal = await solver.propose(question, run)
    except Spent as spent:
        raise BadRun(f"there is no plan: spent: {spent}", fix="raise the [budget]") from spent
    found = await solver.search(proposal, run) if search else dict(proposal.found)
    return dossier(
        proposal.plan,
        parts.sources,
        {query: result for query, result in found.items() if query in proposal.plan.queries},
        question=question,
        dropped=proposal.dropped,
        planner=wiring.planned_by(settings, parts),
        snapshot=parts.snapshot,
    )


async def replay(folder: Path, *, sink: Sink | None = None) -> Finished:
    """Lets the run happen again from its tape, without a model or a knowledge base.

    Raises `BadRun` at the first event that is not, byte for byte, the recorded one,
    and `TapeMiss` where the code asks for what was never recorded.
    """
    began = time.perf_counter()
    record = read_record(folder)
    settings = _settings(folder, record)
    # An older log lacks fields that came later; both sides are written as this version writes.
    expected = [to_line(event) for event in _events(folder / EVENTS)]
    names = {role: record.models.get(role, "") for role in wiring.roles_of(settings)}
    tape = Tape.read(folder / TAPE)
    parts = wiring.replayed(
        tape, names, record.sources, record.snapshot, record.carriers, record.offers
    )
    run = Run(record.id, settings.sampling.seed, wiring.budget(settings), sink=sink)
    solution = await _solve(settings, parts, record.question, run, record.plan)
    _compare(folder / EVENTS, expected, [to_line(event) for event in run.events])
    return Finished(
        record.id,
        folder,
        solution,
        round(time.perf_counter() - began, 3),
        _models(parts),
        record.snapshot,
        record.strategy,
        tuple(run.events),
    )


def read_record(folder: Path) -> Record:
    """Raises `BadRun` when the folder holds no run."""
    path = folder / RECORD
    try:
        return _records().validate_json(path.read_bytes())
    except OSError as error:
        raise BadRun(f"{folder} holds no run", fix="`osler trace ls` lists them") from error
    except ValidationError as error:
        raise BadRun(f"{path} is damaged: {error.errors()[0]['msg']}") from error


async def _propose(solver: Solver, parts: wiring.Parts, question: Question, run: Run) -> None:
    """Only the plan; of a strategy that plans nothing, the question itself."""
    if isinstance(solver, OmniRag):
        with contextlib.suppress(Spent):  # the run says which bound it was
            await solver.propose(question, run)
    else:
        run.emit(fixed_plan(question, parts.sources))


async def _solve(
    settings: Settings,
    parts: wiring.Parts,
    question: Question,
    run: Run,
    plan: Dossier | None = None,
) -> Solution:
    solver = wiring.solver(settings, parts, plan)
    run.emit(
        Started(
            run.id,
            settings.strategy.kind,
            question,
            parts.snapshot,
            _models(parts),
            run.seed,
            run.budget,
        )
    )
    solution = await solver.solve(question, run)
    run.emit(Answered(solution))
    return solution


def _models(parts: wiring.Parts) -> dict[str, str]:
    return {str(role): name for role, name in parts.names.items()}


def _prompts(events: Sequence[Event]) -> tuple[str, ...]:
    """Identities of the wordings that were used."""
    asked = {event.prompt for event in events if isinstance(event, Asked)}
    return tuple(sorted(name for name in asked if "@" in name))


def _keep(folder: Path, record: Record, events: Sequence[Event], tape: Tape) -> Path:
    """Writes beside, then moves: a reader never sees half a run."""
    draft = folder.with_name(f".{folder.name}")
    draft.mkdir(parents=True)
    try:
        text = _records().dump_json(record, indent=2).decode()
        (draft / RECORD).write_text(text + "\n", encoding="utf-8")
        _write_lines(draft / EVENTS, map(to_line, events))
        _write_lines(draft / TAPE, tape.lines())
        draft.rename(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            shutil.rmtree(draft)
        raise BadRun(f"the run cannot be kept in {folder}: {error}") from error
    return folder


@cache
def _records() -> TypeAdapter[Record]:
    return TypeAdapter(Record)


def _write_lines(path: Path, lines: Any) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _events(path: Path) -> list[Event]:
    try:
        return list(read_events(path))
    except OSError as error:
        raise BadRun(f"{path} cannot be read: {error}") from error


def _settings(folder: Path, record: Record) -> Settings:
    try:
        return Settings.model_validate(record.settings)
    except ValidationError as error:
        raise BadRun(
            f"{folder / RECORD}: its settings are not this version's: {error.errors()[0]['msg']}"
        ) from error


def _compare(path: Path, expected: list[str], now: list[str]) -> None:
    for number, (before, after) in enumerate(zip(expected, now, strict=False), 1):
        if before != after:
            raise BadRun(f"{path}:{number}: replay differs: {_difference(before, after)}")
    if len(expected) != len(now):
        raise BadRun(f"{path}: replay gave {len(now)} events, {len(expected)} are recorded")


def _difference(before: str, after: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    start = max(0, at - 20)
    return f"…{before[start : at + 40]}… became …{after[start : at + 40]}…"
