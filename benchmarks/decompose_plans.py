"""Plans of `decompose.py`: a line a step, and what they give over gold retrieval."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

COMPARED = ("latest", "earliest")
OPERATIONS = (*COMPARED, "same", "both", "without", "count", "more", "fewer", "any")


@dataclass(frozen=True)
class Step:
    subject: str
    """A name, or "#n"."""
    relation: str
    """Or a question, where there is no subject."""


@dataclass(frozen=True)
class Plan:
    steps: tuple[Step, ...]
    operation: str = ""
    operands: tuple[int, ...] = ()
    """Numbers of steps, from 1."""

    def write(self) -> str:
        lines = [
            f"{s.subject} > {s.relation}" if s.subject else f"? {s.relation}" for s in self.steps
        ]
        if self.operation:
            lines.append(" ".join([self.operation, *(f"#{n}" for n in self.operands)]))
        return "\n".join(lines)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What stays when names and words are taken away."""
        kinds = tuple(
            s.subject if s.subject.startswith("#") else bool(s.subject) for s in self.steps
        )
        return kinds, self.operation, self.operands


def read_plan(text: str, question: str) -> Plan | None:
    """The plan, or `None` for one that is not valid: an unknown operation, a result that is not
    there, a name that the question does not hold."""
    steps: list[Step] = []
    for line in filter(None, map(str.strip, text.strip().splitlines())):
        word, *numbers = line.split()
        if word in OPERATIONS and numbers and all(re.fullmatch(r"#\d+", n) for n in numbers):
            operands = tuple(int(n[1:]) for n in numbers)
            sound = steps and max(operands) <= len(steps) and min(operands) > 0
            return Plan(tuple(steps), word, operands) if sound else None
        if line.startswith("? "):
            step = Step("", line[2:])
        elif " > " in line:
            step = Step(*map(str.strip, line.split(" > ", 1)))
        else:
            return None
        told = re.findall(r"#(\d+)", step.subject + step.relation)
        if any(not 0 < int(n) <= len(steps) for n in told):
            return None
        if step.subject and not told and step.subject.casefold() not in question.casefold():
            return None
        steps.append(step)
    return Plan(tuple(steps)) if steps else None


Lookup = Callable[[str, str], set[str]]


def carry_out(plan: Plan, look: Lookup) -> tuple[set[str] | int | bool | None, list[set[str]]]:
    """The answer, and what each step found."""
    found: list[set[str]] = []
    starts: list[str] = []
    for step in plan.steps:
        if re.fullmatch(r"#\d+", step.subject):
            n = int(step.subject[1:]) - 1
            found.append({far for near in found[n] for far in look(near, step.relation)})
            starts.append(starts[n])
        else:
            subject, relation = (fill_results(it, found) for it in (step.subject, step.relation))
            found.append(look(subject, relation))
            starts.append(subject or (starts[0] if starts else ""))
    if not plan.operation:
        return found[-1], found
    sets = [found[n - 1] for n in plan.operands]
    return compute(plan, sets, [starts[n - 1] for n in plan.operands]), found


def fill_results(text: str, found: Sequence[set[str]]) -> str:
    """The text with one value of each result that it names."""
    for n, values in enumerate(found, 1):
        text = text.replace(f"#{n}", min(values, default=""))
    return text


def read_date(text: str) -> float | None:
    """A date as years with their fraction; `None` for none."""
    year = re.findall(r"\d{3,4}", text)
    if not year:
        return None
    words = set(re.findall(r"[^\W\d_]+", text))
    named = zip(calendar.month_name[1:], calendar.month_abbr[1:], strict=True)
    month = next((n for n, names in enumerate(named) if words & set(names)), 0)
    day = next((int(each) for each in re.findall(r"\b\d{1,2}(?!\d)", text)), 1)
    return int(year[-1]) + month / 12 + (day - 1) / 372


def compute(plan: Plan, sets: list[set[str]], starts: list[str]) -> set[str] | int | bool | None:
    first, second = sets[0], sets[-1]
    match plan.operation:
        case "count":
            return len(first)
        case "both":
            return first & second
        case "without":
            return first - second
        case "any" | "same":
            return bool(first & second)
        case "more" | "fewer" if len(sets) > 1:
            pick = (max if plan.operation == "more" else min)(range(2), key=lambda i: len(sets[i]))
            return {starts[pick]} if len(first) != len(second) else None
    dates = [read_date(min(values, default="")) for values in sets]
    if plan.operation not in COMPARED or len(dates) < 2 or None in dates:
        return None
    pick = (max if plan.operation == "latest" else min)(range(2), key=lambda i: dates[i] or 0)
    return {starts[pick]}
