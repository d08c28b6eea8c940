"""Parses a model's reply into a plan or a search, tolerantly (KAG-Thinker Tables 1, 5 and 9).

A step whose action cannot be read is looked up in its own words, so that one bad step loses no
plan. Nothing but `MalformedOutput` is ever raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from osler.errors import MalformedOutput
from osler.llm.reading.steps import WrittenStep, split_steps
from osler.methods.kag.logical_forms import Form, LogicalPlan, PlanStep, Retrieval, SpoNode
from osler.methods.kag.reader import FUNCTION, read_form

MOST_STEPS = 50
"""Upper bound on steps: a longer plan comes from a model that repeats itself."""
LONGEST = 60_000
"""Characters of a reply that are read."""

_ANY = re.IGNORECASE | re.DOTALL
_THINK = re.compile(r"<think>.*?(?:</think>|$)", _ANY)
_TAGS = {tag: re.compile(rf"<{tag}>(.*?)(?:</{tag}>|$)", _ANY) for tag in ("answer", "search")}


# Number (0 where none is given), question, action.
_Read = tuple[int, str, Form]


@dataclass(frozen=True, slots=True)
class PlanReading:
    """A parsed plan, and what was mended in it or left out."""

    plan: LogicalPlan
    mended: tuple[str, ...] = ()


def read_plan(reply: str) -> LogicalPlan:
    """The steps of `<think>…</think><answer>Step1: …</answer>`, or of the bare lines."""
    return read_plan_tolerantly(reply).plan


def read_plan_tolerantly(reply: str) -> PlanReading:
    """The plan with what had to be mended. Raises `MalformedOutput` where no step can be read."""
    text = _check_length(reply)
    inside = _tag_content("answer", text)
    # A model may put its plan before the tag, and a word or nothing into it.
    written = split_steps(inside, FUNCTION) or split_steps(_THINK.sub("", text), FUNCTION)
    if not written:
        raise MalformedOutput(reply, expected="Step1: … and Action1: …")
    if len(written) > MOST_STEPS:
        expected = f"at most {MOST_STEPS} steps, not {len(written)}"
        raise MalformedOutput(reply, expected=expected)
    found, mended, errors = _read_written(written)
    if len(errors) == len(written):
        raise MalformedOutput(errors[0].reply or reply, expected=errors[0].expected)
    return PlanReading(LogicalPlan(tuple(_number_steps(found))), tuple(mended))


def read_search(reply: str) -> PlanStep:
    """The one sub-problem of `<search>Step: … Action: …</search>` (Table 9).

    Raises `MalformedOutput` too when the reply does not ask for a search.
    """
    text = _check_length(reply)
    if not _TAGS["search"].search(text):
        raise MalformedOutput(reply, expected="<search>…</search>")
    for step in split_steps(_tag_content("search", text), FUNCTION):
        return PlanStep(step.number or 1, step.words, _read_action(step))
    raise MalformedOutput(reply, expected="a Step and an Action in <search>")


def _check_length(reply: str) -> str:
    if len(reply) > LONGEST:
        raise MalformedOutput(reply, expected=f"at most {LONGEST} characters")
    return reply


def _tag_content(tag: str, reply: str) -> str:
    """The content of the tag; without a tag the reply without its thinking. Closing tags are
    optional."""
    text = _THINK.sub("", reply)
    match = _TAGS[tag].search(text)
    # A reply that opens with the thought's end was begun inside it by the prompt.
    return match[1] if match else text.rpartition("</think>")[2]


def _read_written(
    written: list[WrittenStep],
) -> tuple[list[_Read], list[str], list[MalformedOutput]]:
    """The steps, those with a bad action as lookups of their words; and what was wrong."""
    found: list[_Read] = []
    mended: list[str] = []
    errors: list[MalformedOutput] = []
    for place, step in enumerate(written, 1):
        number = step.number or place
        try:
            found.append((step.number, step.words, _read_action(step)))
        except MalformedOutput as error:
            errors.append(error)
            if not step.words:
                mended.append(f"step {number} could not be read and was left out")
                continue
            mended.append(f"step {number}'s action could not be read: its words are looked up")
            found.append((step.number, step.words, _words_lookup(number, step.words)))
    return found, mended, errors


def _read_action(step: WrittenStep) -> Form:
    if not step.action:
        raise MalformedOutput(step.words, expected="an Action for each Step")
    return read_form(step.action)[0]


def _words_lookup(number: int, words: str) -> Retrieval:
    """A lookup of a step's words, whose result has the usual name."""
    subject = SpoNode(f"s{number}", "question", words)
    return Retrieval(subject, SpoNode(f"p{number}", "answer"), SpoNode(f"o{number}"))


def _number_steps(found: list[_Read]) -> Iterator[PlanStep]:
    """Numbers the steps as the reply does if its numbers are distinct; else by position."""
    # Models restart or skip numbers; then references "#n" can only mean positions.
    numbers = [number for number, _, _ in found]
    told = 0 not in numbers and len(set(numbers)) == len(numbers)
    for place, (number, question, form) in enumerate(found, 1):
        yield PlanStep(number if told else place, question, form)
