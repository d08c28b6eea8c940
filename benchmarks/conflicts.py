"""Contradicting statements: how many the rules find, and where they find one that is none.

    python benchmarks/conflicts.py DATA dev|test

100 pairs that contradict each other and 100 that do not, half of each made (`conflicts.jsonl`,
written by one of us: pairs of the same shapes as guidelines differ in, and near misses: another
group of patients, route, drug, outcome), half real: claims of HealthVer with evidence that is
labelled as refuting them, and with evidence labelled as supporting them, drawn by a hash. The
rules were written before these sets; `dev` alone may be used to mend them.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from osler.answer.consistency import keep_consistent
from osler.answer.disagreement import Difference
from osler.evaluate.intervals import proportion
from osler.text import language_of
from osler.types import Hit, Passage

MADE = Path(__file__).parent / "authority" / "conflicts.jsonl"
Pair = tuple[str, str, str, str]
"""made or real, conflict or none, and the two texts."""


def read_pairs(data: Path, half: str) -> Iterator[Pair]:
    with MADE.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if row["half"] == half:
                yield "made", row["label"], row["mine"], row["theirs"]
    path = data / "A_questions/healthver/healthver_dev.csv"
    with path.open(encoding="utf-8", newline="") as stream:
        rows = sorted(csv.DictReader(stream), key=lambda row: sha256(row["id"].encode()).digest())
    first = 0 if half == "dev" else 25
    for said, label in (("Refutes", "conflict"), ("Supports", "none")):
        of_label = [row for row in rows if row["label"] == said]
        for row in of_label[first : first + 25]:
            yield "real", label, row["claim"], row["evidence"]


def as_hit(text: str, name: str) -> Hit:
    passage = Passage(f"research:{name}#0", text, "research", name, language=language_of(text))
    return Hit(passage, 1.0, 1, "", "research")


def find_difference_of(mine: str, theirs: str) -> Difference | None:
    """What an answer's evidence would be found to differ in."""
    _, found = keep_consistent([as_hit(mine, "a"), as_hit(theirs, "b")], lambda _: 3)
    return found[0].difference if found else None


def main(data: Path, half: str) -> None:
    found: Counter[tuple[str, str]] = Counter()
    every: Counter[tuple[str, str]] = Counter()
    for kind, label, mine, theirs in read_pairs(data, half):
        seen = find_difference_of(mine, theirs)
        every[kind, label] += 1
        found[kind, label] += seen is not None
        if half == "dev" and kind == "made" and (seen is not None) != (label == "conflict"):
            print(label, "|", mine, "|", theirs, "|", seen and (seen.rule, seen.mine, seen.theirs))
    for label in ("conflict", "none"):
        for kinds in (("made",), ("real",), ("made", "real")):
            right, n = (sum(count[kind, label] for kind in kinds) for count in (found, every))
            print(f"{half} {label:8} {'+'.join(kinds):10} found {right}/{n} {proportion(right, n)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
