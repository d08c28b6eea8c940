"""Parses replies by the rules of the authors' released program.

    Thought: …
    Action: KG_RAG
    Action Input: {"input": "…"}
    Backtrack: …
    Final Answer: …

A Backtrack anywhere discards the rest of the reply; else the first Action counts, else the
Final Answer, else the Thought. A reply without a tag is a final answer. Text after
`Observation:` is the model's invention and is dropped. The program's own tool names are
accepted. Its replacement of "query" by "input" within a text is not copied: it edits content.
"""

from __future__ import annotations

from collections.abc import Collection

from osler.errors import MalformedOutput
from osler.methods.tcrag.actions import (
    TAG,
    Conclusion,
    ParsedAction,
    normalize_tag,
    parse_action,
    plain_name,
    trim_span,
)
from osler.methods.tcrag.tools import PEDIA_RAG, WEB_RAG

# Precedence of the released program when a reply has several tags.
_RANK = (
    {"backtrack"},
    {"action", "tool_use"},
    {"final_answer", "conclusion"},
    {"summary"},
    {"thought"},
)
_OBSERVED = {"observation", "tool_observation"}
# Tool names of the released program, normalised as `plain_name` does.
_ALIASES = {"GOOGLESEARCH": WEB_RAG, "BAIKERAG": PEDIA_RAG}


def parse_released(reply: str, *, tools: Collection[str]) -> ParsedAction:
    """The one action of a reply in the authors' dialect.

    Raises `MalformedOutput` as `parse_action` does.
    """
    tags = list(TAG.finditer(reply))
    end = next(
        (tag.start() for tag in tags if normalize_tag(tag.group(1)) in _OBSERVED), len(reply)
    )
    kept = reply[:end]
    if not tags:
        return _read_answer(reply)
    for wanted in _RANK:
        found = next(
            (t for t in tags if t.end() <= end and normalize_tag(t.group(1)) in wanted), None
        )
        if found is not None:
            head = found.start()
            parsed = parse_action(_rename_tool(kept[head:], tools), tools=tools)
            return ParsedAction(parsed.action, parsed.start + head, parsed.end + head)
    raise MalformedOutput(reply, expected="Thought, Action, Backtrack or Final Answer")


def _read_answer(reply: str) -> ParsedAction:
    start, end = trim_span(reply, 0, len(reply))
    if start == end:
        raise MalformedOutput(reply, expected="a final answer")
    return ParsedAction(Conclusion(reply[start:end]), start, end)


def _rename_tool(text: str, tools: Collection[str]) -> str:
    """Replaces the program's name of a tool by ours, where that tool is offered."""
    head, colon, rest = text.partition(":" if ":" in text.splitlines()[0] else "：")
    line, _, more = rest.partition("\n")
    ours = _ALIASES.get(plain_name(line))
    if normalize_tag(head.strip()) not in ("action", "tool_use") or ours not in tools:
        return text
    return f"{head}{colon} {ours}\n{more}"
