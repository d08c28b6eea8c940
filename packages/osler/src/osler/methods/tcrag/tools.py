"""The tools of TC-RAG and their descriptions for the model (App. 8.5).

A tool of Osler's own is a name, one entry of `tools.toml`, and an object that implements `Tool`;
one of the user's is an object and its description, given to `register_tool`. A tool may also pop
frames before its observation is pushed: pops, then a push, are what every composed action comes to
(§7).

The helpers of the released code (hypothesis, entities, order, filter) are tools too. None of them
yields evidence: their outputs are observations without passages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from osler.answer.gate import EvidenceGate
from osler.errors import KnowledgeBaseError, MalformedOutput, ModelError, SourceUnavailable
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar, free_text, named_rule
from osler.methods.tcrag.stack import Frame
from osler.prompts import render_prompt
from osler.retrieve import look_up, tell_order
from osler.sources.catalogue import BUILT_IN
from osler.text import one_line, read_packaged_table
from osler.trace import Noted, Run
from osler.types import Hit, Language, Question, Retriever, citation_mark

DOC_RAG, KG_RAG, PEDIA_RAG = "DOC_RAG", "KG_RAG", "PEDIA_RAG"
WEB_RAG, EMR_RAG = "WEB_RAG", "EMR_RAG"
KG_CHAINS, KG_COMMUNITIES = "KG_CHAINS", "KG_COMMUNITIES"
HYPOTHESIS_OUTPUT, MEDICAL_NER = "HYPOTHESIS_OUTPUT", "MEDICAL_NER"
KNOWLEDGE_ORGANIZE, FILTER = "KNOWLEDGE_ORGANIZE", "FILTER"

SOURCES_OF: Mapping[str, tuple[str, ...]] = {
    tool: tuple(one.name for one in BUILT_IN if one.tool == tool)
    # In the order of App. 8.5, in which prompts name the tools; the catalogue has another.
    for tool in (DOC_RAG, KG_RAG, PEDIA_RAG, WEB_RAG, EMR_RAG)
}
"""App. 8.5: document search, knowledge graph search, pedia search, web search, records."""

CARRIERS = (KG_CHAINS, KG_COMMUNITIES)
"""Tools over the concept graph alone: the knowledge carriers of HyKGE and GraphRAG (App. 8.5)."""

ALL_RAG = "ALL_RAG"
"""One search over every source, as `rag` makes it; for moves that ask no model which source."""

PLANNED_RAG, KG_FORM = "PLANNED_RAG", "KG_FORM"
"""Tools of the unified system: a search whose sources Omni-RAG's planner chooses, and a lookup of
the step's own logical form."""
UNIFIED = (PLANNED_RAG, KG_FORM)

HELPERS = (HYPOTHESIS_OUTPUT, MEDICAL_NER, KNOWLEDGE_ORGANIZE, FILTER)
"""The released code's helpers, offered only where they are named."""

DESCRIPTIONS: Mapping[str, Mapping[Language, str]] = read_packaged_table(__package__, "tools.toml")
"""Descriptions of the tools for the model, by tool and language."""

_EMPTY = {"en": "Nothing was found.", "zh": "没有找到任何内容。"}
_DOWN = {"en": "The tool is not available: ", "zh": "该工具不可用："}


# Anything else is a bug or a cancelled run, and must not be hidden in an observation.
FAILURES = (SourceUnavailable, KnowledgeBaseError, ModelError, MalformedOutput)
"""Errors of a tool that do not end the run."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool with its context."""

    query: str
    """The tool's input; the question itself where the model gave none."""
    question: Question
    known: tuple[Hit, ...] = ()
    """The passages in memory, numbered from 1 in this order."""
    frames: tuple[Frame, ...] = ()
    """The memory stack, the query first."""
    fresh: bool = False
    """Whether a search shows only passages that memory lacks: the next best stand in the place of
    those that were read."""

    def wanted_hits(self, k: int) -> int:
        """How many passages must be found for `k` to be shown."""
        return k + len(self.known) if self.fresh else k

    def choose_hits(self, hits: Sequence[Hit], k: int) -> tuple[Hit, ...]:
        """Those that are shown: all that came of `k` asked for; of more, the `k` that memory lacks,
        and where it has them all, what it has."""
        read = {hit.passage.id for hit in self.known} if self.fresh else set[str]()
        if not read:
            return tuple(hits)
        return tuple(hit for hit in hits if hit.passage.id not in read)[:k] or tuple(hits)[:k]


@dataclass(frozen=True, slots=True)
class Observation:
    """The output of a tool."""

    text: str
    hits: tuple[Hit, ...] = ()
    """Passages that may be cited from now on; empty for output that is no evidence."""
    writer: str = ""
    """Role of the model that wrote `text`; empty for what was found."""
    pops: int = 0
    """Frames that are popped first, the query never; with them an empty `text` pushes nothing."""


class Tool(Protocol):
    @property
    def name(self) -> str: ...

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        """Runs the tool. A source that is down is reported as an observation and as an event.

        May raise `BudgetExceeded`, and `FAILURES`, which the machine turns into an observation
        and an event.
        """


@dataclass(frozen=True)
class SearchTool:
    """A named retriever as a tool that shows `k` passages."""

    name: str
    retriever: Retriever
    sources: tuple[str, ...] = ()
    k: int = 5

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        k, language = call.wanted_hits(self.k), call.question.language
        result = await look_up(self.retriever, call.query, run, k=k, sources=self.sources)
        if result.failed:
            return observe_failure(result.failed, language)
        hits = call.choose_hits(result.hits, self.k)
        if len(hits) < len(result.hits):
            tell_order(hits, run)
        return Observation(number_passages(hits, call.known, language), hits)


_REGISTERED: dict[str, tuple[Tool, Mapping[Language, str]]] = {}
"""With the description of each."""
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def register_tool(tool: Tool, *, en: str, zh: str) -> None:
    """Adds a tool to the actions of TC-RAG: `strategy.tools` may name it from now on.

    `en`, `zh`: its description for the model. A replay runs it anew, since what it does is on no
    tape. Raises `ValueError` for a name that is not of capitals and underscores, and for one of
    Osler's own; the same name again replaces the tool.
    """
    if not _NAME.fullmatch(tool.name) or tool.name in DESCRIPTIONS:
        raise ValueError(f"{tool.name!r} cannot name a tool of one's own")
    _REGISTERED[tool.name] = tool, {"en": en, "zh": zh}


def registered_tools() -> dict[str, Tool]:
    """The tools that were registered, by name."""
    return {name: tool for name, (tool, _) in _REGISTERED.items()}


async def try_tool(tool: Tool, call: ToolCall, run: Run) -> Observation:
    """What the tool found; a failure that does not end the run is an observation and an event."""
    try:
        return await tool.call_tool(call, run)
    except FAILURES as error:
        run.emit(Noted(f"{tool.name} failed: {error.message}"))
        return observe_failure(error.message, call.question.language)


def describe_tool(name: str, language: Language) -> str:
    """The description of a tool. Raises `KeyError` for a tool without one."""
    described = _REGISTERED[name][1] if name in _REGISTERED else DESCRIPTIONS[name]
    return described[language]


def observe_failure(reason: str, language: Language) -> Observation:
    """The observation of a tool that failed."""
    return Observation(_DOWN[language] + reason)


def number_passages(hits: Sequence[Hit], known: Sequence[Hit], language: Language) -> str:
    """The text of an observation; numbering continues after the passages already `known`."""
    if not hits:
        return _EMPTY[language]
    numbers = {hit.passage.id: n for n, hit in enumerate(known, 1)}
    lines = []
    for hit in hits:
        number = numbers.setdefault(hit.passage.id, len(numbers) + 1)
        lines.append(f"{citation_mark(number)} {_describe_hit(hit)}")
    return "\n".join(lines)


_NO_PASSAGES = {"en": "No passage is in memory yet.", "zh": "记忆中还没有任何段落。"}
_NO_TERMS = {"en": "No medical term was found.", "zh": "没有找到医学实体。"}
_TERMS = {"en": "Medical terms: ", "zh": "医学实体："}
_GUESS = {"en": "Hypothesis, not evidence: ", "zh": "假设（并非证据）："}
_BEARS = {"en": "On the question: {}. Not on it: {}.", "zh": "与问题有关：{}。无关：{}。"}
_NONE = {"en": "none", "zh": "无"}


@dataclass(frozen=True)
class LineWriter:
    """A model that writes one line, constrained to it where the engine takes a grammar."""

    model: LanguageModel
    sampling: Sampling = field(default_factory=Sampling)
    constrains: bool = False
    longest: int = 600
    """Characters of the line in English; a third of it in Chinese, which is denser."""
    role: str = "planner"
    """Whose model it is: `Observation.writer`."""

    async def observe_line(
        self, template: str, call: ToolCall, run: Run, *, before: str = "", **values: object
    ) -> Observation:
        """The line that a prompt asks for, behind `before`. Raises `MalformedOutput` for an empty
        reply, and `BudgetExceeded`."""
        language = call.question.language
        prompt = render_prompt(template, language, **values)
        # Chinese says in a third of the characters what English needs.
        longest = self.longest if language == "en" else self.longest // 3
        grammar = (
            Grammar("line", named_rule("line", free_text(longest))) if self.constrains else None
        )
        sampling = replace(self.sampling, seed=run.rng.getrandbits(31), grammar=grammar)
        asked = [Message("user", prompt.text)]
        line = await ask(
            self.model, asked, _reply_line, sampling, run, role="helper", prompt=prompt.identity
        )
        return Observation(before + line, writer=self.role)


@dataclass(frozen=True)
class HypothesisTool:
    """A hypothetical answer whose words can be searched (HyKGE)."""

    scribe: LineWriter
    name: str = HYPOTHESIS_OUTPUT

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        before = _GUESS[call.question.language]
        return await self.scribe.observe_line(
            "tcrag/hypothesis", call, run, before=before, question=call.query
        )


@dataclass(frozen=True)
class EntitiesTool:
    """The medical terms of a text, by the names of the concept graph."""

    mentions: Retriever
    """Such as `osler.retrieve.graph_mentions.MentionRetriever`: one hit per term."""
    name: str = MEDICAL_NER
    k: int = 10

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        language = call.question.language
        result = await look_up(self.mentions, call.query, run, k=self.k)
        if result.failed:
            return observe_failure(result.failed, language)
        told = [one_line(hit.passage.text) for hit in result.hits]
        return Observation(_TERMS[language] + "; ".join(told) if told else _NO_TERMS[language])


@dataclass(frozen=True)
class ReadEntitiesTool:
    """The medical terms of a text, named by a model when there is no graph."""

    scribe: LineWriter
    name: str = MEDICAL_NER

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        before = _TERMS[call.question.language]
        return await self.scribe.observe_line(
            "tcrag/entities", call, run, before=before, text=call.query
        )


@dataclass(frozen=True)
class OrganiseTool:
    """The passages in memory put in order for the question."""

    scribe: LineWriter
    name: str = KNOWLEDGE_ORGANIZE

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        if not call.known:
            return Observation(_NO_PASSAGES[call.question.language])
        documents = [
            f"{citation_mark(n)} {_describe_hit(hit)}" for n, hit in enumerate(call.known, 1)
        ]
        return await self.scribe.observe_line(
            "tcrag/organise", call, run, question=call.question.text, documents=documents
        )


@dataclass(frozen=True)
class FilterTool:
    """Reports which passages in memory are evidence; removing them is left to Backtrack."""

    gate: EvidenceGate
    name: str = FILTER

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        language = call.question.language
        if not call.known:
            return Observation(_NO_PASSAGES[language])
        bears: list[str] = []
        idle: list[str] = []
        for number, hit in enumerate(call.known, 1):
            evidence = (await self.gate.weigh_evidence(call.question, [hit])).quotes
            (bears if evidence else idle).append(citation_mark(number))
        told = (", ".join(group) or _NONE[language] for group in (bears, idle))
        return Observation(_BEARS[language].format(*told))


def _describe_hit(hit: Hit) -> str:
    return f"{hit.passage.heading}: {one_line(hit.passage.text)}"


def _reply_line(completion: Completion) -> str:
    if text := one_line(completion.text):
        return text
    raise MalformedOutput(completion.text, expected="one line of text")
