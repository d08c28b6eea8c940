"""Estimate of a data run's calls and tokens, before hours are spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osler.evaluate.sample import Sample
from osler.train.thinker.dialogue import Stage
from osler.train.thinker.log import SeenTries, TryKey, read_tries
from osler.types import Usage

GUESS: dict[Stage, int] = {"logical-form": 1, "deep-search": 6, "thinker": 16}
"""Model calls of one try, where none was measured: three steps, a search and a half for each."""


@dataclass(frozen=True, slots=True)
class TeachingLoad:
    questions: int
    kept: int
    left: int
    most_tries: int
    """Tries if none of those left is ever kept."""
    calls_a_try: float
    measured_tries: int
    """Tries that the mean is of; 0 = it is a guess."""
    most_calls: int
    most_tokens: int
    """0 where nothing was measured."""


def load_of(folder: Path, stage: Stage, samples: Sequence[Sample], rounds: int) -> TeachingLoad:
    """Raises `BadRun` for a damaged log; a folder that is not there holds nothing."""
    seen, usage, measured = SeenTries(folder), Usage(), 0
    if any(folder.glob("tries-*.jsonl")):
        seen.refresh()
        for one in read_tries(folder):
            if one.stage == stage and one.status != "failed":
                usage, measured = usage + one.usage, measured + 1
    kept = sum(TryKey(stage, s.task, s.id) in seen.kept for s in samples)
    left = len(samples) - kept
    # Failed tries are left out of the mean: most of them end at the first call.
    calls = usage.calls / measured if measured else GUESS[stage]
    tokens = (usage.prompt_tokens + usage.completion_tokens) / measured if measured else 0
    tries = left * rounds
    return TeachingLoad(
        len(samples),
        kept,
        left,
        tries,
        calls,
        measured,
        round(tries * calls),
        round(tries * tokens),
    )
