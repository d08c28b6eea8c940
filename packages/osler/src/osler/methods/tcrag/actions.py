"""The actions of TC-RAG (§5.1) and their wire form (App. 8.4).

    Thought: …
    Tool_Use: DOC_RAG
    Tool_Input: …            ours: the paper gives the tool no argument
    Backtrack: …
    Summary: …
    Conclusion: …

Three readers: `parse_action`, one action a reply, the first, in the paper's tags or those of the
authors' program (`Action`, `Action Input`, `Final Answer`); `parse_released`, by the rules of that
program; `parse_tolerant`, what models really write, several actions in one reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, Node, alt, free_text, named_rule, seq
from osler.llm.reading.actions import ReadAction, read_actions
from osler.llm.reading.answers import find_marks
from osler.llm.reading.json_replies import read_json
from osler.methods.tcrag.tools import PEDIA_RAG, WEB_RAG


class Move(StrEnum):
    """The kinds of action a model may take."""

    THOUGHT = "Thought"
    TOOL_USE = "Tool_Use"
    BACKTRACK = "Backtrack"
    SUMMARY = "Summary"
    CONCLUSION = "Conclusion"


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    tool: str
    query: str
    """Empty when the model named only the tool, as in the paper: then the question is the query."""


@dataclass(frozen=True, slots=True)
class Backtrack:
    text: str
    """The reason."""


@dataclass(frozen=True, slots=True)
class Summary:
    text: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    text: str


Action = Thought | ToolUse | Backtrack | Summary | Conclusion

OBSERVATION = "Tool_Observation"
"""The tag a model must never write: generation stops there."""

_TAGS = {
    "thought": Move.THOUGHT,
    "tool_use": Move.TOOL_USE,
    "action": Move.TOOL_USE,
    "backtrack": Move.BACKTRACK,
    "summary": Move.SUMMARY,
    "conclusion": Move.CONCLUSION,
    "final_answer": Move.CONCLUSION,
}
_WORDED: Mapping[Move, Callable[[str], Action]] = {
    Move.THOUGHT: Thought,
    Move.BACKTRACK: Backtrack,
    Move.SUMMARY: Summary,
    Move.CONCLUSION: Conclusion,
}
_INPUTS = {"tool_input", "action_input"}
_STOPS = {"tool_observation", "observation", "user_query"}
TAG = re.compile(
    r"^[ \t]*(Thought|Tool[_ ]Use|Tool[_ ]Input|Tool[_ ]Observation|Backtrack|Summary|Conclusion"
    r"|User[_ ]Query|Action[_ ]Input|Action|Observation|Final[_ ]Answer)[ \t]*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_EXPECTED = "one action: Thought, Tool_Use, Backtrack, Summary or Conclusion with its text"


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """An action and the span of its own text in the reply, over which the state value is taken."""

    action: Action
    start: int
    end: int


def parse_action(reply: str, *, tools: Collection[str]) -> ParsedAction:
    """The first action of a reply; what follows it is dropped.

    A reply without any tag is a Thought. Raises `MalformedOutput` for an empty action, an
    unknown tool, or text that poses as an observation.
    """
    # Models often go on with invented observations: only what precedes the second tag counts.
    tags = list(TAG.finditer(reply))
    if not tags:
        return _parse_untagged(reply, Thought, _EXPECTED)
    name = normalize_tag(tags[0].group(1))
    start, end = trim_span(reply, tags[0].end(), tags[1].start() if len(tags) > 1 else len(reply))
    text = reply[start:end]
    move = _TAGS.get(name)
    if move is None:
        raise MalformedOutput(reply, expected=_EXPECTED)
    if move is Move.TOOL_USE:
        return ParsedAction(tool_use(reply, text, tags[1:], tools), start, end)
    # Backtrack needs no words of its own: popping is all it does.
    if not text and move is not Move.BACKTRACK:
        raise MalformedOutput(reply, expected=f"text after {move.value}:")
    return ParsedAction(_WORDED[move](text), start, end)


def _parse_untagged(reply: str, kind: Callable[[str], Action], expected: str) -> ParsedAction:
    """The whole reply as one action."""
    start, end = trim_span(reply, 0, len(reply))
    if start == end:
        raise MalformedOutput(reply, expected=expected)
    return ParsedAction(kind(reply[start:end]), start, end)


def tool_use(reply: str, name: str, later: list[re.Match[str]], tools: Collection[str]) -> ToolUse:
    wanted = plain_name(name.splitlines()[0] if name else "")
    known = {plain_name(tool): tool for tool in tools}
    if wanted not in known:
        raise MalformedOutput(reply, expected=f"a tool, one of {', '.join(sorted(tools))}")
    query = ""
    if later and normalize_tag(later[0].group(1)) in _INPUTS:
        stop = later[1].start() if len(later) > 1 else len(reply)
        query = _read_argument(reply[later[0].end() : stop].strip())
    return ToolUse(known[wanted], query)


def plain_name(tool: str) -> str:
    """A tool's name as it is compared: "doc-rag." equals "DOC_RAG"."""
    return re.sub(r"[\W_]", "", tool).upper()


def _read_argument(text: str) -> str:
    """Reads bare text, or the string inside a JSON object, as the authors' program wrote it."""
    if text.startswith("{"):
        with suppress(ValueError):
            found = read_json(text)
            values = found.values() if isinstance(found, dict) else ()
            return next((value for value in values if isinstance(value, str)), text)
    return text


def normalize_tag(tag: str) -> str:
    return tag.lower().replace(" ", "_")


def trim_span(reply: str, start: int, end: int) -> tuple[int, int]:
    """Trims white space off both ends of a span."""
    text = reply[start:end]
    first = start + len(text) - len(text.lstrip())
    return first, max(first, start + len(text.rstrip()))


def move_of(action: Action) -> Move:
    return Move.TOOL_USE if isinstance(action, ToolUse) else Move(type(action).__name__)


def render_action(action: Action) -> str:
    """Renders the wire form; `parse_action` is the inverse."""
    if isinstance(action, ToolUse):
        asked = f"\nTool_Input: {action.query}" if action.query else ""
        return f"Tool_Use: {action.tool}{asked}"
    return f"{move_of(action)}: {action.text}"


def action_grammar(
    moves: Collection[Move], tools: Collection[str], *, argument: bool, longest: int = 600
) -> Grammar:
    """One action out of `moves`, on one line of at most `longest` characters.

    `argument` asks for a Tool_Input line.
    """
    line = named_rule("line", free_text(longest))
    arms = [
        _call_node(tools, line, argument=argument)
        if move is Move.TOOL_USE
        else seq(f"{move}: ", line)
        for move in Move
        if move in moves
    ]
    return Grammar("tcrag-action", alt(*arms))


def _call_node(tools: Collection[str], line: Node, *, argument: bool) -> Node:
    tool = seq("Tool_Use: ", named_rule("tool", alt(*sorted(tools))))
    return seq(tool, "\nTool_Input: ", line) if argument else tool


_NOT_TAKEN = re.compile(
    r"\W*(?:(?:no|none|nil|n/?a|nothing|无|没有|否)\W*$"
    r"|(?:(?:(?:not|none) (?:needed|necessary|required|applicable)|unnecessary|no need"
    r"|no backtrack\w*(?: (?:needed|necessary|required))?)"
    r"(?: (?:to backtrack|yet|now|here|at this \w+))?"
    r"|(?:不需要|无需|不必|不用|不适用)(?:回溯|回退|总结)?)\s*(?:[^\w\s]|$))",
    re.IGNORECASE,
)
"""What a model that fills in every line of the format says of an action that it does not take."""
_EXPECTED_STEPS = "Thought, Tool_Use, Backtrack, Summary or Conclusion with its text"


def parse_tolerant(reply: str, *, tools: Collection[str]) -> tuple[ParsedAction, ...]:
    """The actions of a reply, in any dress, up to the first that ends it.

    A Thought and the action after it are two steps; one before a Backtrack or Summary is its
    reason, and no step: these act on what stood there before. Nothing is read after a Tool_Use,
    whose observation the model cannot know, or after a Conclusion. A reply without a tag is a
    Conclusion where it cites passages, else a Thought. Raises `MalformedOutput` for a reply without
    words, and for a tool that is not offered.
    """
    steps: list[ParsedAction] = []
    for read in read_actions(reply, tools):
        unknown = read.kind == "tool_use" and read.tool not in tools
        if (unknown or read.kind in ("backtrack", "summary")) and _NOT_TAKEN.match(read.text):
            continue
        if unknown:
            raise MalformedOutput(reply, expected=f"a tool, one of {', '.join(sorted(tools))}")
        if read.kind in ("backtrack", "summary"):
            while steps and isinstance(steps[-1].action, Thought):
                steps.pop()
        steps.append(ParsedAction(_to_action(read), read.start, read.end))
        if isinstance(steps[-1].action, ToolUse | Conclusion):
            break
    if not steps:
        raise MalformedOutput(reply, expected=_EXPECTED_STEPS)
    return tuple(steps)


def _to_action(read: ReadAction) -> Action:
    if read.kind == "tool_use":
        return ToolUse(read.tool, read.argument)
    if read.kind == "untagged":
        return Conclusion(read.text) if find_marks(read.text) else Thought(read.text)
    return _WORDED[_TAGS[read.kind]](read.text)


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

    A Backtrack anywhere discards the rest of the reply; else the first Action counts, else the
    Final Answer, else the Thought. A reply without a tag is a final answer. Text after
    `Observation:` is the model's invention and is dropped. The program's own tool names are
    accepted; its replacement of "query" by "input" within a text is not copied: it edits content.
    Raises `MalformedOutput` as `parse_action` does.
    """
    tags = list(TAG.finditer(reply))
    end = next(
        (tag.start() for tag in tags if normalize_tag(tag.group(1)) in _OBSERVED), len(reply)
    )
    kept = reply[:end]
    if not tags:
        return _parse_untagged(reply, Conclusion, "a final answer")
    for wanted in _RANK:
        found = next(
            (t for t in tags if t.end() <= end and normalize_tag(t.group(1)) in wanted), None
        )
        if found is not None:
            head = found.start()
            parsed = parse_action(_rename_tool(kept[head:], tools), tools=tools)
            return ParsedAction(parsed.action, parsed.start + head, parsed.end + head)
    raise MalformedOutput(reply, expected="Thought, Action, Backtrack or Final Answer")


def _rename_tool(text: str, tools: Collection[str]) -> str:
    """Replaces the program's name of a tool by ours, where that tool is offered."""
    head, colon, rest = text.partition(":" if ":" in text.splitlines()[0] else "：")
    line, _, more = rest.partition("\n")
    ours = _ALIASES.get(plain_name(line))
    if normalize_tag(head.strip()) not in ("action", "tool_use") or ours not in tools:
        return text
    return f"{head}{colon} {ours}\n{more}"
