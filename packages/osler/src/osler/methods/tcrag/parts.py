"""What TC-RAG's machine is made of: steps, conversation, and the values that the paper gives.

A step is one decision, read out of replies, or a summary. The conversation is the stack as a model
is shown it: the prompt of App. 8.4 and a turn for each frame.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from typing import Literal, Protocol, Self

from osler.answer import Composer
from osler.answer.written import WrittenComposer
from osler.errors import MalformedOutput
from osler.llm.core.base import Completion, LanguageModel, Likelihood, Message, Sampling
from osler.llm.core.spans import span_tokens
from osler.methods.tcrag import actions
from osler.methods.tcrag.actions import Move, ParsedAction, move_of
from osler.methods.tcrag.moves import AnyMove, Moves, OfferedMoves
from osler.methods.tcrag.stack import (
    SIGMA,
    Draft,
    FrameKind,
    MemoryStack,
    Metric,
    Monitor,
    make_monitor,
)
from osler.methods.tcrag.tools import ALL_RAG, SearchTool, Tool, describe_tool
from osler.prompts import RenderedPrompt, render_prompt
from osler.types import Language, Question, Retriever

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


class ActionReader(Protocol):
    """Parser of a reply into its one action, or its several. Raises `MalformedOutput`."""

    def __call__(
        self, reply: str, *, tools: Collection[str]
    ) -> ParsedAction | tuple[ParsedAction, ...]: ...


@dataclass(frozen=True, slots=True)
class MachineStep:
    """One decision, with the data to value and trace it."""

    i: int
    parsed: ParsedAction
    completion: Completion
    context: tuple[Message, ...]
    acted_on: bool = False
    """Whether another action of the same reply comes after it."""

    def monitored_draft(self) -> Draft:
        """The action's own text and tokens: its tag does not count for the state value (§5.2)."""
        start, end = self.parsed.start, self.parsed.end
        tokens = span_tokens(self.completion.tokens, (start, end))
        return Draft(self.completion.text[start:end], tokens, self.context)


def read_steps(
    read: ActionReader,
    completion: Completion,
    context: tuple[Message, ...],
    offer: OfferedMoves,
    first: int,
) -> tuple[MachineStep, ...]:
    """The steps of a reply, numbered from `first`, up to the first that is not offered.

    Those before the first that is offered are passed over: a thought must not hide its action.
    Raises `MalformedOutput` without any.
    """
    found = read(completion.text, tools=offer.tools)
    parsed = found if isinstance(found, tuple) else (found,)

    def is_offered(one: ParsedAction) -> bool:
        return move_of(one.action) in offer.moves

    allowed = [*takewhile(is_offered, dropwhile(lambda one: not is_offered(one), parsed))]
    if not allowed:
        expected = f"one of {', '.join(sorted(offer.moves))}"
        raise MalformedOutput(completion.text, expected=expected)
    return tuple(
        MachineStep(first + n, one, completion, context, acted_on=n + 1 < len(allowed))
        for n, one in enumerate(allowed)
    )


@dataclass(frozen=True)
class MachineParts:
    """The parts of a `TuringMachine`, and its options."""

    model: LanguageModel
    """Writes the actions."""
    tools: tuple[Tool, ...]
    monitor: Monitor
    composer: Composer
    moves: Moves
    sigma: float
    max_loop: int = 8
    argument: bool = True
    """Whether the model writes the tool's query; else the question itself is asked."""
    constrained: bool = False
    """Whether the engine takes a grammar."""
    read: ActionReader = actions.parse_action
    """Parser of replies, by the dialect; all are in `tcrag.actions`."""
    summariser: LanguageModel | None = None
    """Model that writes summaries; `None` = the acting model, in its action, as in the paper."""
    basis: str = ""
    """Origin of sigma, shown with the reason for halting; empty for a configured one."""
    note: str = ""
    """A note on sigma, emitted before the first step."""
    longest: int = 600
    """Characters of an action's text under a grammar; a third of it in Chinese, which is denser."""
    template: Template = "line"
    """How tools are described to the model."""
    exhausted: Literal["draft", "top"] = "draft"
    """What a run without a sure conclusion returns: the last Thought or Summary, or, as in line
    31, the top of the stack whatever it is."""
    closes: bool = False
    """Whether a run whose steps are spent asks for a Conclusion before it ends, and one ends whose
    model has said twice that the same evidence does not answer."""
    search_first: bool = False
    """Whether the question itself is looked up before the model is asked for its first action."""
    fresh: bool = False
    """Whether a search shows only passages that memory lacks (`ToolCall.fresh`)."""
    sampling: Sampling = field(default_factory=Sampling)

    @classmethod
    def from_model(
        cls, model: LanguageModel, retriever: Retriever, *, metric: Metric | None = None
    ) -> Self:
        """Makes the machine of the paper, with one tool that searches and one model for all else.

        Every action at every step (Algorithm 1), sigma as in App. 8.5, 8 steps as in the released
        code; the model words the answer, and its sentences are held against the passages. `metric`
        is the state value; `None`: cppl where the model scores given texts, else uct, for which it
        must tell the log-probabilities of its replies. Other values: `dataclasses.replace`. Raises
        `CapabilityMissing` for cppl of a model that scores nothing.

            >>> import asyncio, osler
            >>> from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
            >>> text = "Warfarin is stopped five days before surgery."
            >>> found = osler.Passage("notes:warfarin#0", text, "notes", "Warfarin")
            >>> replies = ["Tool_Use: ALL_RAG\\nTool_Input: warfarin", f"Conclusion: {text} [1]"]
            >>> model, retriever = ScriptedModel(replies), ScriptedRetriever({"warfarin": [found]})
            >>> machine = osler.TuringMachine.from_model(model, retriever)
            >>> question = osler.parse_question("When is warfarin stopped before surgery?")
            >>> solution = asyncio.run(machine.solve(question, osler.Run()))
            >>> solution.answer.text, solution.why
            ('Warfarin is stopped five days before surgery. [1]', 'cppl 2 < sigma 10')
        """
        chosen: Metric = metric or ("cppl" if isinstance(model, Likelihood) else "uct")
        return cls(
            model,
            (SearchTool(ALL_RAG, retriever),),
            make_monitor(chosen, model),
            WrittenComposer(),
            AnyMove(frozenset({ALL_RAG})),
            sigma=SIGMA[chosen],
            exhausted="top",
        )
