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
    "Answer": "types",
    "Document": "sources.records",
    "Drop": "sources.records",
    "KnowledgeBase": "kb.base",
    "LanguageModel": "llm.core.base",
    "Likelihood": "llm.core.base",
    "OmniRag": "methods.omni.solver",
    "OslerError": "errors",
    "Passage": "types",
    "Question": "types",
    "Retriever": "types",
    "Run": "trace",
    "Section": "sources.records",
    "Settings": "settings",
    "Solution": "types",
    "Solver": "trace",
    "Thinker": "methods.kag.solver",
    "TuringMachine": "methods.tcrag.machine",
    "ask": "runs.answering",
    "chunk": "kb.ingest.prepare",
    "load": "settings",
    "parse_question": "questions",
    "read": "sources.reading",
    "replay": "runs.answering",
    "search": "retrieve.hybrid",
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
