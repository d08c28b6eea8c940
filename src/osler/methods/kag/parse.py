"""Parses a model's reply into a plan or a search, tolerantly (KAG-Thinker Tables 1, 5 and 9).

Nothing but `MalformedOutput` is ever raised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.errors import MalformedOutput
from osler.methods.kag.logical_forms import Form, LogicalPlan, PlanStep
from osler.methods.kag.reader import FUNCTION, read_form

MOST_STEPS = 50
"""Upper bound on steps: a longer plan comes from a model that repeats itself."""
LONGEST = 60_000
"""Characters of a reply that are read."""

_STEP = re.compile(
    r"(?:^|\n)[^\S\n]*[-*#>]*[^\S\n]*(?:step|步骤)[^\S\n]*(\d{0,4})[^\S\n]*[:：.]", re.IGNORECASE
)
_INLINE_STEP = re.compile(r"\s*(?:step|步骤)\s*(\d{0,4})\s*[:：]", re.IGNORECASE)
_ACTION = r"(?:action|动作|行动|操作)\s*\d{0,4}\s*[:：]"
_OWN_LINE = re.compile(rf"\n[^\S\n]*[-*#>]*[^\S\n]*{_ACTION}", re.IGNORECASE)
_SAME_LINE = re.compile(rf"{_ACTION}\s*(?={FUNCTION.pattern})", re.IGNORECASE)
_ANY = re.IGNORECASE | re.DOTALL
_THINK = re.compile(r"<think>.*?(?:</think>|$)", _ANY)
_TAGS = {tag: re.compile(rf"<{tag}>(.*?)(?:</{tag}>|$)", _ANY) for tag in ("answer", "search")}


# Number (0 where none is given), question, action.
_Read = tuple[int, str, Form]


def read_plan(reply: str) -> LogicalPlan:
    """The steps of `<think>…</think><answer>Step1: …</answer>`, or of the bare lines."""
    return LogicalPlan(
        tuple(_number_steps(list(_read_steps(_tag_content("answer", _check_length(reply))))))
    )


def read_search(reply: str) -> PlanStep:
    """The one sub-problem of `<search>Step: … Action: …</search>` (Table 9).

    Raises `MalformedOutput` too when the reply does not ask for a search.
    """
    text = _check_length(reply)
    if not _TAGS["search"].search(text):
        raise MalformedOutput(reply, expected="<search>…</search>")
    for number, question, form in _read_steps(_tag_content("search", text)):
        return PlanStep(number or 1, question, form)
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


def _read_steps(text: str) -> Iterator[_Read]:
    starts = list(_STEP.finditer(text))
    if not starts:
        match = _INLINE_STEP.search(text)
        starts = [match] if match else []
    for index, start in enumerate(starts):
        until = starts[index + 1].start() if index + 1 < len(starts) else len(text)
        yield from _read_segment(int(start[1] or 0), text[start.end() : until])


def _read_segment(number: int, text: str) -> Iterator[_Read]:
    """One step, or several that follow each other on one line."""
    while True:
        # An Action on its own line is certain; on the Step's line a function name must follow.
        match = _OWN_LINE.search(text) or _SAME_LINE.search(text)
        if match is None:
            raise MalformedOutput(text, expected="an Action for each Step")
        action = text[match.end() :]
        form, end = read_form(action)
        yield number, text[: match.start()].strip(), form
        following = _INLINE_STEP.match(action, end)
        if following is None:
            return
        number, text = int(following[1] or 0), action[following.end() :]


def _number_steps(found: list[_Read]) -> Iterator[PlanStep]:
    """Numbers the steps as the reply does if its numbers are distinct; else by position."""
    if not found:
        raise MalformedOutput("", expected="Step1: … and Action1: …")
    if len(found) > MOST_STEPS:
        raise MalformedOutput(found[0][1], expected=f"at most {MOST_STEPS} steps, not {len(found)}")
    # Models restart or skip numbers; then references "#n" can only mean positions.
    numbers = [number for number, _, _ in found]
    told = 0 not in numbers and len(set(numbers)) == len(numbers)
    for place, (number, question, form) in enumerate(found, 1):
        yield PlanStep(number if told else place, question, form)
