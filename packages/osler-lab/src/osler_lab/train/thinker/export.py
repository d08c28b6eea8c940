"""Kept trajectories as a data set: `data.jsonl` and its card, in Hugging Face's form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from osler.errors import BadRun
from osler.types import Usage
from osler_lab.train.record import DATA, data_head, render_rows, write_card, write_records
from osler_lab.train.thinker.dialogue import STAGES, Stage, stage_messages
from osler_lab.train.thinker.rounds import TeachingTry, golds_of, kept_tries, read_tries


@dataclass(frozen=True, slots=True)
class StageTally:
    """Counts of one stage of a log."""

    stage: Stage
    questions: int
    kept: int
    tries: int
    dropped: dict[str, int]
    """Reason → tries, the most frequent first. A question that was dropped may be kept later."""
    failed: int
    usage: Usage = field(default_factory=Usage)
    teachers: tuple[str, ...] = ()
    students: tuple[str, ...] = ()
    inspectors: tuple[str, ...] = ()
    searches: int = 0
    """Searches in the kept tries."""
    known: int = 0
    """Sub-questions of the kept that are answered without a search."""
    asked: int = 0
    """Sub-questions of the kept that could be looked up."""


@dataclass(frozen=True, slots=True)
class ExportedData:
    """A data set that was written."""

    folder: str
    lines: int
    tallies: tuple[StageTally, ...]


def stage_tallies(folder: Path) -> tuple[StageTally, ...]:
    """Counts each stage, in the order of the paper. Raises `BadRun` where there is no log."""
    tries, good = list(read_tries(folder)), kept_tries(folder).values()
    return tuple(
        _count_stage(
            stage,
            [one for one in tries if one.stage == stage],
            [one for one in good if one.stage == stage],
        )
        for stage in STAGES
        if any(one.stage == stage for one in tries)
    )


def _count_stage(
    stage: Stage, tries: Sequence[TeachingTry], good: Sequence[TeachingTry]
) -> StageTally:
    dropped = Counter(one.why for one in tries if one.status == "dropped")
    usage = sum((one.usage for one in tries), Usage())
    steps = [step for one in good if one.trajectory for step in one.trajectory.retrievals]
    return StageTally(
        stage,
        len({one.key for one in tries}),
        len(good),
        len(tries),
        dict(sorted(dropped.items(), key=lambda pair: (-pair[1], pair[0]))),
        sum(one.status == "failed" for one in tries),
        usage,
        tuple(sorted({one.teacher for one in tries})),
        tuple(sorted({one.student for one in tries} - {""})),
        tuple(sorted({one.inspector for one in tries} - {""})),
        sum(len(step.turns) for step in steps),
        sum(step.known for step in steps),
        len(steps),
    )


def export_data(
    log: Path,
    folder: Path,
    *,
    stages: Sequence[Stage],
    licence: str = "other",
) -> ExportedData:
    """Writes `data.jsonl` and `README.md` of the kept tries, in the order of the ids.

    Raises `BadRun` where nothing of the stages was kept, or the folder cannot be written.
    """
    tallies = tuple(tally for tally in stage_tallies(log) if tally.stage in stages)
    lines = [
        line
        for key, one in kept_tries(log).items()
        if key.stage in stages
        for line in _sample_lines(one)
    ]
    if not lines:
        why = "; ".join(f"{n} × {reason}" for t in tallies for reason, n in t.dropped.items())
        raise BadRun(
            f"nothing was kept in {log}" + (f": {why}" if why else ""),
            fix="`osler train thinker-data` with another planner, or more rounds",
        )
    write_records(folder, (json.dumps(line, ensure_ascii=False) for line in lines))
    languages = sorted({line["meta"]["language"] for line in lines})
    _write_card(folder, tallies, len(lines), languages, licence)
    return ExportedData(str(folder), len(lines), tallies)


def _sample_lines(one: TeachingTry) -> Iterator[dict[str, Any]]:
    trajectory, question = one.trajectory, one.sample.question
    if trajectory is not None:
        chat = stage_messages(trajectory, one.stage, question.language)
        id = f"{one.stage}.{one.sample.task}.{question.id}"
        yield {"id": id, "messages": [asdict(turn) for turn in chat], "meta": _sample_meta(one)}


def _sample_meta(one: TeachingTry) -> dict[str, Any]:
    """Metadata to filter by. It names the gold answer, for inspection; no prompt does."""
    trajectory, sample = one.trajectory, one.sample
    retrievals = trajectory.retrievals if trajectory else ()
    passages = [id for step in retrievals for turn in step.turns for id in turn.passages]
    return {
        "stage": one.stage,
        "task": sample.task,
        "language": sample.question.language,
        "question": sample.question.text,
        "gold": list(golds_of(sample, one.stage)),
        "teacher": one.teacher,
        "student": one.student,
        "round": one.round,
        "seed": one.seed,
        "steps": trajectory.plan.count("\nAction") if trajectory else 0,
        "known": sum(step.known for step in retrievals),
        "searches": sum(len(step.turns) for step in retrievals),
        "passages": list(dict.fromkeys(passages)),
    }


def _write_card(
    folder: Path, tallies: Sequence[StageTally], lines: int, languages: Sequence[str], licence: str
) -> None:
    """Writes the data set's card: front matter for the hub, and how it came about."""
    head = {
        "language": list(languages),
        "license": licence,
        "task_categories": ["text-generation", "question-answering"],
        "tags": ["medical", "synthetic", "reasoning", "retrieval", "osler"],
        **data_head(lines, DATA),
    }
    made = "a model's" if any(one.usage.calls for one in tallies) else "written by rule"
    write_card(
        folder,
        head,
        "KAG-Thinker trajectories",
        f"{lines:,} lines, made with Osler {version('osler')} as the data construction framework of"
        " KAG-Thinker (App. 9) has it: a teacher solves questions, and what is wrong, broken or of"
        " poor quality is left out.",
        "Each line is a chat: `id`, `messages` (system, user, assistant in turn) and `meta`.",
        f"The reasoning is {made}. It was held against gold answers, not reviewed by a physician."
        " References are quoted from the knowledge base that the teacher searched: their licences"
        " go with them.",
        *map(_stage_section, tallies),
    )


def _stage_section(tally: StageTally) -> str:
    usage = tally.usage
    rows = [
        ("teacher", list(tally.teachers)),
        ("student (whose boundary was determined)", list(tally.students)),
        ("inspected by", list(tally.inspectors or ("nobody",))),
        ("questions", tally.questions),
        ("kept", tally.kept),
        ("tries", tally.tries),
        ("failed tries", tally.failed),
        ("sub-questions to look up", tally.asked),
        ("of them known without a search", tally.known),
        ("searches", tally.searches),
        ("model calls", usage.calls),
        ("tokens read, written", f"{usage.prompt_tokens:,}, {usage.completion_tokens:,}"),
        *((f"dropped: {why}", n) for why, n in tally.dropped.items()),
    ]
    return f"## {tally.stage}\n\n{render_rows(rows)}"
