"""What was indexed of the whole corpus for the methods that look there: atomic questions, triples.

Their names are among a run's carriers, so that a replay builds the method as it was recorded.
"""

from __future__ import annotations

from osler.app.config import Settings
from osler.app.config.baselines import HippoRagSettings, PikeRagSettings
from osler.app.wiring.knowledge import search_filter
from osler.errors import KnowledgeBaseError
from osler.extract.derived import Extractions
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve.corpus import AtomicQuestions, GraphWalk, TripleSearch, has_corpus_graph
from osler.types import Retriever

ATOMS = "atomic-questions"
TRIPLES = "triples"
WALK = "graph-walk"


def corpus_carriers(settings: Settings, kb: KnowledgeBase, encoder: Encoder) -> tuple[str, ...]:
    """The names of those that the strategy looks in and the knowledge base has."""
    method = settings.strategy
    if isinstance(method, HippoRagSettings) and has_corpus_graph(kb):
        return (TRIPLES, WALK)
    if isinstance(method, PikeRagSettings):
        try:
            Extractions.of(kb).entries.require_kinds(("atomic_query",), encoder.identity)
        except KnowledgeBaseError:
            return ()
        return (ATOMS,)
    return ()


def corpus_retriever(
    settings: Settings, kb: KnowledgeBase, encoder: Encoder, name: str, sources: tuple[str, ...]
) -> Retriever | None:
    """The retriever of this name; `None` where it is another's."""
    within = search_filter(settings, tuple(source for source in sources if source in kb.sources))
    if name == ATOMS:
        return AtomicQuestions(kb, encoder, within)
    if name == TRIPLES:
        return TripleSearch(kb, within)
    method = settings.strategy
    if name == WALK and isinstance(method, HippoRagSettings):
        return GraphWalk(kb, method.damping, within)
    return None
