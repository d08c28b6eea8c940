"""Splits a written plan into its steps, whatever the layout.

Step1: … Action1: …                     KAG-Thinker Table 1
1. **Step 1**: …\\n   - **Action 1**: …   lists, bold, headings
步骤一：… 动作一：…    第一步：…           Chinese
Step 1 - …                              dashes and full stops
1. … Retrieval(…)                       a list without labels
[{"step": "…", "action": "…"}]          JSON, also {"Step1": "…", "Action1": "…"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from osler.llm.reading.json_replies import json_in

_CHINESE = {sign: n for n, sign in enumerate("零一二三四五六七八九十")}
_WORDS = {
    word: n
    for n, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven"])
}
_N = rf"(?:\d{{1,4}}|[{''.join(_CHINESE)}]{{1,3}}|{'|'.join(_WORDS)})?"
_BULLET = r"[^\S\n]*(?:(?:[-*+•>]|#{1,6}|\d{1,3}[.)、．])[^\S\n]+|[-*•#>]+)*[^\S\n]*"
_BOLD = r"[*_`]{0,3}"
_GAP = r"[^\S\n]*"
_STEP_WORD = r"(?:sub-?)?(?:step|步骤|子问题)"
_ACTION_WORD = r"(?:action|动作|行动|操作|function|函数)"


def _label(word: str, group: str, end: str) -> str:
    """`**Step 1**:`, its mark inside or outside the bold type."""
    number = rf"{_GAP}[#＃]?{_GAP}(?P<{group}>{_N}){_GAP}"
    return rf"{_BOLD}{word}{number}{_BOLD}{_GAP}(?:{end}){_GAP}{_BOLD}"


_COLON = "[:：]"
_END = rf"{_COLON}|[.．、](?!\d)|[-–—](?=\s)"
_STEP = re.compile(
    rf"(?:^|\n){_BULLET}(?:{_label(_STEP_WORD, 'n', _END)}"
    rf"|{_BOLD}第(?P<th>{_N})步{_BOLD}{_GAP}[:：，,]{_GAP}{_BOLD})",
    re.IGNORECASE,
)
_INLINE_STEP = re.compile(rf"\s*{_label('(?:step|步骤)', 'n', _COLON)}", re.IGNORECASE)
_LISTED = re.compile(rf"(?:^|\n){_GAP}{_BOLD}(?P<n>\d{{1,2}})[.)、．]{_BOLD}\s+")
_OWN_LINE = re.compile(rf"\n{_BULLET}{_label(_ACTION_WORD, 'n', _END)}", re.IGNORECASE)
_SAME_LINE = re.compile(rf"{_BULLET}{_label(_ACTION_WORD, 'n', _COLON)}\s*", re.IGNORECASE)
# Where the next step begins on the line of an action.
_AFTER_ACTION = re.compile(
    rf"(?:[)）`]|(?:->|→)\s*\w+|#\d+)\s+(?={_BOLD}(?:step|步骤){_GAP}{_N}{_GAP}{_BOLD}{_GAP}[:：])",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[^\S\n]*```.*$", re.MULTILINE)
_STEP_KEY = re.compile(rf"{_STEP_WORD}{_GAP}_?(?P<n>{_N})", re.IGNORECASE)
_STEP_KEYS = ("step", "question", "sub_question", "subquestion", "query", "description", "thought")
_ACTION_KEYS = ("action", "function", "logical_form", "form", "call", "动作")


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """A step as a model wrote it."""

    number: int
    """0 where none is given."""
    words: str
    action: str
    """Empty if absent."""


def split_steps(text: str, function: re.Pattern[str]) -> list[WrittenStep]:
    """The steps of a plan, in its order; `function` is what an action begins with.

    Empty where there is no plan.
    """
    if steps := list(_json_steps(text)):
        return steps
    plain = _FENCE.sub("", text)
    starts = list(_STEP.finditer(plain)) or [*filter(None, [_INLINE_STEP.search(plain)])]
    if not starts and function.search(plain):
        starts = list(_LISTED.finditer(plain))
    steps = []
    ends = [*(start.start() for start in starts[1:]), len(plain)]
    for start, end in zip(starts, ends, strict=False):
        steps += _segment_steps(_step_number(start), plain[start.end() : end], function)
    return [step for step in steps if step.words or step.action]


def _segment_steps(number: int, text: str, function: re.Pattern[str]) -> Iterator[WrittenStep]:
    """One step, or several that follow each other on one line."""
    while True:
        words, action = _split_action(text, function)
        following = _AFTER_ACTION.search(action)
        rest = action[following.end() :] if following else ""
        own = action[: following.end()] if following else action
        yield WrittenStep(number, _tidy(words), own.strip().strip("`*").strip())
        start = _INLINE_STEP.match(rest)
        if start is None:
            return
        number, text = _step_number(start), rest[start.end() :]


def _split_action(text: str, function: re.Pattern[str]) -> tuple[str, str]:
    """A step's words and its action. On its own line a label is certain; elsewhere the name of a
    function must follow, or begin a line."""
    if (match := _OWN_LINE.search(text)) is not None:
        return text[: match.start()], text[match.end() :]
    for label in _SAME_LINE.finditer(text):
        if function.match(text, label.end()) or text[label.end() :].startswith("`"):
            return text[: label.start()], text[label.end() :]
    for name in function.finditer(text):
        before = text[: name.start()]
        if (
            before.rstrip(" \t`*-:：→>").endswith(("\n", "?", "？", ".", "。"))
            or not before.strip()
        ):
            return before, text[name.start() :]
    return text, ""


def _tidy(words: str) -> str:
    # "#" of a heading; "#1" is the answer of a step.
    bare = (re.sub(r"^[\s*_`>#]*?#+(?!\d)|#+\s*$", "", line) for line in words.splitlines())
    lines = [line.strip(" \t*_`>") for line in bare]
    return " ".join(line for line in lines if line.strip("-• ")).strip().strip("-–—").strip()


def _step_number(match: re.Match[str]) -> int:
    groups = match.groupdict()
    return _read_number(groups.get("n") or groups.get("th") or "")


def _read_number(said: str) -> int:
    if said.isdigit():
        return int(said)
    if said.casefold() in _WORDS:
        return _WORDS[said.casefold()]
    tens, _, ones = said.partition("十")
    if "十" in said:
        return _CHINESE.get(tens, 1) * 10 + _CHINESE.get(ones, 0)
    return _CHINESE.get(said, 0)


def _json_steps(text: str) -> Iterator[WrittenStep]:
    for opening in "[{":
        value = json_in(text, opening)
        found = list(_value_steps(value)) if value else []
        if any(step.action for step in found):
            yield from found
            return


def _value_steps(value: Any) -> Iterator[WrittenStep]:
    """The steps of a list, of a list inside an object, or of `Step1` and `Action1` as keys."""
    if isinstance(value, Mapping):
        inner = next((each for each in value.values() if isinstance(each, list)), [])
        value = inner if any(isinstance(each, Mapping) for each in inner) else [value]
    for each in value if isinstance(value, list) else ():
        if isinstance(each, Mapping):
            yield from _object_steps(each)


def _object_steps(value: Mapping[str, Any]) -> Iterator[WrittenStep]:
    keys = {str(key).strip().casefold(): said for key, said in value.items()}
    labels = [(_STEP_KEY.fullmatch(key), said) for key, said in keys.items()]
    numbered = [(label["n"], said) for label, said in labels if label and label["n"]]
    for n, said in numbered:
        number = _read_number(n)
        if isinstance(said, Mapping):
            yield from (replace(step, number=number) for step in _object_steps(said))
        else:
            action = next((keys[k] for k in _action_names(n) if k in keys), "")
            yield WrittenStep(number, _tidy(str(said)), str(action))
    if numbered:
        return
    said = next((keys[k] for k in _STEP_KEYS if isinstance(keys.get(k), str)), "")
    action = next((keys[k] for k in _ACTION_KEYS if isinstance(keys.get(k), str)), "")
    number = next(
        (v for k in ("n", "id", "number", "step") if isinstance(v := keys.get(k), int)), 0
    )
    if said or action:
        yield WrittenStep(number, _tidy(said), action)


def _action_names(number: str) -> Iterator[str]:
    for word in ("action", "动作"):
        yield from (f"{word}{number}", f"{word} {number}", f"{word}_{number}")
