"""Indexes of the whole corpus for the methods that search it.

Atomic questions (PIKE-RAG), triples and a walk (HippoRAG), and the hybrid of all indexes (KAG).
Their names are among a run's carriers, so that a replay builds the method as it was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from osler.build.graphs import open_graph
from osler.build.knowledge import name_rankings, search_filter
from osler.errors import BadConfig, KnowledgeBaseError
from osler.extract.derived import Extractions
from osler.extract.indexes import KINDS, Kind
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve.hybrid import Fusion
from osler.retrieve.indexed import IndexedRetriever, IndexWeights
from osler.settings import Settings
from osler.types import Retriever
from osler_lab.baselines.corpus_search import (
    AtomicQuestions,
    GraphWalk,
    TripleSearch,
    has_corpus_graph,
)
from osler_lab.baselines.settings import (
    BaselineSettings,
    HippoRagSettings,
    HyKgeSettings,
    IMedRagSettings,
    KagStaticSettings,
    MedRagSettings,
    PikeRagSettings,
)

ATOMS = "atomic-questions"
HYBRID = "hybrid-indexes"
TRIPLES = "triples"
WALK = "graph-walk"
CHAINS = "chains"
"""The user of a retriever that finds reasoning chains, not passages."""
_UNITS: tuple[Kind, ...] = ("knowledge_unit",)


def corpus_carriers(
    method: BaselineSettings, kb: KnowledgeBase, encoder: Encoder
) -> tuple[str, ...]:
    """The names of those that the strategy looks in and the knowledge base has."""
    if isinstance(method, HippoRagSettings) and has_corpus_graph(kb):
        return (TRIPLES, WALK)
    if isinstance(method, KagStaticSettings) and has_corpus_graph(kb):
        return (HYBRID,)
    if isinstance(method, PikeRagSettings):
        return (ATOMS,) if _made_kinds(kb, encoder, ("atomic_query",)) else ()
    return ()


def _made_kinds(kb: KnowledgeBase, encoder: Encoder, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Those of the indexes that can be searched with the encoder."""
    made = list[Kind]()
    for kind in kinds:
        with suppress(KnowledgeBaseError):
            Extractions.of(kb).entries.require_kinds((kind,), encoder.identity)
            made.append(kind)
    return tuple(made)


def corpus_retriever(
    settings: Settings, kb: KnowledgeBase, encoder: Encoder, name: str, sources: tuple[str, ...]
) -> Retriever | None:
    """The retriever of this name; `None` where it is another's.

    Raises `KnowledgeBaseUnbuilt` for MedRAG's four rankings without the index of two of them.
    """
    method = settings.strategy
    if name == CHAINS and isinstance(method, HyKgeSettings):
        return chain_retriever(settings)
    within = search_filter(settings, tuple(source for source in sources if source in kb.sources))
    if name == ATOMS:
        return AtomicQuestions(kb, encoder, within)
    chosen = settings.retrieve
    fusion = Fusion(chosen.dense_weight, chosen.lexical_weight, float(chosen.rrf_k), chosen.depth)
    if name == HYBRID:
        named = name_rankings(kb, encoder)
        made = _made_kinds(kb, encoder, KINDS)
        return IndexedRetriever(kb, encoder, made, named, within=within, fusion=fusion)
    if name == TRIPLES:
        return TripleSearch(kb, within)
    if isinstance(method, MedRagSettings | IMedRagSettings) and method.rankings == "rrf-4":
        if name != method.kind:
            return None
        # RRF-4: four rankings that count alike. Asked now, so that a missing index is reported now.
        Extractions.of(kb).entries.require_kinds(_UNITS, encoder.identity)
        alike = IndexWeights(entries=1.0)
        return IndexedRetriever(kb, encoder, _UNITS, within=within, fusion=fusion, weights=alike)
    return GraphWalk(kb, within=within) if name == WALK else None


def chain_retriever(settings: Settings) -> Retriever:
    """Builds the retriever of reasoning chains (HyKGE). Raises `BadConfig` without a graph."""
    from osler.retrieve.graph_chains import ChainRetriever
    from osler.retrieve.graph_mentions import open_recogniser

    graph = open_graph(settings)
    if graph is None:
        raise BadConfig(
            "hykge needs a concept graph, and the knowledge base has none",
            fix="`osler kb graph add` it",
        )
    return ChainRetriever(graph, recogniser=open_recogniser(graph))
