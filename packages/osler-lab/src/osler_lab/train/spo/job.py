"""Exploring and judging many cases: a folder that is the checkpoint, shared by hosts.

    explored.json, explored-WRITER.jsonl      how it was explored, and a line a case
    judged.NAME.json, judged.NAME-WRITER.jsonl    the same of each judge

What was explored is kept with the texts that were found, so judging needs no knowledge base, and
another judge on the same folder judges the same queries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.errors import BadRun
from osler.methods.omni.describe import SourceDescription
from osler.text import make_slug
from osler_lab.jobs.journal import facts_of, require_agreement
from osler_lab.jobs.runner import Progress
from osler_lab.train.journal import JobStage, ResultPlace, StageJob
from osler_lab.train.spo.case import TrainingCase
from osler_lab.train.spo.explore import Exploration, ExploredCase
from osler_lab.train.spo.judge import JudgedCase, JudgingSignal, judge_case

EXPLORED, JUDGED = "explored", "judged."


def explored_in(folder: Path) -> JobStage[ExploredCase]:
    return JobStage(folder, EXPLORED, ExploredCase, lambda one: one.key)


def judged_in(folder: Path, name: str) -> JobStage[JudgedCase]:
    """Stage of the verdicts of the signal called `name`."""
    return JobStage(folder, _file_name(name), JudgedCase, lambda one: one.key)


def _file_name(name: str) -> str:
    # The slug is for people; the digest keeps apart names that differ in marks alone.
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{JUDGED}{make_slug(name)[:40]}.{digest}"


@dataclass(frozen=True)
class SharedFolder:
    """Settings of a process that works on a shared folder."""

    folder: Path
    jobs: int = 1
    """Cases at once."""
    seed: int = 0
    progress: Progress | None = None


async def explore_cases(
    working: SharedFolder,
    exploration: Exploration,
    cases: Sequence[TrainingCase],
    snapshot: str = "",
) -> None:
    """Returns when every case was tried by somebody. Raises `BadRun` as `StageJob` does, and where
    the folder was made otherwise."""
    require_agreement(
        working.folder,
        EXPLORED,
        {
            "explorer": exploration.explorer.name,
            "offers": [[offer.name, list(offer.titles)] for offer in exploration.offers],
            "k": exploration.retriever.k,
            "snapshot": snapshot,
            "seed": working.seed,
        },
    )
    job = StageJob[TrainingCase, ExploredCase](
        explored_in(working.folder),
        lambda case: exploration.explore(case, working.seed),
        lambda case: case.key,
        working.jobs,
        working.progress,
    )
    await job.run(cases)


async def judge_cases(working: SharedFolder, signal: JudgingSignal) -> None:
    """Judges all that is explored. Raises `BadRun` as `StageJob` does, and for a folder without."""
    explored = explored_in(working.folder)
    places = explored.places()
    if not places:
        raise BadRun(
            f"nothing is explored in {working.folder}", fix="`osler train explore` comes first"
        )
    require_agreement(working.folder, _file_name(signal.name), {"judge": signal.name})
    job = StageJob[tuple[str, ResultPlace], JudgedCase](
        judged_in(working.folder, signal.name),
        # Cases are read one at a time from their places: an exploration holds whole passages.
        lambda item: judge_case(signal, explored.read_at(item[1]), working.seed),
        lambda item: item[0],
        working.jobs,
        working.progress,
    )
    await job.run(list(places.items()))


def stored_judges(folder: Path) -> dict[str, JobStage[JudgedCase]]:
    """The judges of a folder by name."""
    names = [
        str(facts_of(folder, path.stem)["judge"]) for path in sorted(folder.glob(f"{JUDGED}*.json"))
    ]
    return {name: judged_in(folder, name) for name in names}


def chosen_judge(folder: Path, name: str = "") -> tuple[str, JobStage[JudgedCase]]:
    """The judge whose name begins so, or the only one. Raises `BadRun` for none or several."""
    every = stored_judges(folder)
    matching = [(judge, stage) for judge, stage in every.items() if judge.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    if not every:
        raise BadRun(f"nothing is judged in {folder}", fix="`osler train judge` comes first")
    raise BadRun(
        f"{len(matching)} judges of {folder} are named {name!r}", fix=f"--judge: {', '.join(every)}"
    )


def exploration_of(folder: Path) -> dict[str, Any]:
    """Reads how the folder was explored. Raises `BadRun` for a folder that was not."""
    return facts_of(folder, EXPLORED)


def offers_of(folder: Path) -> tuple[SourceDescription, ...]:
    """The sources that were on offer, in their order."""
    return tuple(
        SourceDescription(name, tuple(titles)) for name, titles in exploration_of(folder)["offers"]
    )


def read_explorations(folder: Path) -> Iterator[ExploredCase]:
    yield from explored_in(folder).results()
