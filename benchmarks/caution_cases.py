"""How often the cautions of outdated evidence are right: precision and recall over labelled cases.

    python benchmarks/caution_cases.py

The cases (`benchmarks/cautions/cases.jsonl`) are ours and illustrative: their drugs and diseases do
not exist. A label says what a careful reader would say of the two passages, not what a rule can
see; so some cases are written to be missed. They are small, clean pairs: figures on real corpora
would be lower. The rules were corrected on the first set; the second was written afterwards, and
nothing was changed for it. No model is asked.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.answer.cautions import find_cautions
from osler.types import Answer, Evidence, Hit, Locator, Passage, Statement

RULES = ("retracted", "superseded")
CASES = Path(__file__).parent / "cautions" / "cases.jsonl"


@dataclass(frozen=True, slots=True)
class Tried:
    """A case, what it is labelled with, and which rules fired."""

    id: str
    language: str
    part: str
    """first or second."""
    expected: frozenset[str]
    fired: frozenset[str]


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float | None:
        fired = self.right + self.wrong
        return self.right / fired if fired else None

    @property
    def recall(self) -> float | None:
        there = self.right + self.missed
        return self.right / there if there else None


def tried() -> Iterator[Tried]:
    with CASES.open(encoding="utf-8") as lines:
        for line in lines:
            case = json.loads(line)
            cited, other = (_hit(case, name) for name in ("cited", "other"))
            quote = Evidence(cited, 0, len(cited.passage.text))
            answer = Answer((Statement("It is so.", (1,)),), (quote,), language=case["language"])
            fired = {found.rule for found in find_cautions(answer, [cited, other])}
            yield Tried(
                case["id"],
                case["language"],
                case["set"],
                frozenset(case["expect"]),
                frozenset(fired),
            )


def table(cases: Sequence[Tried]) -> list[Row]:
    """A row a rule, then each language and each set, then all."""
    rows = [_row(rule, cases, {rule}) for rule in RULES]
    every = set(RULES)
    rows += [
        _row(name, [case for case in cases if case.language == language], every)
        for name, language in (("English", "en"), ("Chinese", "zh"))
    ]
    rows += [
        _row(f"{part} set", [case for case in cases if case.part == part], every)
        for part in ("first", "second")
    ]
    return [*rows, _row("all", cases, every)]


def markdown(rows: Sequence[Row]) -> list[str]:
    head = ["| Rule | Right | Wrong | Missed | Precision | Recall |", "|---|--:|--:|--:|--:|--:|"]
    return head + [
        f"| {row.name} | {row.right} | {row.wrong} | {row.missed} |"
        f" {_share(row.precision)} | {_share(row.recall)} |"
        for row in rows
    ]


def _row(name: str, cases: Sequence[Tried], rules: set[str]) -> Row:
    return Row(
        name,
        sum(len(case.expected & case.fired & rules) for case in cases),
        sum(len((case.fired - case.expected) & rules) for case in cases),
        sum(len((case.expected - case.fired) & rules) for case in cases),
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _hit(case: dict[str, Any], name: str) -> Hit:
    given = case[name]
    title, _, section = given["title"].partition(" > ")
    locator = Locator(section=section, year=given["year"], kind=given["kind"])
    passage = Passage(
        f"{given['source']}:{name}#0",
        given["text"],
        given["source"],
        title,
        locator,
        language=case["language"],
        illustrative=True,
    )
    return Hit(passage, 1.0, 1, "q", given["source"])


if __name__ == "__main__":
    found = list(tried())
    sys.stdout.write("\n".join([f"{len(found)} cases", "", *markdown(table(found)), ""]))
    for case in found:
        if case.expected != case.fired:
            told = f"{case.id}: expected {sorted(case.expected)}, fired {sorted(case.fired)}\n"
            sys.stdout.write(told)
