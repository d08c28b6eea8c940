"""Comparison of two strategies, or two logs, on the same samples, with significance tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from osler.errors import BadRun
from osler_lab.evaluate.intervals import Estimate, difference, holm, paired_test, widen_equal
from osler_lab.evaluate.log import read_records
from osler_lab.evaluate.measures import BY_NAME, PRIMARY, measure_value
from osler_lab.evaluate.plan import PLAN, read_plan


@dataclass(frozen=True, slots=True)
class ChangedSample:
    """Sample whose score differs between the two sides."""

    id: str
    question: str
    before: float
    after: float
    said_before: str
    said_after: str


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """Comparison of two strategies on one task; `change` is second minus first."""

    task: str
    first: str
    second: str
    measure: str
    change: Estimate
    test: str
    p: float
    corrected: float
    """p by Holm's correction, over all pairs that were compared together."""
    unpaired: int
    """Samples that only one side has tried; they are left out."""
    better: tuple[ChangedSample, ...]
    worse: tuple[ChangedSample, ...]


Scored = Mapping[str, tuple[float, str, str]]
"""Sample id → score, question, what was said."""


def collect_scores(folder: Path) -> dict[tuple[str, str], tuple[str, Scored]]:
    """Maps strategy and task to the primary measure and each tried sample's score.

    A sample that failed scores 0, as in the report.
    """
    cells: dict[tuple[str, str], tuple[str, dict[str, tuple[float, str, str]]]] = {}
    for record in read_records(folder):
        name = PRIMARY[record.sample.kind]
        if (score := measure_value(BY_NAME[name], record)) is None:
            continue
        answer = record.error or record.outcome.option or record.outcome.text
        # All samples of a task are of one kind, so the first decides the measure.
        cell = cells.setdefault((record.strategy, record.sample.task), (name, {}))
        cell[1][record.sample.id] = (score, record.sample.question.text, answer)
    # In the plan's order: files of records are read by their names, which host and process make.
    asked = read_plan(folder).asked if (folder / PLAN).exists() else {}
    planned = [(label, task) for label, counts in asked.items() for task in counts]
    return {cell: cells[cell] for cell in dict.fromkeys([*planned, *cells]) if cell in cells}


Undecided = Literal["refuse", "leave out", "allow"]


def compare_logs(
    first: Path, second: Path, *, seed: int = 0, undecided: Undecided = "refuse"
) -> list[PairedComparison]:
    """Compares the strategies that both logs have, on the tasks that both have.

    One folder twice compares its first strategy with each other one. `undecided`: what to do
    where a reader answered in a method's stead. Raises `BadRun` where there is nothing in
    common, and where such a comparison is refused.
    """
    same = first.resolve() == second.resolve()
    ours = collect_scores(first)
    theirs = ours if same else collect_scores(second)
    pairs = _matching_pairs(ours, theirs, same=theirs is ours)
    if undecided != "allow":
        counts = count_undecided(first), count_undecided(first if same else second)
        pairs = _decided_pairs(pairs, counts, refuse=undecided == "refuse")
        if not pairs and undecided == "leave out":
            return []
    compared = [
        _compare_pair(task, (a, ours[a, task]), (b, theirs[b, task]), seed) for a, b, task in pairs
    ]
    kept = [one for one in compared if one is not None]
    if not kept:
        lone = same and len({label for label, _ in ours}) == 1
        said = f"{first} has one strategy alone" if lone else ""
        raise BadRun(said or f"{first} and {second} have no sample in common")
    # One family: every pair that this call compares.
    corrected = holm([one.p for one in kept])
    return [replace(one, corrected=p) for one, p in zip(kept, corrected, strict=True)]


def list_uncompared(first: Path, second: Path, compared: Sequence[PairedComparison]) -> list[str]:
    """Names what stands in no comparison, and says why."""
    seen = {(label, one.task) for one in compared for label in (one.first, one.second)}
    lines = []
    undecided = count_undecided(second) | count_undecided(first)
    for folder in {path.resolve(): path for path in (first, second)}.values():
        for label, task in collect_scores(folder):
            if (label, task) in seen:
                continue
            why = "no sample to compare it with"
            if found := undecided.get((label, task)):
                why = (
                    f"in {found[0]} of {found[1]} answers a reader stood in for the method's own"
                    " decision (--allow-undecided compares them)"
                )
            lines.append(f"{label} on {task} in {folder}: {why}")
    return lines


def count_undecided(folder: Path) -> dict[tuple[str, str], tuple[int, int]]:
    """Maps strategy and task to the answers that a reader gave for it, and all its answers.

    Only those that have any.
    """
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for record in read_records(folder):
        if record.status == "done":
            stood_in, done = counts.get((record.strategy, record.sample.task), (0, 0))
            counts[record.strategy, record.sample.task] = stood_in + record.is_undecided, done + 1
    return {cell: count for cell, count in counts.items() if count[0]}


def _decided_pairs(
    pairs: Sequence[tuple[str, str, str]],
    counts: tuple[Mapping[tuple[str, str], tuple[int, int]], ...],
    *,
    refuse: bool,
) -> list[tuple[str, str, str]]:
    """The pairs of which neither side is undecided. Raises `BadRun` for others with `refuse`."""
    before, after = counts
    kept, named = [], dict[str, None]()
    for one, other, task in pairs:
        sides = [(one, before.get((one, task))), (other, after.get((other, task)))]
        found = [f"{label} on {task}: {n[0]} of {n[1]}" for label, n in sides if n]
        named |= dict.fromkeys(found)
        if not found:
            kept.append((one, other, task))
    if refuse and named:
        raise BadRun(
            "answers that are not the method's own decision, but a reader's: " + "; ".join(named),
            fix="take them all the same with --allow-undecided",
        )
    return kept


def _matching_pairs(
    ours: Mapping[tuple[str, str], object], theirs: Mapping[tuple[str, str], object], *, same: bool
) -> list[tuple[str, str, str]]:
    if not same:
        return [(label, label, task) for label, task in ours if (label, task) in theirs]
    # Plans keep the order of the command line, so the first strategy is the baseline.
    base = next(iter(ours), ("", ""))[0]
    return [(base, label, task) for label, task in ours if label != base and (base, task) in ours]


def _compare_pair(
    task: str,
    first: tuple[str, tuple[str, Scored]],
    second: tuple[str, tuple[str, Scored]],
    seed: int,
) -> PairedComparison | None:
    (a, (measure, before)), (b, (_, after)) = first, second
    shared = [id for id in before if id in after]
    if not shared:
        return None
    olds, news = [before[id][0] for id in shared], [after[id][0] for id in shared]
    test = paired_test(olds, news, seed=seed)
    changed = [
        ChangedSample(id, before[id][1], before[id][0], after[id][0], before[id][2], after[id][2])
        for id in shared
        if before[id][0] != after[id][0]
    ]
    return PairedComparison(
        task,
        a,
        b,
        measure,
        widen_equal(difference(olds, news, seed=seed)),
        test.name,
        test.p,
        test.p,
        len(before.keys() ^ after.keys()),
        tuple(change for change in changed if change.after > change.before),
        tuple(change for change in changed if change.after < change.before),
    )
