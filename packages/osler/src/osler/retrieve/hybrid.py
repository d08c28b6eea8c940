"""Text search: by words (BM25), and by words and meaning together."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, VectorMemory, encoder_for, shared_languages
from osler.kb.reader import order_scored
from osler.kb.search.base import EVERYTHING, PassageFilter, Ranking
from osler.kb.store.passages import indexed_text
from osler.retrieve import content_terms, rank_hits, rrf, source_errors
from osler.retrieve.asked import (
    AskedQuestion,
    BaseVocabulary,
    QuestionReader,
    asked_vector,
    read_query,
)
from osler.retrieve.gloss import gloss_question, other_language
from osler.text import language_of
from osler.types import Hit, Passage

OTHERS = 4
"""One place in so many is for texts in the language that the question is not in."""
_Found: TypeAlias = tuple[Passage, float, str]
"""Passage, score and what found it."""


@dataclass(frozen=True)
class LexicalRetriever:
    """Passages that share a content word with the query, by BM25; `[]` when it has none.

    With `reader` the query's names are searched for by their other names too.
    """

    kb: KnowledgeBase
    within: PassageFilter = EVERYTHING
    reader: QuestionReader | None = None

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await asyncio.to_thread(self.search_index, query, k)

    def search_index(self, query: str, k: int) -> list[Hit]:
        """What `search` gives, without waiting for another thread."""
        with source_errors(self.kb, self.within.sources):
            asked = read_query(self.reader, query)
            found = self.kb.by_words(content_terms(asked.full), k=k, within=self.within)
            return rank_hits(found, asked.spelt, "lexical")


@dataclass(frozen=True, slots=True)
class Fusion:
    """Parameters of the fusion of a dense and a lexical ranking.

    With MiniLM, k = 10 and weights 1 : 0.7 the reciprocal rank was .958 on 1,000 questions
    about abstracts and .689 on 1,000 consumer questions; the better of the two alone had .945
    and .665. Under a reranker, 1 : 1 lets more right passages through (recall .933
    instead of .914).
    """

    dense_weight: float = 1.0
    lexical_weight: float = 0.7
    constant: float = 10.0
    """The `k` of the fusion formula."""
    depth: int = 64
    """Hits of each ranking that are fused. A hundred changed no figure above by more than .002
    and took 1.12 times as long."""


@dataclass(frozen=True)
class HybridRetriever:
    """Reciprocal Rank Fusion of a dense and a lexical ranking; scores are fused ones.

    Both rankings come from one request to the search backend, as numbers, and only the returned
    passages are read. They are fused here and not in the backend: so every backend gives the
    same scores (Qdrant counts ranks from 0, the paper from 1), and a hit can say which ranking
    found it. A query without results in one ranking is ranked by the other alone. A query in a
    language unknown to the encoder is searched by words alone: vectors of such text exist but
    mean nothing (MiniLM, English, had a reciprocal rank of .32 on Chinese questions, characters
    alone .92).

    With `reader` texts in the other language are searched for by the question's words in it
    (`gloss`): they have the last quarter of the places, and those that are left.
    """

    kb: KnowledgeBase
    encoder: Encoder
    within: PassageFilter = EVERYTHING
    fusion: Fusion = Fusion()
    reader: QuestionReader | None = None
    """Says what is asked in the query, and by which other names."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await asyncio.to_thread(self.search_index, query, k)

    def search_index(self, query: str, k: int) -> list[Hit]:
        """What `search` gives, without waiting for another thread."""
        with source_errors(self.kb, self.within.sources):
            asked = read_query(self.reader, query)
            found = self._search_language(asked, k)
            known = {passage.id for passage, _, _ in found}
            across = [one for one in self._search_other(asked, k) if one[0].id not in known]
            own = found[: k - min(len(across), k // OTHERS)]
            across = _below(across[: k - len(own)], own)
            return [
                Hit(passage, score, rank, asked.spelt, finder)
                for rank, (passage, score, finder) in enumerate([*own, *across], 1)
            ]

    def _search_other(self, asked: AskedQuestion, k: int) -> list[_Found]:
        """The best passages in the other language by the question's words in it. Not by meaning:
        a second encoder would be loaded for every question."""
        other = other_language(language_of(asked.text))
        if self.reader is None or (self.within.languages and other not in self.within.languages):
            return []
        terms = content_terms(gloss_question(asked.text).text)
        found = self.kb.by_words(terms, k=k, within=replace(self.within, languages=(other,)))
        return [(passage, score, "lexical") for passage, score in found]

    def _search_language(self, asked: AskedQuestion, k: int) -> list[_Found]:
        """The best passages by words, and by meaning those of the question's language."""
        language = language_of(asked.text)
        encoder = encoder_for(self.encoder, language)
        languages = shared_languages(self.encoder, language)
        vector = asked_vector(encoder, asked)[0] if languages else None
        dense, lexical = self.kb.rank_by_both(
            content_terms(asked.full),
            vector,
            encoder=self.encoder.identity,
            k=max(k, self.fusion.depth),
            within=self.within,
            languages=languages,
        )
        near = {number for number, _ in dense}
        found = self._fuse_rankings(dense, lexical, k)
        if isinstance(encoder, VectorMemory):
            own = {n: passage for n, passage, _ in found if passage.language in languages}
            self._remember_vectors(encoder, own)
        return [
            (passage, score, "dense" if number in near else "lexical")
            for number, passage, score in found
        ]

    def _remember_vectors(self, memory: VectorMemory, found: Mapping[int, Passage]) -> None:
        """So that whoever orders or reads these passages next need not encode them."""
        vectors = self.kb.get_vectors(found)
        texts = [indexed_text(found[number]) for number in vectors]
        memory.remember_passages(texts, list(vectors.values()))

    def _fuse_rankings(
        self, dense: Ranking, lexical: Ranking, k: int
    ) -> list[tuple[int, Passage, float]]:
        fused = rrf(
            [[number for number, _ in ranking] for ranking in (dense, lexical)],
            weights=(self.fusion.dense_weight, self.fusion.lexical_weight),
            k=self.fusion.constant,
        )
        # Usually k passages are read; all only when deletions made gaps.
        passages = self.kb.get_passages(number for number, _ in _cut_ranking(fused, k))
        if len(passages) < min(k, len(fused)):  # some were deleted since the last build
            passages = self.kb.get_passages(number for number, _ in fused)
        numbers = {passages[n].id: n for n, _ in fused if n in passages}
        found = [(passages[n], score) for n, score in fused if n in passages]
        best = order_scored(found, self.within)[:k]
        return [(numbers[passage.id], passage, score) for passage, score in best]


def _below(found: Sequence[_Found], own: Sequence[_Found]) -> list[_Found]:
    """What was found, with scores that lie below those of `own`."""
    if not found or not own:
        return [*found]
    scale = min(1.0, own[-1][1] / found[0][1])
    return [(passage, score * scale, finder) for passage, score, finder in found]


def _cut_ranking(fused: Ranking, k: int) -> Ranking:
    """The first `k`, and those after them with the same score as the last."""
    return [pair for pair in fused if pair[1] >= fused[k - 1][1]] if len(fused) > k else fused


def retriever_over(
    kb: KnowledgeBase,
    encoder: Encoder | None,
    within: PassageFilter = EVERYTHING,
    fusion: Fusion = Fusion(),
) -> LexicalRetriever | HybridRetriever:
    """The text retriever over the passages that pass `within`: hybrid, or by words alone without an
    encoder or with dense weight 0.

    Patient records are searched only when their source is named. Passages that still wait for
    their vector are found by words, which meanwhile count as much as meaning. Raises the errors of
    `KnowledgeBase.count_unindexed`.
    """
    waiting = kb.count_unindexed(encoder.identity if encoder else None)
    reader = question_reader(kb, within)
    if encoder is None or fusion.dense_weight == 0 or not kb.has_vectors(encoder.identity):
        return LexicalRetriever(kb, within, reader)
    if waiting:
        equal = max(fusion.dense_weight, fusion.lexical_weight)
        fusion = replace(fusion, dense_weight=equal, lexical_weight=equal)
    return HybridRetriever(kb, encoder, within, fusion, reader)


def search(
    kb: KnowledgeBase,
    text: str,
    *,
    k: int = 10,
    encoder: Encoder | None = None,
    sources: Collection[str] | None = None,
) -> list[Hit]:
    """The `k` best passages for `text`, best first: by words, and by meaning with the `encoder` of
    the last build.

    `sources` are those that are searched; `None`: all but patient records. Blocks; one who
    searches often keeps the `retriever_over` the knowledge base. Raises `KnowledgeBaseUnbuilt`
    where it is empty, `KnowledgeBaseMismatch` for another encoder, and `SourceUnavailable` for a
    source that is not there.

        >>> import osler
        >>> from pathlib import Path
        >>> section = osler.Section("Oral iron treats iron deficiency anaemia.")
        >>> kb = osler.KnowledgeBase.create(Path("kb"))
        >>> added = kb.put(osler.chunk(osler.Document("iron", "Iron", (section,))))
        >>> [hit.passage.id for hit in osler.search(kb, "What treats anaemia?", k=3)]
        ['documents:iron#0']
    """
    within = PassageFilter(None if sources is None else tuple(sources))
    return retriever_over(kb, encoder, within).search_index(text, k)


def question_reader(kb: KnowledgeBase, within: PassageFilter = EVERYTHING) -> QuestionReader:
    """What reads questions to a knowledge base: it mends spelling by the base's own words, with
    `within.as_of` by those of documents up to this day. No word is told that stands in no passage
    within: it may be a patient's name."""
    rarity, near = (
        partial(kb.term_rarity, as_of=within.as_of),
        partial(kb.near_terms, as_of=within.as_of),
    )

    def is_found(word: str) -> bool:
        return bool(kb.by_words([word], k=1, within=within))

    return QuestionReader(BaseVocabulary(rarity, near, is_found))
