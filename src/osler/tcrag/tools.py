"""Tools over the knowledge base (TC-RAG App. 8.5), each described to the model from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.retrieve.lookup import look_up
from osler.trace import Run
from osler.types import (
    BOOK,
    EMR,
    GRAPH,
    GUIDELINE,
    RESEARCH,
    WEB,
    WIKI,
    Hit,
    Language,
    Retriever,
)

DOC_RAG, KG_RAG, PEDIA_RAG, WEB_RAG, EMR_RAG = (
    "DOC_RAG",
    "KG_RAG",
    "PEDIA_RAG",
    "WEB_RAG",
    "EMR_RAG",
)

SOURCES_OF = {
    DOC_RAG: (BOOK, GUIDELINE, RESEARCH),
    KG_RAG: (GRAPH,),
    PEDIA_RAG: (WIKI,),
    WEB_RAG: (WEB,),
    EMR_RAG: (EMR,),
}
"""App. 8.5: document search, knowledge graph search, pedia search, web search, records."""

_DESCRIPTIONS: dict[str, dict[Language, str]] = {
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
}

_EMPTY = {"en": "Nothing was found.", "zh": "没有找到任何内容。"}
_DOWN = {"en": "The tool is not available: ", "zh": "该工具不可用："}


@dataclass(frozen=True)
class Tool:
    """A named retriever with the number of passages an observation shows."""

    name: str
    retriever: Retriever
    sources: tuple[str, ...] = ()
    k: int = 5

    def description(self, language: Language) -> str:
        return _DESCRIPTIONS[self.name][language]

    async def call(self, query: str, run: Run) -> tuple[Hit, ...] | str:
        """The hits, or in words why there can be none."""
        found = await look_up(self.retriever, query, run, k=self.k, sources=self.sources)
        return found.failed or found.hits


def observation(result: tuple[Hit, ...] | str, known: Sequence[Hit], language: Language) -> str:
    """What the model reads. Passages are numbered on from those it has (`known`) already."""
    if isinstance(result, str):
        return _DOWN[language] + result
    if not result:
        return _EMPTY[language]
    numbers = {hit.passage.id: n for n, hit in enumerate(known, 1)}
    lines = []
    for hit in result:
        number = numbers.setdefault(hit.passage.id, len(numbers) + 1)
        lines.append(f"[{number}] {hit.passage.heading}: {_one_line(hit.passage.text)}")
    return "\n".join(lines)


def _one_line(text: str) -> str:
    return " ".join(text.split())
