"""The tools of TC-RAG and their descriptions for the model (App. 8.5).

A new tool is a name, one entry of `TOLD`, and an object that implements `Tool`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from osler.errors import KnowledgeBaseError, MalformedOutput, ModelError, SourceUnavailable
from osler.retrieve import look_up
from osler.sources.catalogue import BUILT_IN
from osler.trace import Run
from osler.types import Hit, Language, Question, Retriever, citation_mark

DOC_RAG, KG_RAG, PEDIA_RAG, WEB_RAG, EMR_RAG = (
    "DOC_RAG",
    "KG_RAG",
    "PEDIA_RAG",
    "WEB_RAG",
    "EMR_RAG",
)
KG_CHAINS, KG_COMMUNITIES, KG_NEAR = "KG_CHAINS", "KG_COMMUNITIES", "KG_NEAR"
HYPOTHESIS_OUTPUT, MEDICAL_NER, KNOWLEDGE_ORGANIZE, FILTER = (
    "HYPOTHESIS_OUTPUT",
    "MEDICAL_NER",
    "KNOWLEDGE_ORGANIZE",
    "FILTER",
)

SOURCES_OF: Mapping[str, tuple[str, ...]] = {
    tool: tuple(one.name for one in BUILT_IN if one.tool == tool)
    for tool in dict.fromkeys(one.tool for one in BUILT_IN)
}
"""App. 8.5: document search, knowledge graph search, pedia search, web search, records."""

CARRIERS = (KG_CHAINS, KG_COMMUNITIES)
"""Tools over the concept graph alone: the knowledge carriers of HyKGE and GraphRAG (App. 8.5)."""

PLANNED_RAG, KG_FORM = "PLANNED_RAG", "KG_FORM"
"""Tools of the unified system: a search whose sources Omni-RAG's planner chooses, and a lookup of
the step's own logical form."""
UNIFIED = (PLANNED_RAG, KG_FORM)

HELPERS = (HYPOTHESIS_OUTPUT, MEDICAL_NER, KNOWLEDGE_ORGANIZE, FILTER)
"""The released code's helpers; like `KG_NEAR` they are offered only where they are named."""

TOLD: Mapping[str, Mapping[Language, str]] = {
    DOC_RAG: {
        # The paper's own example, App. 8.4.
        "en": "You can obtain medical knowledge from authoritative documents via this tool"
        " to help you reply.",
        "zh": "你可以通过此工具从权威文献（教材、指南、论文）中获取医学知识，帮助你回答。",
    },
    KG_RAG: {
        "en": "You can look up a medical concept in a knowledge graph:"
        " its definition and its relations.",
        "zh": "你可以在医学知识图谱中查询一个概念的定义及其关系。",
    },
    KG_NEAR: {
        "en": "You can find the relations that lie nearest to all medical concepts of a text"
        " in a knowledge graph.",
        "zh": "你可以在医学知识图谱中查找与一段文字中所有概念最接近的关系。",
    },
    KG_CHAINS: {
        "en": "You can find how the medical concepts that you name hang together:"
        " chains of relations between them in a knowledge graph.",
        "zh": "你可以在医学知识图谱中查找所提到的概念之间的推理链（关系路径）。",
    },
    KG_COMMUNITIES: {
        "en": "You can read what a knowledge graph says of a whole group of related concepts.",
        "zh": "你可以查看医学知识图谱中一组相关概念（知识社区）的概述。",
    },
    PLANNED_RAG: {
        "en": "You can search textbooks, guidelines, research, encyclopaedias and knowledge graphs:"
        " a planner chooses among those that there are, and words what each is asked.",
        "zh": "你可以检索教材、指南、论文、百科和知识图谱：由规划器在现有来源中选择，"
        "并为每个来源拟定查询。",
    },
    KG_FORM: {
        "en": "You can look up in a knowledge graph exactly the relation that is asked for.",
        "zh": "你可以在知识图谱中精确查询所问的关系。",
    },
    PEDIA_RAG: {
        "en": "You can look up a disease or a drug in an encyclopaedia.",
        "zh": "你可以在百科全书中查询疾病或药物。",
    },
    WEB_RAG: {
        "en": "You can search stored web pages for patients and the public.",
        "zh": "你可以搜索面向患者和公众的网页。",
    },
    EMR_RAG: {
        "en": "You can search de-identified patient records for similar patients.",
        "zh": "你可以在去标识化的病历中检索相似患者。",
    },
    HYPOTHESIS_OUTPUT: {
        "en": "You can write down a hypothetical answer first, to see what has to be looked up."
        " It is a guess, not evidence.",
        "zh": "你可以先写出一个假设性的答案，以便了解需要查询什么。它只是猜测，不是证据。",
    },
    MEDICAL_NER: {
        "en": "You can find the medical terms that stand in a text.",
        "zh": "你可以识别一段文字中的医学实体。",
    },
    KNOWLEDGE_ORGANIZE: {
        "en": "You can put the passages observed so far in order: what bears on the question,"
        " grouped, with their numbers.",
        "zh": "你可以整理目前观察到的段落：归纳与问题有关的内容，并保留编号。",
    },
    FILTER: {
        "en": "You can check which of the passages observed so far bear on the question.",
        "zh": "你可以检查目前观察到的段落中哪些与问题有关。",
    },
}
"""Descriptions of the tools for the model; their only home."""

_EMPTY = {"en": "Nothing was found.", "zh": "没有找到任何内容。"}
_DOWN = {"en": "The tool is not available: ", "zh": "该工具不可用："}


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


@dataclass(frozen=True, slots=True)
class Observation:
    """The output of a tool."""

    text: str
    hits: tuple[Hit, ...] = ()
    """Passages that may be cited from now on; empty for output that is no evidence."""


class Tool(Protocol):
    @property
    def name(self) -> str: ...

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        """Runs the tool. A source that is down is reported as an observation and as an event.

        May raise `BudgetExceeded`, and `FAILURES`, which the machine turns into an observation
        and an event.
        """
        ...


@dataclass(frozen=True)
class SearchTool:
    """A named retriever as a tool that shows `k` passages."""

    name: str
    retriever: Retriever
    sources: tuple[str, ...] = ()
    k: int = 5

    async def call_tool(self, call: ToolCall, run: Run) -> Observation:
        found = await look_up(self.retriever, call.query, run, k=self.k, sources=self.sources)
        language = call.question.language
        if found.failed:
            return observe_failure(found.failed, language)
        return Observation(number_passages(found.hits, call.known, language), found.hits)


def describe_tool(name: str, language: Language) -> str:
    """The description of a tool. Raises `KeyError` for a tool without one."""
    return TOLD[name][language]


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
        lines.append(f"{citation_mark(number)} {hit.passage.heading}: {one_line(hit.passage.text)}")
    return "\n".join(lines)


def one_line(text: str) -> str:
    return " ".join(text.split())
