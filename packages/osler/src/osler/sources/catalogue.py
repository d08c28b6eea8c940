"""The built-in sources: one table that settings, prompts, tools, trust and the page read.

To add a source, add a row to `BUILT_IN` and, where its files have a format of their own, a parser
to `osler.sources.formats`. Everything else is derived: its place in a source plan, the tool that
searches it, how far it is trusted, and its names on the page (`/api/v1/sources`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from osler.types import Language
from osler.types.marks import EMR as EMR
from osler.types.marks import PATIENT as PATIENT
from osler.types.marks import SYNTHETIC as SYNTHETIC
from osler.types.marks import is_patients as is_patients

BOOK, GUIDELINE, RESEARCH, WIKI, GRAPH = "book", "guideline", "research", "wiki", "graph"
WEB, TRIAL = "web", "trial"
TABLE = "table"
"""Kind of the documents that are rows of a table."""
DRUG_LABEL = "Drug label"
"""Kind of the documents that are labels of drugs."""
HELD = ".held"
"""Ends the name of the source in which held documents wait; no search takes it unless named."""

OWN_TRUST = 2
"""Default trust of a collection of the user's own: that of a wiki."""


@dataclass(frozen=True, slots=True)
class BuiltInSource:
    """A source that Osler knows by name."""

    name: str
    """As it stands in ids of passages, settings and source plans."""
    label: Mapping[Language, str]
    """As people read it on the page."""
    description: Mapping[Language, str]
    """As a planner reads it (Omni-RAG App. E.1)."""
    tool: str
    """The tool of TC-RAG that searches it (TC-RAG App. 8.5)."""
    trust: int
    """How far it is trusted: 1 (least) to 5."""
    in_med_omni_kb: bool = False
    """Whether it is one of the five sources of MedOmniKB (Omni-RAG §3)."""


# The five of MedOmniKB stand first, in the order of the paper's wire format: plans are written in
# this order. Their English descriptions are App. E.1's to the letter, so that a planner that was
# trained elsewhere reads what it learnt; all else is ours.
BUILT_IN: tuple[BuiltInSource, ...] = (
    BuiltInSource(
        BOOK,
        {"en": "book", "zh": "教科书"},
        {
            "en": "The API provides access to medical knowledge resources, including various"
            " educational resources and textbooks.",
            "zh": "该接口提供医学知识资源，包括各类教学资料和教材。",
        },
        "DOC_RAG",
        trust=4,
        in_med_omni_kb=True,
    ),
    BuiltInSource(
        GUIDELINE,
        {"en": "guideline", "zh": "指南"},
        {
            "en": "The API provides access to clinical guidelines from leading health"
            " organizations.",
            "zh": "该接口提供权威卫生机构发布的临床指南。",
        },
        "DOC_RAG",
        trust=5,
        in_med_omni_kb=True,
    ),
    BuiltInSource(
        RESEARCH,
        {"en": "research", "zh": "文献"},
        {
            "en": "The API provides access to advanced biomedical research, facilitating access to"
            " specialized knowledge and resources.",
            "zh": "该接口提供前沿的生物医学研究文献，便于获取专业知识和资源。",
        },
        "DOC_RAG",
        trust=3,
        in_med_omni_kb=True,
    ),
    BuiltInSource(
        WIKI,
        {"en": "wiki", "zh": "百科"},
        {
            "en": "The API provides access to general knowledge across a wide range of topics.",
            "zh": "该接口提供涵盖广泛主题的通用知识。",
        },
        "PEDIA_RAG",
        trust=2,
        in_med_omni_kb=True,
    ),
    BuiltInSource(
        GRAPH,
        {"en": "graph", "zh": "图谱"},
        {
            "en": "The API provides a structured knowledge graph that connects medical definitions"
            " and related terms.",
            "zh": "该接口提供结构化知识图谱，连接医学定义与相关术语。",
        },
        "KG_RAG",
        trust=4,
        in_med_omni_kb=True,
    ),
    BuiltInSource(
        EMR,
        {"en": "emr", "zh": "病历"},
        {
            "en": "The API provides access to de-identified records of patients.",
            "zh": "该接口提供去标识化的患者病历。",
        },
        "EMR_RAG",
        trust=3,
    ),
    BuiltInSource(
        WEB,
        {"en": "web", "zh": "网页"},
        {
            "en": "The API provides access to web pages for patients and the public.",
            "zh": "该接口提供面向患者和公众的网页。",
        },
        "WEB_RAG",
        trust=1,
    ),
    BuiltInSource(
        TRIAL,
        {"en": "trials", "zh": "临床试验"},
        {
            "en": "The API provides access to registrations of clinical trials, with their status,"
            " arms, outcomes and posted results.",
            "zh": "该接口提供临床试验注册信息，包括状态、分组、结局指标和已公布的结果。",
        },
        "DOC_RAG",
        trust=3,
    ),
)

SOURCES: tuple[str, ...] = tuple(one.name for one in BUILT_IN if one.in_med_omni_kb)
"""The five sources of MedOmniKB (Omni-RAG §3), in the order of its wire format."""
ALL_SOURCES: tuple[str, ...] = tuple(one.name for one in BUILT_IN)


def find_source(name: str) -> BuiltInSource | None:
    """The built-in source of this name; `None` for a collection of the user's own."""
    return next((one for one in BUILT_IN if one.name == name), None)


UNTRUSTED = 1
"""Trust of a source that nobody vouches for."""


def trust_of(source: str) -> int:
    """The default trust of a source, 1 (least) to 5."""
    known = find_source(source)
    return OWN_TRUST if known is None else known.trust
