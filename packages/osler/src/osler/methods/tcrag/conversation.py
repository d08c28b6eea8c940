"""The conversation that a stack is shown as: the prompt of App. 8.4 and a turn for each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from osler.llm.core.base import Message
from osler.methods.tcrag.actions import Move
from osler.methods.tcrag.moves import Moves
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.methods.tcrag.tools import Tool, describe_tool
from osler.prompts import RenderedPrompt, render_prompt
from osler.types import Language, Question

Template = Literal["line", "json"]
"""How tools are described: a line each, or with their parameters as JSON (the released code)."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What the prompt says besides the stack."""

    argument: bool = True
    """Whether the model writes the tool's query; else the question itself is asked."""
    template: Template = "line"


def render_act_prompt(
    question: Question, tools: Sequence[Tool], moves: Moves, wording: Wording
) -> RenderedPrompt:
    language = question.language
    described = [
        {"name": tool.name, "description": _describe(tool.name, language, wording)}
        for tool in tools
    ]
    return render_prompt(
        "tcrag/act",
        language,
        tools=described,
        names=", ".join(tool.name for tool in tools),
        summary=Move.SUMMARY in moves.taught_moves,
        backtrack=Move.BACKTRACK in moves.taught_moves,
        input=wording.argument,
        json=wording.template == "json",
    )


def _describe(name: str, language: Language, wording: Wording) -> str:
    described = describe_tool(name, language)
    if wording.template == "line":
        return described
    rendered = render_prompt("tcrag/tool", language, tool=name, description=described)
    return rendered.text.strip()


def stack_messages(prompt: RenderedPrompt, memory: MemoryStack) -> tuple[Message, ...]:
    """The conversation is the stack in order: a push extends it, a pop shortens it.

    So an engine with a prefix cache never reads a token twice.
    """
    said = [Message("system", prompt.text)]
    for frame in memory.frames:
        if frame.call:
            said.append(Message("assistant", frame.call))
        role: Literal["user", "assistant"] = (
            "user" if frame.kind in (FrameKind.QUERY, FrameKind.OBSERVATION) else "assistant"
        )
        said.append(Message(role, f"{frame.kind}: {frame.text}"))
    return tuple(_merge_turns(said))


def _merge_turns(messages: Sequence[Message]) -> list[Message]:
    """Merges neighbouring messages of one role, since chat templates expect alternating turns.

    A last message of the assistant ends with a line break, so that the model begins a new action
    instead of continuing the last one.
    """
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role:
            last = joined.pop()
            joined.append(Message(last.role, f"{last.content}\n{message.content}"))
        else:
            joined.append(message)
    if joined[-1].role == "assistant":
        joined[-1] = Message("assistant", joined[-1].content + "\n")
    return joined
