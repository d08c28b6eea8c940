"""The folder of a run: `run.json`, `events.jsonl`, `tape.jsonl`, written whole or not at all; and
which of its evidence has changed since.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from osler.build.online_sources import cached_passage
from osler.errors import BadRun, StorageFailed, UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.kb.store.durable import make_folders, move_folder
from osler.llm.core.cache import hash_file
from osler.llm.recording.tape import Tape
from osler.methods.omni.dossier import SavedPlan
from osler.methods.omni.planners import SourceDescription
from osler.settings import Role, Settings
from osler.trace import Answered, Event, from_line, read_events, to_line
from osler.types import Answer, DangerNotice, Passage, Question, Solution

RECORD, EVENTS, TAPE = "run.json", "events.jsonl", "tape.jsonl"
RECORDS, TRACES = "records-", "traces-"
"""How the files of an evaluation's log folder begin: its records, and their events."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The contents of `run.json`."""

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
    offers: tuple[SourceDescription, ...] = ()
    """The sources as the planner was told of them."""
    plan: SavedPlan | None = None
    """The one that was given, where nobody planned."""
    danger: DangerNotice | None = None
    """What the reader was told first."""
    unindexed: int = 0
    """Passages that had no vector yet."""
    hashes: dict[str, str] = field(default_factory=dict)
    """SHA-256 of its other files, by name; none in runs of before."""


def read_record(folder: Path) -> RunRecord:
    """Raises `BadRun` when the folder holds no run."""
    path = folder / RECORD
    try:
        return _record_adapter().validate_json(path.read_bytes())
    except OSError as error:
        raise BadRun(f"{folder} holds no run", fix="`osler trace` lists them") from error
    except ValidationError as error:
        raise BadRun(f"{path} is damaged: {error.errors()[0]['msg']}") from error


def read_whole_run(folder: Path) -> RunRecord:
    """As `read_record`; raises `BadRun` also where another file of it is not as it was written."""
    record = read_record(folder)
    for name, wanted in record.hashes.items():
        if (folder / name).is_file() and hash_file(folder / name) != wanted:
            raise BadRun(f"{folder / name} is damaged: it is not as it was written")
    return record


def run_folders(folder: Path) -> list[Path]:
    """The runs in a folder, newest first: an id begins with its second, and within one the file
    tells."""
    # A run is written in a hidden folder and renamed when it is whole.
    folders = [log.parent for log in folder.glob(f"*/{EVENTS}") if log.parent.name[0] != "."]
    return sorted(folders, key=_age_key, reverse=True)


def _age_key(run: Path) -> tuple[str, int]:
    return run.name.rpartition("-")[0], (run / EVENTS).stat().st_mtime_ns


# A rename is atomic within a file system: a reader sees the whole run or none.
def write_run(folder: Path, record: RunRecord, events: Sequence[Event], tape: Tape) -> Path:
    """Writes beside, flushes, then moves: neither a reader nor a power cut finds half a run."""
    draft = folder.with_name(f".{folder.name}")
    try:
        make_folders(folder.parent)
        if draft.exists():  # a server that was killed left it, and this one goes on with its run
            shutil.rmtree(draft)
        draft.mkdir(mode=0o700)
        _write_lines(draft / EVENTS, map(to_line, events))
        _write_lines(draft / TAPE, tape.to_lines())
        record = replace(record, hashes={name: hash_file(draft / name) for name in (EVENTS, TAPE)})
        text = _record_adapter().dump_json(record, indent=2).decode()
        (draft / RECORD).write_text(text + "\n", encoding="utf-8")
        move_folder(draft, folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        said = f"the run cannot be kept in {folder.parent}: {error.strerror or error}"
        fix = "check free disk space and write permissions, or set runs.keep = false"
        raise StorageFailed(said, fix=fix) from error
    return folder


@cache
def _record_adapter() -> TypeAdapter[RunRecord]:
    return TypeAdapter(RunRecord)


def _write_lines(path: Path, lines: Any) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_run_events(path: Path) -> list[Event]:
    """Raises `BadRun`."""
    try:
        return list(read_events(path))
    except OSError as error:
        raise BadRun(f"{path} cannot be read: {error}") from error


def read_run_settings(folder: Path, record: RunRecord) -> Settings:
    """The settings of a run; keys that this version no longer has are left out.

    Raises `BadRun`, which names the key, for a value that it does not take.
    """
    try:
        return Settings.model_validate(record.settings)
    except ValidationError as error:
        gone = [one["loc"] for one in error.errors() if one["type"] == "extra_forbidden"]
    known = deepcopy(record.settings)
    for place in gone:
        _drop_key(known, place)
    try:
        return Settings.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise BadRun(
            f"{folder / RECORD}: its settings are not this version's: {key}: {first['msg']}",
            fix="replay it with the version that recorded it",
        ) from error


def _drop_key(settings: dict[str, Any], place: Sequence[int | str]) -> None:
    """Takes a key out. A place also names which strategy's settings were tried: no key of them."""
    *above, last = place
    section = settings
    for name in above:
        section = section.get(str(name), section)
    section.pop(str(last), None)


def compare_events(path: Path, expected: list[str], now: list[str]) -> None:
    """Raises `BadRun` at the first line that differs."""
    for number, (before, after) in enumerate(zip(expected, now, strict=False), 1):
        if before != after:
            raise BadRun(f"{path}:{number}: replay differs: {_first_difference(before, after)}")
    if len(expected) != len(now):
        raise BadRun(f"{path}: replay gave {len(now)} events, {len(expected)} are recorded")


def _first_difference(before: str, after: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    start = max(0, at - 20)
    return f"…{before[start : at + 40]}… became …{after[start : at + 40]}…"


@dataclass(frozen=True, slots=True)
class ChangedEvidence:
    """A cited passage that is no longer what was cited."""

    number: int
    """Of the evidence, from 1."""
    passage: str
    state: Literal["changed", "gone", "noticed"]
    """changed: the quoted words are not in it any more; gone: there is no such passage; noticed:
    a notice was published against its work."""
    notice: str = ""

    def __str__(self) -> str:
        told = {
            "changed": "this evidence changed since",
            "gone": "this evidence is gone since",
            "noticed": f"since this answer, against its evidence: {self.notice}",
        }
        return f"[{self.number}] {told[self.state]}: {self.passage}"


def find_changed(
    settings: Settings, kb: KnowledgeBase, answer: Answer
) -> tuple[ChangedEvidence, ...]:
    """The evidence that changed, in order. Blocks.

    Passages of sources that the knowledge base does not hold (the graph, online services) are not
    compared: nothing is known of them.
    """
    held = set(kb.sources)
    found = []
    for number, one in enumerate(answer.evidence, 1):
        if one.passage.source not in held:
            continue
        now = _read_now(settings, kb, one.passage.id)
        if now is None:
            found.append(ChangedEvidence(number, one.passage.id, "gone"))
        elif one.quote not in now.text:
            found.append(ChangedEvidence(number, one.passage.id, "changed"))
        elif (notice := now.locator.notice) and notice != one.passage.locator.notice:
            found.append(ChangedEvidence(number, one.passage.id, "noticed", notice))
    return tuple(found)


def list_runs_citing(folders: Iterable[Path], documents: Collection[str]) -> list[str]:
    """The ids of the runs that cite one of the documents ("source:id") as evidence that stood.

    Runs that cannot be read are passed over.
    """
    return [folder.name for folder in folders if _cites_any(folder, documents)]


def find_answer(folder: Path) -> Answer | None:
    """The answer of a kept run; `None` where there is none that can be read. Blocks."""
    solution = find_solution(folder)
    return solution.answer if solution else None


def find_solution(folder: Path) -> Solution | None:
    """What a kept run ended with; `None` where that cannot be read. Blocks."""
    try:
        with (folder / EVENTS).open("rb") as file:
            last = deque(file, maxlen=1)
        event = from_line(last[0].decode()) if last else None
    except (OSError, UnicodeDecodeError, BadRun):
        return None
    return event.solution if isinstance(event, Answered) else None


def _cites_any(folder: Path, documents: Collection[str]) -> bool:
    answer = find_answer(folder)
    passages = (one.passage for one in answer.evidence) if answer else ()
    return any(
        one.id.rpartition("#")[0] in documents and not one.locator.is_retracted for one in passages
    )


def _read_now(settings: Settings, kb: KnowledgeBase, id: str) -> Passage | None:
    try:
        return kb.get(id)
    except UnknownPassage:
        return cached_passage(settings, id)
