"""Finds tags such as Thought and Conclusion in any dress.

    **Thought:** …      ### Conclusion      - **Tool_Use**: …      [Summary] …      结论：…

A tag stands at the beginning of a line. Those of two words ("Tool_Use:", "Final Answer:") are
known within one as well, since no prose has them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS = {
    "observation": r"(?:Tool[ _-]{0,2})?Observations?|观察(?:结果)?|工具(?:观察|结果|返回)",
    "tool_input": (
        r"(?:Tool|Action)[ _-]{0,2}Input|Input|Query|工具输入|(?:动作)?输入|查询(?:词|内容)?"
    ),
    "tool_use": (
        r"Tool[ _-]{0,2}(?:Use|Call)|Use[ _-]{1,2}Tool|Tool|Action|(?:使用|调用)?工具|行动|动作"
    ),
    "backtrack": r"Backtrack(?:ing)?|回溯|回退",
    "summary": r"Summary|摘要|总结|概括|小结",
    "conclusion": (
        r"Conclusions?|Final[ _-]{0,2}Answer|(?:The[ ])?Answer|最终(?:答案|结论)|结论|答案|回答"
    ),
    "thought": r"Thoughts?|Thinking|Reasoning|思考|想法|思路",
    "query": r"User[ _-]{0,2}Query|Question|用户(?:问题|查询)|问题",
}
"""A tag's name → what models write for it."""
_WORD = "|".join(f"(?P<{name}>{words})" for name, words in WORDS.items())
# What stands before a tag on its line: quotes, headings, bullets, numbers, an opened fence.
_LEAD = r"^[ \t]*(?:```\w*[ \t]*|[>#]+[ \t]*|[-*•·+][ \t]+|\d{1,2}[.)、][ \t]*)*"
_OPEN, _CLOSE = r"(?P<open>[*_`]{1,3}|[\[【「])?", r"(?:[*_`]{1,3}|[\]】」])?"
_NUMBER = r"(?:[ \t]*[#(（]?\d{1,2}[)）]?)?"
_TAG = re.compile(
    rf"(?P<lead>{_LEAD}){_OPEN}[ \t]*(?:{_WORD}){_NUMBER}[ \t]*{_CLOSE}[ \t]*"
    rf"(?:(?P<colon>[:：]|->|→|[-–—](?=[ \t]))[ \t]*{_CLOSE}|(?P<alone>$)|(?P<after>(?<=[\]】]))|"
    r"(?P<bold>(?<=\*\*)))",
    re.IGNORECASE | re.MULTILINE,
)
_WITHIN = re.compile(
    r"(?<=[\s.!?。！？;；])\*{0,2}"
    r"(?:(?P<tool_use>Tool_Use)|(?P<tool_input>(?:Tool|Action)[_ ]Input)"
    r"|(?P<observation>Tool_Observation)|(?P<conclusion>Final[_ ]Answer))\*{0,2}[:：]\*{0,2}[ \t]*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_EDGES = " \t\r\n*`"


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag in a reply: its name (a key of `WORDS`) and its place, dress included."""

    name: str
    start: int
    end: int
    """Where what it heads begins."""


def find_tags(text: str) -> list[Tag]:
    """The tags of a reply, in order."""
    # Markdown escapes the underscore of "Tool\_Use"; a mark of equal length keeps the places.
    plain = text.replace("\\_", " _")
    found = [_read_match(match) for match in _TAG.finditer(plain) if _is_tag(match)]
    within = (_read_match(match) for match in _WITHIN.finditer(plain))
    others = [
        tag for tag in within if all(tag.end <= one.start or one.end <= tag.start for one in found)
    ]
    return _drop_stray(sorted([*found, *others], key=_start_of))


def _start_of(tag: Tag) -> int:
    return tag.start


def _read_match(match: re.Match[str]) -> Tag:
    named = next(name for name in WORDS if match.groupdict().get(name))
    return Tag(named, match.start(), match.end())


def _is_tag(match: re.Match[str]) -> bool:
    """Without a colon a word is a tag only where its dress says so."""
    if match["colon"]:
        return True
    if match["alone"] is not None:
        return "#" in match["lead"] or bool(match["open"])
    return bool(match["open"])


def _drop_stray(tags: list[Tag]) -> list[Tag]:
    """Leaves out words that are tags only after another: "Query:" is no input without a tool."""
    kept: list[Tag] = []
    for tag in tags:
        if tag.name == "tool_input" and (not kept or kept[-1].name != "tool_use"):
            continue
        kept.append(tag)
    return kept


def content_span(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of what a tag heads, without fences, stars and white space around it."""
    part = text[start:end]
    # A fence is opened or closed around the tags, and belongs to none of them.
    blank = _FENCE.sub(lambda fence: " " * len(fence.group()), part)
    first = len(blank) - len(blank.lstrip(_EDGES))
    last = len(blank.rstrip(_EDGES))
    # Stars within the text that it begins or ends with are pairs: "**Iron** helps".
    opened = len(blank[:first]) - len(blank[:first].rstrip("*"))
    if opened and blank[first:last].count("**") % 2:
        first -= opened
    return start + first, max(start + first, start + last)
