"""Kept trajectories as a data set: `data.jsonl` and its card, in Hugging Face's form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from osler.errors import BadRun, translate_os_errors
from osler.llm.core.base import Message
from osler.types import Usage
from osler_lab.train.card import size_category
from osler_lab.train.record import CARD, DATA, write_records
from osler_lab.train.thinker.dialogue import STAGES, Layout, Stage, call_messages, stage_messages
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
    layout: Layout
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
    layout: Layout = "dialogue",
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
        for line in _sample_lines(one, layout)
    ]
    if not lines:
        why = "; ".join(f"{n} × {reason}" for t in tallies for reason, n in t.dropped.items())
        raise BadRun(
            f"nothing was kept in {log}" + (f": {why}" if why else ""),
            fix="`osler train thinker-data` with another planner, or more rounds",
        )
    languages = sorted({line["meta"]["language"] for line in lines})
    card = card_of(tallies, len(lines), layout, languages, licence)
    with translate_os_errors(f"{folder} cannot be written", BadRun):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CARD).write_text(card, encoding="utf-8")
    write_records(folder, (json.dumps(line, ensure_ascii=False) for line in lines))
    return ExportedData(str(folder), len(lines), layout, tallies)


def _sample_lines(one: TeachingTry, layout: Layout) -> Iterator[dict[str, Any]]:
    trajectory, question = one.trajectory, one.sample.question
    if trajectory is None:
        return
    id = f"{one.stage}.{one.sample.task}.{question.id}"
    if layout == "dialogue":
        chat = stage_messages(trajectory, one.stage, question.language)
        yield {"id": id, "messages": _plain_messages(chat), "meta": _sample_meta(one)}
        return
    for n, call in enumerate(call_messages(trajectory, question.language), 1):
        prompt = trajectory.exchanges[n - 1].prompt
        yield {
            "id": f"{id}.{n}",
            "messages": _plain_messages(call),
            "meta": _sample_meta(one, prompt),
        }


def _plain_messages(chat: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in chat]


def _sample_meta(one: TeachingTry, prompt: str = "") -> dict[str, Any]:
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
        **({"prompt": prompt} if prompt else {}),
    }


def card_of(
    tallies: Sequence[StageTally],
    lines: int,
    layout: Layout,
    languages: Sequence[str],
    licence: str,
) -> str:
    """The data set's card: front matter for the hub, and how it came about."""
    head: Mapping[str, Any] = {
        "language": list(languages),
        "license": licence,
        "pretty_name": "KAG-Thinker trajectories made with Osler",
        "task_categories": ["text-generation", "question-answering"],
        "size_categories": [size_category(lines)],
        "tags": ["medical", "synthetic", "reasoning", "retrieval", "osler"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": DATA}]}],
    }
    # JSON is YAML; one key a line keeps it readable.
    front = "\n".join(f"{key}: {json.dumps(value)}" for key, value in head.items())
    about = (
        "Each line is a chat: `id`, `messages` (system, user, assistant in turn) and `meta`."
        if layout == "dialogue"
        else "Each line is one call of the solver: `id`, `messages` (user, assistant) and `meta`."
    )
    made = "a model's" if any(one.usage.calls for one in tallies) else "written by rule"
    parts = [
        f"---\n{front}\n---\n\n# KAG-Thinker trajectories\n",
        f"{lines:,} lines, made with Osler {version('osler')} as the data construction framework of"
        " KAG-Thinker (App. 9) has it: a teacher solves questions, and what is wrong, broken or of"
        " poor quality is left out.",
        about,
        f"The reasoning is {made}. It was held against gold answers, not reviewed by a physician."
        " References are quoted from the knowledge base that the teacher searched: their licences"
        " go with them.",
        *map(_stage_section, tallies),
    ]
    return "\n\n".join(parts) + "\n"


def _stage_section(tally: StageTally) -> str:
    usage = tally.usage
    rows = [
        ("teacher", ", ".join(tally.teachers)),
        ("student (whose boundary was determined)", ", ".join(tally.students) or "–"),
        ("inspected by", ", ".join(tally.inspectors) or "nobody"),
        ("questions", f"{tally.questions:,}"),
        ("kept", f"{tally.kept:,}"),
        ("tries", f"{tally.tries:,}"),
        ("failed tries", f"{tally.failed:,}"),
        ("sub-questions to look up", f"{tally.asked:,}"),
        ("of them known without a search", f"{tally.known:,}"),
        ("searches", f"{tally.searches:,}"),
        ("model calls", f"{usage.calls:,}"),
        ("tokens read, written", f"{usage.prompt_tokens:,}, {usage.completion_tokens:,}"),
        *((f"dropped: {why}", f"{n:,}") for why, n in tally.dropped.items()),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return f"## {tally.stage}\n\n| | |\n|---|---|\n{table}"
