"""Settings of the methods that the papers compare with, and the facts of each.

A method's own numbers are the defaults of its class, with their place in its paper; only what a
paper varies is a setting. Paper, needs, cost, departures and the origins of the defaults stand in
`methods.toml`, which documents its own keys: the tables of the guide are rendered from it, and
`osler doctor` and `--strategies all` read from it what a method needs.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal

from pydantic import Field

from osler.settings.fields import Whole
from osler.settings.plugins import MethodFacts, PluginSettings
from osler.text import read_packaged_table


@cache
def read_facts() -> dict[str, dict[str, Any]]:
    """The tables of `methods.toml` by `strategy.kind`, in the order of the documentation."""
    return read_packaged_table(__package__, "methods.toml")


class BaselineSettings(PluginSettings):
    """A method of another paper, on the same models, searches and budget as all others."""

    maker: ClassVar[str] = "osler_lab.baselines.build:BaselineMaker"

    @classmethod
    def list_facts(cls) -> MethodFacts:
        kind = cls.model_fields["kind"].default
        return MethodFacts(kind, **read_facts()[kind])


def _k(default: int, why: str) -> Any:
    return Field(default=default, ge=1, le=200, description=f"Passages of one search ({why}).")


class FlRagSettings(BaselineSettings):
    """A search every n tokens, with the last n."""

    kind: Literal["fl-rag"] = "fl-rag"
    k: Whole = _k(3, "DRAGIN's released settings")


class FsRagSettings(BaselineSettings):
    """A search after every sentence, with it."""

    kind: Literal["fs-rag"] = "fs-rag"
    k: Whole = _k(3, "DRAGIN's released settings")


class FlareSettings(BaselineSettings):
    """A search where the next sentence was written unsurely."""

    kind: Literal["flare"] = "flare"
    k: Whole = _k(2, "FLARE's released settings for 2WikiMultihopQA")
    query: Literal["masked", "direct"] = Field(
        default="masked", description="The unsure sentence without its unsure tokens, or whole."
    )


class DraginSettings(BaselineSettings):
    """A search where tokens are unsure and matter; needs a model that shows its attention."""

    kind: Literal["dragin"] = "dragin"
    k: Whole = _k(3, "DRAGIN §4")
    scaled: bool = Field(
        default=True,
        description="Attentions in units of their mean, as released; false: the equation.",
    )


class DraginEntropySettings(BaselineSettings):
    """An imitation of DRAGIN by entropy alone, for models that hide their attention."""

    kind: Literal["dragin-entropy"] = "dragin-entropy"
    k: Whole = _k(3, "DRAGIN §4")


class ChainOfNoteSettings(BaselineSettings):
    """A note on each passage, then the answer."""

    kind: Literal["chain-of-note"] = "chain-of-note"
    k: Whole = _k(5, "Chain-of-Note §4")


class ChainOfKnowledgeSettings(BaselineSettings):
    """Rationales corrected one after another by what is found for each."""

    kind: Literal["chain-of-knowledge"] = "chain-of-knowledge"
    k: Whole = _k(3, "the released code for MedMCQA")


class SureSettings(BaselineSettings):
    """A summary for each candidate answer; validity and pairwise ranking choose."""

    kind: Literal["sure"] = "sure"
    k: Whole = _k(10, "SuRe §4")


class HyKgeSettings(BaselineSettings):
    """A hypothesis finds reasoning chains in the concept graph; its fragments rerank them."""

    kind: Literal["hykge"] = "hykge"
    k: Whole = _k(11, "chains that are read, HyKGE's released example settings")


class ReActSettings(BaselineSettings):
    """Thought, Action and Observation by turns."""

    kind: Literal["react"] = "react"
    k: Whole = _k(5, "the first is shown, Lookup reaches all")


class _ReflectionFields(BaselineSettings):
    k: Whole = _k(5, "Self-RAG §4")
    segments: Whole = Field(
        default=1, ge=1, le=1_000, description="Segments of an answer; 1 is the paper's short form."
    )


class SelfRagSettings(_ReflectionFields):
    """Reflection tokens decide on retrieval and between passages; needs Self-RAG's checkpoint."""

    kind: Literal["self-rag"] = "self-rag"


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


class SearchO1Settings(BaselineSettings):
    """A reasoning model searches within its reasoning, and reads what it finds by itself."""

    kind: Literal["search-o1"] = "search-o1"
    k: Whole = _k(3, "KAG-Thinker §4.1")
    refine: bool = Field(default=True, description="False: without Reason-in-Documents.")


class R1GenSettings(BaselineSettings):
    """Reasons and answers in tags, without a search."""

    kind: Literal["r1-gen"] = "r1-gen"


class SearchR1Settings(BaselineSettings):
    """The protocol of Search-R1's checkpoints."""

    kind: Literal["search-r1"] = "search-r1"
    k: Whole = _k(3, "KAG-Thinker §4.1")


class ZeroSearchSettings(BaselineSettings):
    """The protocol of ZeroSearch's checkpoints."""

    kind: Literal["zero-search"] = "zero-search"
    k: Whole = _k(3, "KAG-Thinker §4.1")


class StepSearchSettings(BaselineSettings):
    """The protocol of StepSearch's checkpoints."""

    kind: Literal["step-search"] = "step-search"
    k: Whole = _k(3, "KAG-Thinker §4.1")


class ReSearchSettings(BaselineSettings):
    """The protocol of ReSearch's checkpoints."""

    kind: Literal["research"] = "research"
    k: Whole = _k(5, "KAG-Thinker §4.1")


class HippoRagSettings(BaselineSettings):
    """A walk over a graph of triples and passages."""

    kind: Literal["hipporag"] = "hipporag"
    k: Whole = _k(5, "passages that are read, HippoRAG 2 §4")


class PikeRagSettings(BaselineSettings):
    """Passages are found by the atomic questions that they answer."""

    kind: Literal["pike-rag"] = "pike-rag"
    k: Whole = _k(4, "chunks for a proposal")


class KagStaticSettings(BaselineSettings):
    """KAG 0.8: plans all tasks at once, answers each in order."""

    kind: Literal["kag-static"] = "kag-static"
    k: Whole = _k(10, "KAG's released settings for HotpotQA")


_RANKINGS = (
    "Rankings that are fused: by words and vectors of the chunks; rrf-4: and of their knowledge"
    " units."
)


class FusedFields(BaselineSettings):
    """MedRAG fuses the word index and the vector index alike, with a constant of its own, and
    each to a hundred hits (`RetrievalSystem.retrieve` of its program)."""

    k: Whole = _k(32, "MedRAG §4")
    rankings: Literal["rrf-2", "rrf-4"] = Field(default="rrf-2", description=_RANKINGS)


class MedRagSettings(FusedFields):
    """Many passages of fused rankings, then a chain of thought."""

    kind: Literal["medrag"] = "medrag"


class IMedRagSettings(FusedFields):
    """Rounds of follow-up questions, each answered by MedRAG."""

    kind: Literal["i-medrag"] = "i-medrag"
