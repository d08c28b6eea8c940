"""The retrievers of a knowledge base: over all of it, and one for each source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from osler.kb.base import KnowledgeBase
from osler.kb.store import Scope
from osler.retrieve.dense import Dense
from osler.retrieve.hybrid import Hybrid
from osler.retrieve.lexical import Lexical
from osler.types import EMR, Retriever

if TYPE_CHECKING:
    from osler.kb.embed import Encoder


def over(kb: KnowledgeBase, encoder: Encoder | None, sources: Scope = None) -> Retriever:
    """A hybrid search of `sources`, or one by words alone when there is no encoder.

    `None` = all sources but `emr`: records of patients are searched only by name.
    Raises what `KnowledgeBase.require_built` raises.
    """
    kb.require_built(encoder.identity if encoder else None)
    lexical = Lexical(kb, sources)
    return Hybrid(Dense(kb, encoder, sources), lexical) if encoder else lexical


def by_source(
    kb: KnowledgeBase, encoder: Encoder | None, sources: Iterable[str] | None = None
) -> dict[str, Retriever]:
    """A retriever for each of `sources`; `None` = for each that the knowledge base holds but `emr`.

    A source that it does not hold raises `SourceUnavailable` at its first search.
    """
    names = [name for name in kb.sources if name != EMR] if sources is None else sources
    return {name: over(kb, encoder, (name,)) for name in names}
