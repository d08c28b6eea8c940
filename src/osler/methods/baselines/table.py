"""What each method needs, costs and departs in: the table of the documentation.

`most` is the number of model calls for one question at the default settings, at most, scorings
counted each, without those of the composer; a test holds every method to it.
"""

from __future__ import annotations

from dataclasses import dataclass

TEXT = "text alone"
LIKELY = "log-probabilities of its tokens"
LIKELIEST = "log-probabilities of its likeliest tokens"
ATTENTION = "attention (transformers)"
CHAINS = f"{TEXT}; a concept graph"


@dataclass(frozen=True, slots=True)
class MethodFacts:
    kind: str
    """As `strategy.kind` has it."""
    paper: str
    needs: str
    """Of the model."""
    calls: str
    most: int
    differs: str
    """From its paper; the file of the method says all."""


METHODS: tuple[MethodFacts, ...] = (
    MethodFacts("direct", "Base", TEXT, "1", 1, "-"),
    MethodFacts("cot", "Wei et al. 2022", TEXT, "1", 1, "no demonstrations"),
    MethodFacts("rag", "SR-RAG; Naive RAG; Original Question", TEXT, "1", 1, "-"),
    MethodFacts(
        "fl-rag",
        "Ram et al. 2023, as in DRAGIN",
        TEXT,
        "1 a window of 16 tokens",
        16,
        "n = 16; no demonstrations",
    ),
    MethodFacts(
        "fs-rag",
        "Trivedi et al. 2023, as in DRAGIN",
        TEXT,
        "1 a sentence",
        6,
        "at most 6 sentences; no demonstrations",
    ),
    MethodFacts(
        "flare",
        "FLARE, Jiang et al. 2023",
        LIKELY,
        "1 a sentence, 2 where it was unsure",
        16,
        "no explicit query, no FLARE instruct",
    ),
    MethodFacts(
        "dragin",
        "DRAGIN, Su et al. 2024",
        ATTENTION,
        "2 a chunk, 4 where knowledge is needed",
        32,
        "attention in units of its mean over the chunk (released: the sentence); QFS over question"
        " and text",
    ),
    MethodFacts(
        "dragin-entropy",
        "an imitation of DRAGIN",
        LIKELIEST,
        "1 a chunk, 2 where knowledge is needed",
        16,
        "no attention: neither RIND nor QFS",
    ),
    MethodFacts(
        "chain-of-note",
        "Chain-of-Note, Yu et al. 2023",
        TEXT,
        "1",
        1,
        "zero-shot, not trained on notes",
    ),
    MethodFacts(
        "chain-of-knowledge",
        "Chain-of-Knowledge, Li et al. 2024",
        TEXT,
        "5, and 6 more where they disagree",
        11,
        "queries in words to all sources, not in a language of each",
    ),
    MethodFacts(
        "sure",
        "SuRe, Kim et al. 2024",
        TEXT,
        "1, 2 a candidate, 2 a pair",
        7,
        "candidates of a choice are its options; pairs in both orders",
    ),
    MethodFacts(
        "hykge",
        "HyKGE, Jiang et al. 2024",
        CHAINS,
        "2",
        2,
        "the graph's own names, unless a recogniser was trained",
    ),
    MethodFacts(
        "react",
        "ReAct, Yao et al. 2023",
        TEXT,
        "1 a step, 2 where it names no action",
        14,
        "actions described, not demonstrated; no CoT-SC",
    ),
    MethodFacts(
        "self-rag",
        "Self-RAG, Asai et al. 2024",
        "trained weights and scoring of given texts; the prompted form: text",
        "2 on retrieval, 11 a passage; 1 and 4 where it cannot score",
        57,
        "the default is the prompted imitation; reflection tokens are scored as given texts",
    ),
    MethodFacts(
        "adaptive-rag",
        "Adaptive-RAG, Jeong et al. 2024",
        TEXT,
        "1, then 1 or those of IRCoT",
        12,
        "the classifier is prompted, not trained",
    ),
    MethodFacts(
        "ircot",
        "IRCoT, Trivedi et al. 2023",
        TEXT,
        "1 a sentence, 1 to read",
        11,
        "no demonstrations",
    ),
    MethodFacts(
        "search-o1",
        "Search-o1, Li et al. 2025",
        f"{TEXT}; made for reasoning models",
        "2 a search, 1 to answer",
        12,
        "passages instead of web pages",
    ),
    MethodFacts(
        "r1-gen",
        "R1 without search, as in Search-R1",
        "trained weights, to be the method",
        "1",
        1,
        "options in the template",
    ),
    MethodFacts(
        "search-r1",
        "Search-R1, Jin et al. 2025",
        "trained weights, to be the method",
        "1 a search, 1 to answer",
        5,
        "options in the template; passages numbered to be cited",
    ),
    MethodFacts(
        "zero-search",
        "ZeroSearch, Sun et al. 2025",
        "trained weights, to be the method",
        "1 a search, 1 to answer",
        6,
        "as search-r1",
    ),
    MethodFacts(
        "step-search",
        "StepSearch, Wang et al. 2025",
        "trained weights, to be the method",
        "1 a search, 1 to answer",
        6,
        "as search-r1; the template shortened",
    ),
    MethodFacts(
        "research",
        "ReSearch, Chen et al. 2025",
        "trained weights, to be the method",
        "1 a search, 1 to answer",
        9,
        "as search-r1",
    ),
    MethodFacts(
        "hipporag",
        "HippoRAG 2, Gutiérrez et al. 2025",
        TEXT,
        "2 a passage of the first search, 1 to recognise, 1 to read",
        22,
        "the graph is made of what a first search finds, not of the corpus",
    ),
    MethodFacts(
        "pike-rag",
        "PIKE-RAG, Wang et al. 2025",
        TEXT,
        "a step: 1 to propose, 1 a new chunk, 1 to select; 1 to read",
        71,
        "chunks are tagged when first found; the decomposer is prompted",
    ),
    MethodFacts(
        "kag-static",
        "KAG 0.8, Liang et al. 2024",
        TEXT,
        "1 to plan, 1 a task, 1 to answer",
        8,
        "retrieval tasks alone; the retrieval that all methods share",
    ),
    MethodFacts(
        "medrag",
        "MedRAG, Xiong et al. 2024",
        TEXT,
        "1",
        1,
        "fuses word and vector index (RRF-2); as many passages as fit",
    ),
    MethodFacts(
        "i-medrag",
        "i-MedRAG, Xiong et al. 2025",
        TEXT,
        "4 a round, 1 to answer",
        17,
        "as medrag",
    ),
)

METHODS_BY_KIND = {method.kind: method for method in METHODS}


def render_methods_table() -> str:
    """The table as it stands in docs/guide/baselines.md."""
    rows = ["| `--strategy` | Method | Needs of the model | Calls | At most | Differs |"]
    rows.append("|---|---|---|---|--:|---|")
    rows += [
        f"| `{m.kind}` | {m.paper} | {m.needs} | {m.calls} | {m.most} | {m.differs} |"
        for m in METHODS
    ]
    return "\n".join(rows)
