"""The retrievers of a knowledge base: over all of it, and one for each source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.lexical import LexicalRetriever
from osler.sources.catalogue import EMR
from osler.types import Retriever

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder


@dataclass(frozen=True, slots=True)
class Fusion:
    """How two rankings become one; the defaults are those of `HybridRetriever`."""

    dense_weight: float = 1.0
    lexical_weight: float = 0.7
    constant: float = 10.0
    depth: int = 64


def retriever_over(
    kb: KnowledgeBase,
    encoder: Encoder | None,
    within: PassageFilter = EVERYTHING,
    fusion: Fusion = Fusion(),
) -> Retriever:
    """A hybrid search of what `within` lets through, or one by words alone when there is no
    encoder or the vectors have no weight.

    Without sources named, records of patients are not searched. Raises what
    `KnowledgeBase.require_built` raises.
    """
    kb.require_built(encoder.identity if encoder else None)
    if encoder is None or fusion.dense_weight == 0:
        return LexicalRetriever(kb, within)
    return HybridRetriever(
        kb,
        encoder,
        within,
        dense_weight=fusion.dense_weight,
        lexical_weight=fusion.lexical_weight,
        constant=fusion.constant,
        depth=fusion.depth,
    )


def by_source(
    kb: KnowledgeBase,
    encoder: Encoder | None,
    sources: Iterable[str] | None = None,
    within: PassageFilter = EVERYTHING,
    fusion: Fusion = Fusion(),
) -> dict[str, Retriever]:
    """A retriever for each of `sources`; `None` = for each that the knowledge base holds but `emr`.

    A source that it does not hold raises `SourceUnavailable` at its first search.
    """
    names = [name for name in kb.sources if name != EMR] if sources is None else sources
    return {
        name: retriever_over(kb, encoder, replace(within, sources=(name,)), fusion)
        for name in names
    }
