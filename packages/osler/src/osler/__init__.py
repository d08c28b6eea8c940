"""Osler answers medical questions from evidence, and knows when it does not know.

The public names, loaded when first used, so that `import osler` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.errors import OslerError
    from osler.kb.base import KnowledgeBase
    from osler.kb.ingest.prepare import chunk
    from osler.llm.core.base import LanguageModel, Likelihood
    from osler.methods.kag.solver import Thinker
    from osler.methods.omni.solver import OmniRag
    from osler.methods.tcrag.machine import TuringMachine
    from osler.questions import parse_question
    from osler.retrieve.hybrid import search
    from osler.runs.answering import ask, replay
    from osler.settings import Settings, load
    from osler.sources.reading import read
    from osler.sources.records import Document, Drop, Section
    from osler.trace import Run, Solver
    from osler.types import Answer, Passage, Question, Retriever, Solution

__all__ = [
    "Answer",
    "Document",
    "Drop",
    "KnowledgeBase",
    "LanguageModel",
    "Likelihood",
    "OmniRag",
    "OslerError",
    "Passage",
    "Question",
    "Retriever",
    "Run",
    "Section",
    "Settings",
    "Solution",
    "Solver",
    "Thinker",
    "TuringMachine",
    "ask",
    "chunk",
    "load",
    "parse_question",
    "read",
    "replay",
    "search",
]

_HOME = {
    name: module
    for module, names in {
        "errors": "OslerError",
        "kb.base": "KnowledgeBase",
        "kb.ingest.prepare": "chunk",
        "llm.core.base": "LanguageModel Likelihood",
        "methods.kag.solver": "Thinker",
        "methods.omni.solver": "OmniRag",
        "methods.tcrag.machine": "TuringMachine",
        "questions": "parse_question",
        "retrieve.hybrid": "search",
        "runs.answering": "ask replay",
        "settings": "Settings load",
        "sources.reading": "read",
        "sources.records": "Document Drop Section",
        "trace": "Run Solver",
        "types": "Answer Passage Question Retriever Solution",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("osler")
    if name in _HOME:
        return getattr(import_module(f"osler.{_HOME[name]}"), name)
    raise AttributeError(f"module 'osler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
