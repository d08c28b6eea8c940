"""Reads the actions of a reply, several in order, whatever notation they are in.

    Thought: …                       <tool_call>{"name": "DOC_RAG", "arguments": {…}}</tool_call>
    **Tool_Use**: DOC_RAG            {"tool": "DOC_RAG", "input": "…"}
    **Tool_Input**: …                DOC_RAG("…")

What follows an observation that the model wrote itself is its invention, and is not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from osler.llm.reading.answers import Tag, content_span, find_tags, is_debris, without_debris
from osler.llm.reading.json_replies import read_json

Kind = Literal["thought", "tool_use", "backtrack", "summary", "conclusion", "untagged"]
_STOPS = frozenset({"observation", "query"})
_CALL = re.compile(
    r"<\|?(?:tool_call|function_call|tool_use)\|?>|\[TOOL_CALLS?\]|```(?:json|tool_call)?\s*(?=\{)"
    r"|^[ \t]*(?=\{)",
    re.IGNORECASE | re.MULTILINE,
)
_CALL_END = re.compile(
    r"\s*(?:</?\|?(?:tool_call|function_call|tool_use)\|?>|\[/TOOL_CALLS?\]|```)", re.IGNORECASE
)
_NAMES = ("tool", "tool_name", "name", "action", "tool_use", "function")
_INPUTS = ("input", "tool_input", "action_input", "arguments", "parameters", "args", "query")
_SAID: dict[str, Kind] = {
    "thought": "thought",
    "thinking": "thought",
    "backtrack": "backtrack",
    "summary": "summary",
    "conclusion": "conclusion",
    "final_answer": "conclusion",
    "answer": "conclusion",
}
"""Keys of an object that spells an action: `{"thought": …, "tool": …}`."""
_ITEM = re.compile(
    r"[ \t>]*(?:[-*•·+][ \t]|\d{1,2}[.)、])(?!\W*(?:tool|user|工具|用户))", re.IGNORECASE
)
_QUOTES = " \t\r\n\"'“”‘’`*"


@dataclass(frozen=True, slots=True)
class ReadAction:
    """An action: its kind, and the span of its own words in the reply."""

    kind: Kind
    text: str
    start: int
    end: int
    tool: str = ""
    """Of a tool_use: the tool as it is offered; as it was written where none of that name is."""
    argument: str = ""


def read_actions(reply: str, tools: Collection[str]) -> list[ReadAction]:
    """The actions of a reply, in order; one `untagged` where it has words and no action.

    Courtesies before the first action are left out; other words before it are a thought.
    """
    found = _actions_of(reply, tools)
    first = found[0].start if found else len(reply)
    lead = _words_before(reply, first, found, tools)
    return [*([lead] if lead else ()), *found]


def _words_before(
    reply: str, end: int, found: list[ReadAction], tools: Collection[str]
) -> ReadAction | None:
    """What stands before the first tag or call."""
    places = [tag.start for tag in find_tags(reply)] + [call.start for call in _calls(reply, tools)]
    start, end = content_span(reply, 0, min([end, *places]))
    text = reply[start:end]
    if _is_talk(text):
        return None
    return ReadAction("thought" if found else "untagged", text, start, end)


def _is_talk(text: str) -> bool:
    return all(map(is_debris, text.splitlines()))


def _actions_of(reply: str, tools: Collection[str]) -> list[ReadAction]:
    tags = _heading_tags(reply, find_tags(reply))
    # The question said again comes first; one behind an answer is the model's invention.
    if tags and tags[0].name == "query" and _is_talk(reply[: tags[0].start]):
        del tags[0]
    limit = next((tag.start for tag in tags if tag.name in _STOPS), len(reply))
    calls = [call for call in _calls(reply, tools) if call.start < limit]
    found: list[ReadAction] = [*calls]
    heads = [tag for tag in tags if tag.start < limit]
    for at, tag in enumerate(heads):
        following = heads[at + 1 :]
        ends = [other.start for other in following[:1]] + [
            call.start for call in calls if call.start >= tag.end
        ]
        end = min([limit, *ends])
        read = _read_tag(reply, tag, end, following, limit, tools)
        if read is not None and not any(call.start < read.end <= call.end for call in calls):
            found.append(read)
    return sorted(found, key=lambda action: action.start)


def _heading_tags(reply: str, tags: list[Tag]) -> list[Tag]:
    """Tags without those that a conclusion has within it: its own summary, an "Answer:", and items
    of a list ("- Observation: pulse") where it is none itself."""
    kept: list[Tag] = []
    for tag in tags:
        concludes = bool(kept) and kept[-1].name == "conclusion"
        if concludes and tag.name in ("conclusion", "summary", "tool_use", "tool_input"):
            continue
        if concludes and _ITEM.match(reply, tag.start) and not _ITEM.match(reply, kept[-1].start):
            continue
        kept.append(tag)
    return kept


def _read_tag(
    reply: str, tag: Tag, end: int, following: list[Tag], limit: int, tools: Collection[str]
) -> ReadAction | None:
    start, end = content_span(reply, tag.end, end)
    text = reply[start:end]
    match tag.name:
        case "tool_use" if text:
            argument = _input_after(reply, following, limit)
            return _read_call(text, start, end, argument, tools)
        case "backtrack":
            return ReadAction("backtrack", text, start, end)
        case "thought" | "summary" | "conclusion" as kind:
            return ReadAction(kind, text, start, end) if text else None
        case _:
            return None


def _input_after(reply: str, following: list[Tag], limit: int) -> str:
    if not following or following[0].name != "tool_input":
        return ""
    end = following[1].start if len(following) > 1 else limit
    start, end = content_span(reply, following[0].end, end)
    return without_debris(reply[start:end])


def _read_call(
    text: str, start: int, end: int, argument: str, tools: Collection[str]
) -> ReadAction:
    """A call as a tag has it: a name, or a name with its argument on the same line."""
    line = text.splitlines()[0]
    if match := _written_call(tools).match(line):
        name, argument = _find_tool(match["name"], tools), argument or match["argument"] or ""
    else:
        name = _find_tool(line, tools) or line.strip(_QUOTES)
    return ReadAction("tool_use", text, start, end, name, _plain_argument(argument))


def _written_call(tools: Collection[str]) -> re.Pattern[str]:
    """A name as a function: `DOC_RAG("x")`, `DOC_RAG [x]`, `DOC_RAG: x`."""
    names = "|".join(_loose_name(tool) for tool in sorted(tools, key=len, reverse=True)) or "(?!)"
    return re.compile(
        rf"[ \t*`]*(?P<name>{names})[*`]*[ \t]*"
        r"(?:[(（\[](?P<argument>.*?)[)）\]]?[ \t*`.。]*$|[:：,，-]+[ \t]*(?P<said>.+)$|[.。*`]*$)",
        re.IGNORECASE | re.MULTILINE,
    )


def _loose_name(tool: str) -> str:
    return r"\\?[_\- ]?".join(re.escape(part) for part in re.split(r"[_\- ]", tool))


def _find_tool(name: str, tools: Collection[str]) -> str:
    """The offered tool of this name, whatever its case and joints; empty for none."""
    known = {_plain_name(tool): tool for tool in tools}
    return known.get(_plain_name(name), "")


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name).upper()


def _plain_argument(text: str) -> str:
    """The words of an argument: the string of an object, or bare text without its quotes."""
    said = text.strip().removesuffix("```").strip()
    if said.startswith(("{", "[")):
        try:
            return _string_in(read_json(said)) or said
        except ValueError:
            return said
    named = re.fullmatch(r"\w+\s*=\s*([\"'].*)", said, re.DOTALL)
    return (named[1] if named else said).strip(_QUOTES)


def _string_in(value: Any) -> str:
    """The first string of a JSON value."""
    if isinstance(value, str):
        return value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(_string_in, parts)), "")


def _calls(reply: str, tools: Collection[str]) -> list[ReadAction]:
    """The calls that are objects, and those that are functions on a line of their own."""
    found = [*_object_actions(reply, tools)]
    for match in _written_call(tools).finditer(reply):
        line = reply[reply.rfind("\n", 0, match.start()) + 1 : match.start()]
        inside = any(one.start <= match.start() < one.end for one in found)
        if not line.strip(" \t*`->") and match["argument"] is not None and not inside:
            name = _find_tool(match["name"], tools)
            argument = _plain_argument(match["argument"])
            found.append(
                ReadAction("tool_use", match.group(), match.start(), match.end(), name, argument)
            )
    return found


def _object_actions(reply: str, tools: Collection[str]) -> Iterator[ReadAction]:
    at = 0
    while (match := _CALL.search(reply, at)) is not None:
        at = max(match.end(), at + 1)
        end = _object_end(reply, match.end())
        value = _read_object(reply[match.end() : end])
        actions = [*_spelt_actions(value, match.start(), end, tools)] if value else []
        if not actions:
            continue
        closing = _CALL_END.match(reply, end)
        at = closing.end() if closing else end
        yield from actions


def _object_end(text: str, start: int) -> int:
    """The place behind the brace that closes the one at `start`; the text's end where none does."""
    depth = 0
    for place in re.finditer(r"[{}\[\]]", text[start:]):
        depth += 1 if place.group() in "{[" else -1
        if depth == 0:
            return start + place.end()
    return len(text)


def _read_object(text: str) -> dict[str, Any]:
    # A reply that was cut lacks its last braces.
    for closing in ("", "}", "}}", '"}', '"}}'):
        try:
            value = read_json(text.strip() + closing)
        except ValueError:
            continue
        value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, dict) else {}
    return {}


def _spelt_actions(
    value: dict[str, Any], start: int, end: int, tools: Collection[str]
) -> Iterator[ReadAction]:
    """The actions of an object, a thought before the call that it leads to."""
    plain = {str(key).lower().replace(" ", "_"): said for key, said in value.items()}
    inner = plain.get("function")
    if isinstance(inner, dict):
        plain |= {str(key).lower(): said for key, said in inner.items()}
    for key, kind in _SAID.items():
        if isinstance(said := plain.get(key), str) and said.strip():
            yield ReadAction(kind, said.strip(), start, end)
    for key in _NAMES:
        if isinstance(name := plain.get(key), str) and (tool := _find_tool(name, tools)):
            given = next((plain[one] for one in _INPUTS if one in plain), "")
            argument = _plain_argument(given) if isinstance(given, str) else _string_in(given)
            yield ReadAction("tool_use", name, start, end, tool, argument)
            return
