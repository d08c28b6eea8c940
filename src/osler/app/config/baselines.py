"""What can be set of the methods that the papers compare with.

Where a default comes from stands in `osler.methods.baselines.methods.toml`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from osler.app.config.fields import Real, Whole
from osler.app.config.plugins import MethodFacts, PluginSettings


class BaselineSettings(PluginSettings):
    """A method of another paper, on the same models, searches and budget as all others."""

    maker: ClassVar[str] = "osler.app.wiring.baselines:BaselineMaker"

    @classmethod
    def list_facts(cls) -> MethodFacts:
        from osler.methods.baselines.table import METHODS_BY_KIND

        return METHODS_BY_KIND[cls.model_fields["kind"].default]


def _k(default: int, why: str) -> Any:
    return Field(default=default, ge=1, le=200, description=f"Passages of one search ({why}).")


def _count(default: int, what: str) -> Any:
    return Field(default=default, ge=1, le=1_000, description=what)


def _share(default: float, what: str) -> Any:
    return Field(default=default, ge=0, le=1, description=what)


_LOOK_AHEAD = "Tokens that are written to look ahead."


class FlRagSettings(BaselineSettings):
    """A search every n tokens, with the last n."""

    kind: Literal["fl-rag"] = "fl-rag"
    k: Whole = _k(3, "DRAGIN's released settings")
    window: Whole = _count(16, "n: tokens between two searches (DRAGIN's released settings).")
    length: Whole = _count(256, "Tokens of an answer, at most (FLARE's released script).")


class FsRagSettings(BaselineSettings):
    """A search after every sentence, with it."""

    kind: Literal["fs-rag"] = "fs-rag"
    k: Whole = _k(3, "DRAGIN's released settings")
    sentences: Whole = _count(6, "Sentences of an answer, at most (TC-RAG's released code).")
    look_ahead: Whole = _count(64, _LOOK_AHEAD)


class FlareSettings(BaselineSettings):
    """A search where the next sentence was written unsurely."""

    kind: Literal["flare"] = "flare"
    k: Whole = _k(2, "FLARE's released settings for 2WikiMultihopQA")
    theta: Real = _share(0.8, "A sentence stands if no token's probability is below it.")
    beta: Real = _share(0.4, "Tokens below it are masked in the query.")
    query: Literal["masked", "direct"] = Field(
        default="masked", description="The unsure sentence without its unsure tokens, or whole."
    )
    look_ahead: Whole = _count(64, _LOOK_AHEAD)
    rounds: Whole = _count(8, "Sentences of an answer, at most.")


class DraginSettings(BaselineSettings):
    """A search where tokens are unsure and matter; needs a model that shows its attention."""

    kind: Literal["dragin"] = "dragin"
    k: Whole = _k(3, "DRAGIN §4")
    threshold: Real = Field(
        default=0.9, ge=0, le=1_000, description="theta of RIND (a released setting)."
    )
    scaled: bool = Field(
        default=True,
        description="Attentions in units of their mean, as released; false: the equation.",
    )
    words: Whole = _count(25, "Words of a query, at most (the released settings).")
    look_ahead: Whole = _count(64, _LOOK_AHEAD)
    rounds: Whole = _count(8, "Chunks of an answer, at most.")


class DraginEntropySettings(BaselineSettings):
    """An imitation of DRAGIN by entropy alone, for models that hide their attention."""

    kind: Literal["dragin-entropy"] = "dragin-entropy"
    k: Whole = _k(3, "DRAGIN §4")
    threshold: Real = Field(
        default=1.2, ge=0, le=100, description="Entropy that triggers a search, in nats (ours)."
    )
    words: Whole = _count(25, "Words of a query, at most.")
    look_ahead: Whole = _count(64, _LOOK_AHEAD)
    rounds: Whole = _count(8, "Chunks of an answer, at most.")


class ChainOfNoteSettings(BaselineSettings):
    """A note on each passage, then the answer."""

    kind: Literal["chain-of-note"] = "chain-of-note"
    k: Whole = _k(5, "Chain-of-Note §4")


class ChainOfKnowledgeSettings(BaselineSettings):
    """Rationales corrected one after another by what is found for each."""

    kind: Literal["chain-of-knowledge"] = "chain-of-knowledge"
    k: Whole = _k(3, "the released code for MedMCQA")
    samples: Whole = _count(5, "Chains of thought that vote (the paper's).")
    temperature: Real = Field(default=0.7, ge=0, le=2, description="Of the votes (the paper's).")
    rationales: Whole = _count(2, "Of a chain of thought (the paper's).")
    domains: Whole = _count(2, "Sources that are asked for a rationale, at most.")


class SureSettings(BaselineSettings):
    """A summary for each candidate answer; validity and pairwise ranking choose."""

    kind: Literal["sure"] = "sure"
    k: Whole = _k(10, "SuRe §4")
    candidates: Whole = Field(
        default=2, ge=1, le=5, description="Candidate answers (SuRe §4 has 2)."
    )


class HyKgeSettings(BaselineSettings):
    """A hypothesis finds reasoning chains in the concept graph; its fragments rerank them."""

    kind: Literal["hykge"] = "hykge"
    k: Whole = _k(11, "chains that are read, HyKGE's released example settings")
    candidates: Whole = _count(30, "Chains that are reranked.")
    hops: Whole = Field(default=3, ge=1, le=4, description="Relations of a chain, at most (§4.2).")


class ReActSettings(BaselineSettings):
    """Thought, Action and Observation by turns."""

    kind: Literal["react"] = "react"
    k: Whole = _k(5, "the first is shown, Lookup reaches all")
    steps: Whole = _count(7, "Turns, at most (ReAct's for HotpotQA).")


class _ReflectionFields(BaselineSettings):
    k: Whole = _k(5, "Self-RAG §4")
    threshold: Real = _share(0.2, "Share of [Retrieval] above which it searches (App. A.3).")
    relevance: Real = _share(1.0, "Weight of relevance.")
    support: Real = _share(1.0, "Weight of support.")
    utility: Real = _share(0.5, "Weight of utility.")
    beam: Whole = _count(2, "Paths that are kept.")
    segments: Whole = _count(1, "Segments of an answer; 1 is the paper's short form.")


class SelfRagSettings(_ReflectionFields):
    """Reflection tokens decide on retrieval and between passages; needs Self-RAG's checkpoint."""

    kind: Literal["self-rag"] = "self-rag"

    @model_validator(mode="before")
    @classmethod
    def _refuse_form(cls, given: Any) -> Any:
        if isinstance(given, dict) and "form" in given:
            raise ValueError(
                "self-rag has no form: it is the trained method, and its imitation on any model"
                " is the strategy self-rag-prompted"
            )
        return given


class SelfRagPromptedSettings(_ReflectionFields):
    """An imitation of Self-RAG on any model, which is asked for each reflection token in words."""

    kind: Literal["self-rag-prompted"] = "self-rag-prompted"


class AdaptiveRagSettings(BaselineSettings):
    """First asks how hard the question is: no search, one, or IRCoT."""

    kind: Literal["adaptive-rag"] = "adaptive-rag"
    k: Whole = _k(6, "of the one search, as released for GPT-3.5; IRCoT has its own")
    several: bool = Field(
        default=True, description='False: KAG-Thinker\'s "Naive RAG + adaptive", without IRCoT.'
    )


class IrCotSettings(BaselineSettings):
    """Each sentence of the reasoning is a search."""

    kind: Literal["ircot"] = "ircot"
    k: Whole = _k(3, "KAG-Thinker §4.1")
    steps: Whole = _count(10, "Sentences, at most (the released code).")
    passages: Whole = _count(15, "Passages that are collected, at most (the released settings).")
    reader: bool = Field(
        default=True, description="A reader answers from what was collected; false: the reasoning."
    )


class SearchO1Settings(BaselineSettings):
    """A reasoning model searches within its reasoning, and reads what it finds by itself."""

    kind: Literal["search-o1"] = "search-o1"
    k: Whole = _k(3, "KAG-Thinker §4.1")
    searches: Whole = _count(5, "Searches, at most (the released code's for one hop).")
    refine: bool = Field(default=True, description="False: without Reason-in-Documents.")


class R1GenSettings(BaselineSettings):
    """Reasons and answers in tags, without a search."""

    kind: Literal["r1-gen"] = "r1-gen"


class SearchR1Settings(BaselineSettings):
    """The protocol of Search-R1's checkpoints."""

    kind: Literal["search-r1"] = "search-r1"
    k: Whole = _k(3, "KAG-Thinker §4.1")
    turns: Whole = _count(4, "Searches, at most (the paper's).")


class ZeroSearchSettings(BaselineSettings):
    """The protocol of ZeroSearch's checkpoints."""

    kind: Literal["zero-search"] = "zero-search"
    k: Whole = _k(3, "KAG-Thinker §4.1")
    turns: Whole = _count(5, "Searches, at most (the released commands).")


class StepSearchSettings(BaselineSettings):
    """The protocol of StepSearch's checkpoints."""

    kind: Literal["step-search"] = "step-search"
    k: Whole = _k(3, "KAG-Thinker §4.1")
    turns: Whole = _count(5, "Searches, at most (the released training script).")


class ReSearchSettings(BaselineSettings):
    """The protocol of ReSearch's checkpoints."""

    kind: Literal["research"] = "research"
    k: Whole = _k(5, "KAG-Thinker §4.1")
    turns: Whole = _count(8, "Searches, at most (ours; the released code bounds tokens).")


class HippoRagSettings(BaselineSettings):
    """A walk over a graph of triples and passages."""

    kind: Literal["hipporag"] = "hipporag"
    k: Whole = _k(5, "passages that are read, HippoRAG 2 §4")
    depth: Whole = _count(10, "Passages of the first search, of which the graph is made.")
    triples: Whole = _count(5, "Triples that the model recognises or not (§3.3).")
    passage_weight: Real = _share(0.05, "Weight of passages among the seeds (§3.4).")
    damping: Real = _share(0.5, "Of the PageRank (§3.4).")


class PikeRagSettings(BaselineSettings):
    """Passages are found by the atomic questions that they answer."""

    kind: Literal["pike-rag"] = "pike-rag"
    k: Whole = _k(4, "chunks for a proposal")
    steps: Whole = _count(5, "Decompositions, at most (the paper's N).")
    proposals: Whole = _count(3, "Atomic questions that are proposed at a step.")
    atoms: Whole = _count(5, "Atomic questions of a chunk, at most.")
    likeness: Real = _share(0.5, "Least likeness of a chunk's question to a proposal.")
    candidates: Whole = _count(4, "Among which the model selects (the paper's K).")


class KagStaticSettings(BaselineSettings):
    """KAG 0.8: plans all tasks at once, answers each in order."""

    kind: Literal["kag-static"] = "kag-static"
    k: Whole = _k(10, "KAG's released settings for HotpotQA")
    tasks: Whole = _count(6, "Tasks of a plan, at most.")
    rewrite: bool = Field(
        default=True,
        description="The model rewrites a query that names earlier answers, as in KAG; false: they"
        " are put in as they stand.",
    )


_RANKINGS = (
    "Rankings that are fused: by words and vectors of the chunks; rrf-4: and of their knowledge"
    " units."
)


class FusedFields(BaselineSettings):
    """MedRAG fuses the word index and the vector index alike, with a constant of its own, and
    each to a hundred hits (`RetrievalSystem.retrieve` of its program)."""

    k: Whole = _k(32, "MedRAG §4")
    rrf_k: Whole = Field(
        default=100, ge=0, le=10_000, description="Of the fusion, in place of retrieve.rrf_k."
    )
    rankings: Literal["rrf-2", "rrf-4"] = Field(default="rrf-2", description=_RANKINGS)


class MedRagSettings(FusedFields):
    """Many passages of fused rankings, then a chain of thought."""

    kind: Literal["medrag"] = "medrag"


class IMedRagSettings(FusedFields):
    """Rounds of follow-up questions, each answered by MedRAG."""

    kind: Literal["i-medrag"] = "i-medrag"
    rounds: Whole = _count(4, "Rounds of asking (i-MedRAG §3).")
    queries: Whole = _count(3, "Queries of a round (i-MedRAG §3).")


AnyBaseline = (
    FlRagSettings
    | FsRagSettings
    | FlareSettings
    | DraginSettings
    | DraginEntropySettings
    | ChainOfNoteSettings
    | ChainOfKnowledgeSettings
    | SureSettings
    | HyKgeSettings
    | ReActSettings
    | SelfRagSettings
    | SelfRagPromptedSettings
    | AdaptiveRagSettings
    | IrCotSettings
    | SearchO1Settings
    | R1GenSettings
    | SearchR1Settings
    | ZeroSearchSettings
    | StepSearchSettings
    | ReSearchSettings
    | HippoRagSettings
    | PikeRagSettings
    | KagStaticSettings
    | MedRagSettings
    | IMedRagSettings
)
BASELINES: dict[str, type[BaselineSettings]] = {
    kind.model_fields["kind"].default: kind for kind in AnyBaseline.__args__
}
