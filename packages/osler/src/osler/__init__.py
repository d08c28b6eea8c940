"""Osler answers medical questions from evidence, and knows when it does not know.

The public names, loaded when first used, so that `import osler` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler.app.runs import ask, replay
    from osler.errors import OslerError
    from osler.kb.base import KnowledgeBase
    from osler.llm.core.base import LanguageModel, Likelihood
    from osler.questions import parse_question
    from osler.settings import Settings, load
    from osler.trace import Run, Solver
    from osler.types import Answer, Passage, Question, Retriever, Solution

__all__ = [
    "Answer",
    "KnowledgeBase",
    "LanguageModel",
    "Likelihood",
    "OslerError",
    "Passage",
    "Question",
    "Retriever",
    "Run",
    "Settings",
    "Solution",
    "Solver",
    "ask",
    "load",
    "parse_question",
    "replay",
]

_HOME = {
    "Answer": "types",
    "KnowledgeBase": "kb.base",
    "LanguageModel": "llm.core.base",
    "Likelihood": "llm.core.base",
    "OslerError": "errors",
    "Passage": "types",
    "Question": "types",
    "Retriever": "types",
    "Run": "trace",
    "Settings": "settings",
    "Solution": "types",
    "Solver": "trace",
    "ask": "app.runs",
    "load": "settings",
    "parse_question": "questions",
    "replay": "app.runs",
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
