"""The helpers of the released code as tools: hypothesis, entities, order, filter.

None of them yields evidence: their outputs are observations without passages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from osler.answer.gate import EvidenceGate
from osler.errors import MalformedOutput
from osler.llm.core.ask import ask
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.llm.core.grammar import Grammar, free_text, named_rule
from osler.methods.tcrag.tools import (
    FILTER,
    HYPOTHESIS_OUTPUT,
    KNOWLEDGE_ORGANIZE,
    MEDICAL_NER,
    Observation,
    ToolCall,
    observe_failure,
    one_line,
)
from osler.prompts import RenderedPrompt, render_prompt
from osler.retrieve import look_up
from osler.trace import Run
from osler.types import Hit, Language, Retriever, citation_mark

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

    async def write_line(self, prompt: RenderedPrompt, language: Language, run: Run) -> str:
        """Asks for one line. Raises `MalformedOutput` for an empty reply, and `BudgetExceeded`."""
        # Chinese says in a third of the characters what English needs.
        longest = self.longest if language == "en" else self.longest // 3
        grammar = (
            Grammar("line", named_rule("line", free_text(longest))) if self.constrains else None
        )
        sampling = replace(self.sampling, seed=run.rng.getrandbits(31), grammar=grammar)
        asked = [Message("user", prompt.text)]
        return await ask(
            self.model, asked, _reply_line, sampling, run, role="helper", prompt=prompt.identity
        )


@dataclass(frozen=True)
class HypothesisTool:
    """A hypothetical answer whose words can be searched (HyKGE)."""

    scribe: LineWriter
    name: str = HYPOTHESIS_OUTPUT

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        language = call.question.language
        prompt = render_prompt("tcrag/hypothesis", language, question=call.query)
        guess = await self.scribe.write_line(prompt, language, run)
        return Observation(_GUESS[language] + guess, writer=self.scribe.role)


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
        language = call.question.language
        prompt = render_prompt("tcrag/entities", language, text=call.query)
        terms = await self.scribe.write_line(prompt, language, run)
        return Observation(_TERMS[language] + terms, writer=self.scribe.role)


@dataclass(frozen=True)
class OrganiseTool:
    """The passages in memory put in order for the question."""

    scribe: LineWriter
    name: str = KNOWLEDGE_ORGANIZE

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        language = call.question.language
        if not call.known:
            return Observation(_NO_PASSAGES[language])
        documents = [
            f"{citation_mark(n)} {_describe_hit(hit)}" for n, hit in enumerate(call.known, 1)
        ]
        asked = call.question.text
        prompt = render_prompt("tcrag/organise", language, question=asked, documents=documents)
        ordered = await self.scribe.write_line(prompt, language, run)
        return Observation(ordered, writer=self.scribe.role)


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
            evidence = await self.gate.find_evidence(call.question, [hit])
            (bears if evidence else idle).append(citation_mark(number))
        told = (", ".join(group) or _NONE[language] for group in (bears, idle))
        return Observation(_BEARS[language].format(*told))


def _describe_hit(hit: Hit) -> str:
    return f"{hit.passage.heading}: {one_line(hit.passage.text)}"


def _reply_line(completion: Completion) -> str:
    if text := one_line(completion.text):
        return text
    raise MalformedOutput(completion.text, expected="one line of text")
