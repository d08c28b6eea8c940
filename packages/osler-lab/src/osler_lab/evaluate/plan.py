"""Plan of an evaluation as its log folder keeps it: data, strategies, seed.

A log folder may grow: more samples, more tasks, more strategies. What it already holds must
not change its meaning: another seed, other data or other settings under a known name are
refused, naming what differs.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from osler.errors import BadRun, describe_invalid, translate_os_errors
from osler_lab.evaluate.datasets.base import LoadedDataset
from osler_lab.evaluate.record import Kind, Sample

PLAN, SCHEMA = "plan.json", 1


@dataclass(frozen=True, slots=True)
class EvaluatedTask:
    """A data set as it is used here."""

    name: str
    kind: Kind
    digest: str
    """SHA-256 over its files."""
    rows: int
    usable: int
    dropped: dict[str, int] = field(default_factory=dict)
    """Reason to count."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A strategy as it is used here."""

    label: str
    digest: str
    """Digest of its settings, without the paths of this machine."""
    settings: dict[str, Any]
    models: dict[str, str] = field(default_factory=dict)
    """Role to model identity; known once it has begun."""
    snapshot: str = ""
    """Snapshot of the knowledge base."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Content of `plan.json`."""

    seed: int
    tasks: dict[str, EvaluatedTask]
    entrants: dict[str, Entrant]
    asked: dict[str, dict[str, int]]
    """Strategy to task to the number of samples that are to be tried."""
    version: str
    """Osler's version."""
    experiment: str = ""
    trained_on: dict[str, dict[str, int]] = field(default_factory=dict)
    """Strategy to task to the number of its samples that one of its models was trained on; such
    figures are marked. Pairs without any are left out."""
    schema: int = SCHEMA


def task_of(loaded: LoadedDataset, kind: Kind) -> EvaluatedTask:
    """A loaded set as the plan notes it."""
    dropped = {reason: rows.count for reason, rows in loaded.dropped.items()}
    return EvaluatedTask(
        loaded.name, kind, loaded.digest, loaded.rows, len(loaded.samples), dropped
    )


def make_entrant(label: str, settings: Mapping[str, Any]) -> Entrant:
    """A strategy as the plan notes it; where things lie on this machine tells nothing."""
    # Paths differ between hosts that share a log; the knowledge base is known by its snapshot.
    kept = {name: value for name, value in settings.items() if name not in ("home", "runs")}
    if isinstance(kept.get("kb"), dict):
        kept["kb"] = {name: value for name, value in kept["kb"].items() if name != "path"}
    text = json.dumps(kept, sort_keys=True, ensure_ascii=False)
    return Entrant(label, hashlib.sha256(text.encode()).hexdigest()[:16], kept)


def choose_samples(samples: Sequence[Sample], limit: int | None, seed: int) -> list[Sample]:
    """The samples to try: all in order, or the first of a shuffle that only the seed decides.

    So a smaller limit tries a part of what a larger one does.
    """
    if limit is None or limit >= len(samples):
        return list(samples)
    # Sorted first: the draw must not depend on the order of the rows in a file.
    order = sorted(samples, key=lambda sample: sample.id)
    random.Random(seed).shuffle(order)
    return order[:limit]


def save_plan(folder: Path, plan: EvaluationPlan) -> EvaluationPlan:
    """Writes the plan, joined with the one that is there. Raises `BadRun` where they differ."""
    with translate_os_errors(f"{folder} cannot be written", BadRun):
        folder.mkdir(parents=True, exist_ok=True)
        known = read_plan(folder) if (folder / PLAN).exists() else None
        whole = plan if known is None else join_plans(known, plan)
        # A draft of its own for each process; the rename is atomic, so readers see a whole plan.
        draft = folder / f".{PLAN}.{random.SystemRandom().getrandbits(32):08x}"
        draft.write_text(json.dumps(asdict(whole), ensure_ascii=False, indent=1), encoding="utf-8")
        draft.replace(folder / PLAN)
    return whole


def read_plan(folder: Path) -> EvaluationPlan:
    """Raises `BadRun` for a folder without a plan, a damaged one, or one of another version."""
    path = folder / PLAN
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise BadRun(
            f"{folder} is not a log folder", fix="`osler eval run --log-dir` makes one"
        ) from error
    except ValueError as error:
        raise BadRun(f"{path} is damaged: {error}") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise BadRun(
            f"{path} has schema {schema}, this version reads {SCHEMA}",
            fix="use the version of Osler that wrote it, or another --log-dir",
        )
    try:
        return TypeAdapter(EvaluationPlan).validate_python(data)
    except ValidationError as error:
        raise BadRun(f"{path} is damaged: {describe_invalid(error)}") from error


def join_plans(known: EvaluationPlan, more: EvaluationPlan) -> EvaluationPlan:
    """Joins two plans. Raises `BadRun` naming each setting in which they differ."""
    differs = list(_differences(known, more))
    if differs:
        raise BadRun(
            f"the log folder was made with other settings: {'; '.join(differs)}",
            fix="use the same settings, or another --log-dir",
        )
    tasks = {**known.tasks, **more.tasks}
    asked = {label: dict(counts) for label, counts in known.asked.items()}
    for label, counts in more.asked.items():
        mine = asked.setdefault(label, {})
        # A log only grows: a later run with a smaller limit takes nothing back.
        mine.update({name: max(n, mine.get(name, 0)) for name, n in counts.items()})
    # In the order in which they were first named; what has begun says its models.
    begun = {label: entrant for label, entrant in more.entrants.items() if entrant.models}
    entrants = {**known.entrants, **more.entrants, **known.entrants, **begun}
    trained_on = {
        label: {**known.trained_on.get(label, {}), **more.trained_on.get(label, {})}
        for label in known.trained_on.keys() | more.trained_on.keys()
    }
    return replace(known, tasks=tasks, entrants=entrants, asked=asked, trained_on=trained_on)


def _differences(known: EvaluationPlan, more: EvaluationPlan) -> Iterable[str]:
    if known.seed != more.seed:
        yield f"seed {known.seed}, now {more.seed}"
    for name in known.tasks.keys() & more.tasks.keys():
        if known.tasks[name].digest != more.tasks[name].digest:
            yield f"the files of {name} differ"
    for label in known.entrants.keys() & more.entrants.keys():
        before, now = known.entrants[label], more.entrants[label]
        if before.digest != now.digest:
            keys = ", ".join(_changed_settings(before.settings, now.settings)) or "settings"
            yield f"{label} has other {keys}"
        elif before.models and now.models and before.models != now.models:
            yield f"{label} has other models"
        elif before.snapshot and now.snapshot and before.snapshot != now.snapshot:
            yield f"{label} has another knowledge base ({before.snapshot}, now {now.snapshot})"


def _changed_settings(
    before: Mapping[str, Any], now: Mapping[str, Any], above: str = ""
) -> Iterable[str]:
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _changed_settings(old, new, f"{above}{key}.")
        elif old != new:
            yield f"{above}{key}"
