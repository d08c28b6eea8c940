"""Settings → objects: the only package that knows everything.

| Module | Makes |
|---|---|
| `models` | language models and encoders |
| `hub` | those that transformers or a server runs, and rerankers |
| `keys` | the keys of servers |
| `knowledge` | the knowledge base and its retrievers |
| `extraction` | what takes knowledge out of its texts |
| `parts` | what a strategy is built from: live, recorded or replayed |
| `shelf` | what is costly to open, opened once and shared by many runs |
| `strategies` | the strategy itself: one `match`, no registry |
"""

from osler.app.wiring.composers import composer, gate, wording, writes
from osler.app.wiring.hub import reranked, reranker
from osler.app.wiring.knowledge import (
    build_sample,
    engine,
    knowledge_base,
    offers,
    open_or_create,
    retriever,
    runner,
    search,
    searched,
)
from osler.app.wiring.live import live, recorded, remembered, replayed
from osler.app.wiring.models import PACKAGED, Ready, cast, encoder, language_model, relevance
from osler.app.wiring.parts import Parts, no_retriever, roles_of
from osler.app.wiring.planning import planned_by
from osler.app.wiring.resource_cache import Shelf
from osler.app.wiring.strategies import budget, solver
from osler.app.wiring.tc_rag import PACKAGED_SIGMA, Threshold, machine, threshold

__all__ = [
    "PACKAGED",
    "PACKAGED_SIGMA",
    "Parts",
    "Ready",
    "Shelf",
    "Threshold",
    "budget",
    "build_sample",
    "cast",
    "composer",
    "encoder",
    "engine",
    "gate",
    "knowledge_base",
    "language_model",
    "live",
    "machine",
    "no_retriever",
    "offers",
    "open_or_create",
    "planned_by",
    "recorded",
    "relevance",
    "remembered",
    "replayed",
    "reranked",
    "reranker",
    "retriever",
    "roles_of",
    "runner",
    "search",
    "searched",
    "solver",
    "threshold",
    "wording",
    "writes",
]
