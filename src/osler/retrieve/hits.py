"""What the retrievers over a knowledge base share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from osler.errors import KnowledgeBaseError, SourceUnavailable
from osler.kb.base import KnowledgeBase
from osler.kb.store.passages import Scope
from osler.types import Hit, Passage


def rank_hits(scored: Iterable[tuple[Passage, float]], query: str, finder: str) -> list[Hit]:
    """Ranked from 1 in the order given."""
    return [
        Hit(passage, score, rank, query, finder) for rank, (passage, score) in enumerate(scored, 1)
    ]


@contextmanager
def source_errors(kb: KnowledgeBase, scope: Scope) -> Iterator[None]:
    """Raises `SourceUnavailable` for sources that are not there and for those that fail."""
    names = "the knowledge base" if scope is None else f"source {', '.join(scope)}"
    try:
        if lacking := kb.missing_sources(scope or ()):
            raise SourceUnavailable(
                f"the knowledge base holds no source {', '.join(lacking)}",
                fix=f"run `osler kb add PATH --source {lacking[0]}`",
            )
        yield
    except KnowledgeBaseError as error:
        message = f"{names} cannot be searched: {error.message}"
        raise SourceUnavailable(message, fix=error.fix) from error
    except OSError as error:
        raise SourceUnavailable(f"{names} cannot be searched: {error}") from error
