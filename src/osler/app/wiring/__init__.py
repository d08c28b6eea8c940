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

from osler.app.wiring.composers import answer_wording, build_composer, evidence_gate, may_write
from osler.app.wiring.hub import open_reranker, with_reranker
from osler.app.wiring.knowledge import (
    build_sample,
    bulk_runner,
    describe_sources,
    make_retriever,
    open_knowledge_base,
    open_or_create,
    search_backend,
    search_passages,
    searched_sources,
)
from osler.app.wiring.live import live_parts, record_parts, remember_replies, replay_parts
from osler.app.wiring.models import (
    PACKAGED,
    LoadedModel,
    encoder_relevance,
    load_encoder,
    load_model,
    load_roles,
)
from osler.app.wiring.parts import Parts, no_retriever, roles_of
from osler.app.wiring.planning import planner_name
from osler.app.wiring.resource_cache import ResourceCache
from osler.app.wiring.strategies import build_solver, run_budget
from osler.app.wiring.tc_rag import PACKAGED_SIGMA, Threshold, build_machine, halting_threshold

__all__ = [
    "PACKAGED",
    "PACKAGED_SIGMA",
    "LoadedModel",
    "Parts",
    "ResourceCache",
    "Threshold",
    "answer_wording",
    "build_composer",
    "build_machine",
    "build_sample",
    "build_solver",
    "bulk_runner",
    "describe_sources",
    "encoder_relevance",
    "evidence_gate",
    "halting_threshold",
    "live_parts",
    "load_encoder",
    "load_model",
    "load_roles",
    "make_retriever",
    "may_write",
    "no_retriever",
    "open_knowledge_base",
    "open_or_create",
    "open_reranker",
    "planner_name",
    "record_parts",
    "remember_replies",
    "replay_parts",
    "roles_of",
    "run_budget",
    "search_backend",
    "search_passages",
    "searched_sources",
    "with_reranker",
]
