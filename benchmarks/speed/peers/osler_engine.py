"""Osler among the engines: added as a user adds a file, searched through its own retrievers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from engines import DIMENSION, Corpus, Engine, K

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import BackendChoice
from osler.retrieve.hybrid import retriever_over

if TYPE_CHECKING:
    from osler.types import Language


class _Given:
    """An encoder whose vectors are known: of passages by their texts, of the question in hand."""

    identity, dimension = "given-384", DIMENSION
    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, known: dict[str, Any]) -> None:
        self.known, self.question = known, np.zeros(DIMENSION, np.float32)

    def encode(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Any:
        if kind == "query":
            return np.tile(self.question, (len(texts), 1))
        return np.stack([self.known[text] for text in texts])


class Osler(Engine):
    """Over the SQLite file alone, the core's install. Words are those of `by_words`, with spelling
    and other names, as asked by `osler ask`; it has no search by vectors alone."""

    ways = ("words", "hybrid")
    kind: Literal["sqlite", "edge"] = "sqlite"

    def add(self, corpus: Corpus) -> Iterator[str]:
        choice = BackendChoice(self.kind)
        with KnowledgeBase.create(self.folder / "kb", choice) as kb:
            added = kb.add([corpus.file], source="web")
            if added.passages != len(corpus.ids):
                raise SystemExit(f"{added.passages} passages of {len(corpus.ids)} were stored")
            yield "words"
            known = dict(zip(corpus.texts, corpus.vectors, strict=True))
            kb.build(_Given(known), batch=4096)
        yield "vectors"

    def open(self) -> None:
        self._kb = KnowledgeBase.open(self.folder / "kb", BackendChoice(self.kind))
        self._given = _Given({})
        self._words = retriever_over(self._kb, None)
        self._both = retriever_over(self._kb, self._given)

    def search(self, way: str, question: str, vector: Any) -> list[str]:
        self._given.question = vector
        retriever = self._words if way == "words" else self._both
        hits = retriever.search_index(question, K)
        return [hit.passage.id.partition(":")[2].partition("#")[0] for hit in hits]


class OslerEdge(Osler):
    """With the embedded engine, which `auto` takes from 20,000 passages on."""

    packages, kind = ("qdrant-edge-py",), "edge"
