"""Parses replies as models really write them: in any dress, several actions in one.

A Thought and the action after it are two steps of one reply; nothing is read after a Tool_Use,
whose observation the model cannot know, or after a Conclusion. A reply without a tag is a
Conclusion where it cites passages, else a Thought.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from osler.answer.silence import read_draft
from osler.errors import MalformedOutput
from osler.llm.core.ask import complete
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.llm.reading.actions import ReadAction, read_actions
from osler.llm.reading.marks import find_marks
from osler.methods.tcrag.actions import (
    Action,
    Backtrack,
    Conclusion,
    ParsedAction,
    Summary,
    Thought,
    ToolUse,
)
from osler.prompts import render_prompt
from osler.trace import Run
from osler.types import Language

_EXPECTED = "Thought, Tool_Use, Backtrack, Summary or Conclusion with its text"


def parse_tolerant(reply: str, *, tools: Collection[str]) -> tuple[ParsedAction, ...]:
    """The actions of a reply up to the first that ends it.

    Raises `MalformedOutput` for a reply without words, and for a tool that is not offered.
    """
    steps: list[ParsedAction] = []
    for read in read_actions(reply, tools):
        if read.kind == "tool_use" and read.tool not in tools:
            if steps:
                break
            raise MalformedOutput(reply, expected=f"a tool, one of {', '.join(sorted(tools))}")
        steps.append(ParsedAction(_to_action(read), read.start, read.end))
        if isinstance(steps[-1].action, ToolUse | Conclusion):
            break
    if not steps:
        raise MalformedOutput(reply, expected=_EXPECTED)
    return tuple(steps)


def _to_action(read: ReadAction) -> Action:
    match read.kind:
        case "tool_use":
            return ToolUse(read.tool, read.argument)
        case "backtrack":
            return Backtrack(read.text)
        case "summary":
            return Summary(read.text)
        case "conclusion":
            return Conclusion(read.text)
        case "untagged" if find_marks(read.text):
            return Conclusion(read.text)
        case _:
            return Thought(read.text)


async def ask_conclusion(
    model: LanguageModel,
    context: Sequence[Message],
    sampling: Sampling,
    run: Run,
    *,
    role: str,
    language: Language,
) -> str:
    """The Conclusion of a run whose steps are spent; empty where the model writes none.

    Raises `BudgetExceeded`.
    """
    prompt = render_prompt("tcrag/close", language)
    turns = [*context, Message("user", prompt.text)]
    reply = await complete(model, turns, sampling, run, role=role, prompt=prompt.identity)
    found = read_actions(reply.text, ())
    said = [one.text for one in found if one.kind in ("conclusion", "untagged")]
    return read_draft(said[-1], run) if said else ""
