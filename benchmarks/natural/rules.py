"""Baselines: rules of ten lines over the same passages.

`cosine` is the simple rule that every part of the gate must beat: ten passages by reciprocal ranks
of BM25 and cosine, and of all their sentences the one with the best cosine of question and "title:
section. sentence" plus half the cosine with its passage. It never refuses. Its first sentence goes
on as Osler's does, so that both say as much.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np

from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.kb.search.base import Floats
from osler.kb.store.passages import indexed_text
from osler.sources.catalogue import EMR, GRAPH
from osler.types import Passage

READ, RANKED, CONSTANT = 10, 64, 60
"""Passages that are read, hits of each ranking, and the constant of reciprocal ranks."""
K1, B = 1.2, 0.75
_CUT = 6
"""Letters of a word that are compared."""
_SENTENCE = re.compile(r"(?<=[.:;?])\s+(?=[A-Z])|(?<=[。；？！])")
_SHORTEST = 15
ROOM, ROOM_ZH = 400, 140
"""Characters with which the first sentence goes on."""


@dataclass(frozen=True)
class SimpleRules:
    """BM25 and cosine over all passages of a base, without a line of what answers in Osler."""

    kb: KnowledgeBase
    encoder: Encoder

    @cached_property
    def passages(self) -> list[Passage]:
        """All passages but patients' and those of the concept graph."""
        found = [p for s in self.kb.sources for d in self.kb.read_documents(s) for p in d]
        return [one for one in found if one.source not in (EMR, GRAPH)]

    @cached_property
    def _words(self) -> tuple[list[Counter[str]], dict[str, float], np.ndarray]:
        counted = [Counter(cut_words(indexed_text(one))) for one in self.passages]
        seen = Counter(word for one in counted for word in one)
        rare = {w: log(1 + (len(counted) - n + 0.5) / (n + 0.5)) for w, n in seen.items()}
        return counted, rare, np.array([sum(one.values()) for one in counted], float)

    @cached_property
    def _holders(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, one in enumerate(self._words[0]):
            for word in one:
                found.setdefault(word, []).append(number)
        return found

    def rank_by_words(self, question: str) -> list[int]:
        """Numbers of the passages by BM25, best first."""
        counted, rare, lengths = self._words
        scores: dict[int, float] = {}
        for word in dict.fromkeys(cut_words(question)):
            for number in self._holders.get(word, ()):
                n = counted[number][word]
                norm = K1 * (1 - B + B * lengths[number] / lengths.mean())
                scores[number] = scores.get(number, 0) + rare[word] * n * (K1 + 1) / (n + norm)
        return sorted(scores, key=lambda number: (-scores[number], number))[:RANKED]

    def first_passage(self, question: str) -> list[tuple[str, str]]:
        """Id and text of BM25's first passage."""
        ranked = self.rank_by_words(question)[:1]
        return [(self.passages[n].id, self.passages[n].text) for n in ranked]

    def best_sentences(self, question: str, most: int = 3) -> list[tuple[str, str]]:
        """Ids of passages and their sentences, the highest cosine first."""
        asked = self.encoder.encode([question], kind="query")[0]
        ranks = (self.rank_by_words(question), self._rank_by_vectors(asked))
        fused: dict[int, float] = {}
        for ranked in ranks:
            for rank, number in enumerate(ranked, 1):
                fused[number] = fused.get(number, 0) + 1 / (CONSTANT + rank)
        best = sorted(fused, key=lambda number: (-fused[number], number))[:READ]
        read = [self.passages[number] for number in best]
        said = [(n, one) for n, passage in enumerate(read) for one in cut_sentences(passage.text)]
        if not said:
            return []
        texts = [f"{_title_of(read[n])}. {sentence}" for n, sentence in said]
        scores = self.encoder.encode(texts, kind="passage") @ asked
        near = self.encoder.encode([indexed_text(one) for one in read], kind="passage") @ asked
        scores = scores + 0.5 * np.array([near[n] for n, _ in said])
        order = np.argsort(-scores, kind="stable")[:most]
        found = [(read[said[i][0]].id, said[i][1]) for i in order]
        return [(found[0][0], _go_on(said, int(order[0]))), *found[1:]]

    def _rank_by_vectors(self, asked: Floats) -> list[int]:
        """Numbers of the passages by cosine; those without a vector, as Chinese ones, have none."""
        found = self.kb.by_vector(asked, encoder=self.encoder.identity, k=RANKED)
        return [self._numbers[one.id] for one, _ in found if one.id in self._numbers]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {one.id: number for number, one in enumerate(self.passages)}


def _go_on(said: Sequence[tuple[int, str]], at: int) -> str:
    """The sentence with the two after it, if they are short enough, as Osler's first quote has."""
    number, text = said[at]
    most = len(text) + (ROOM_ZH if has_chinese(text) else ROOM)
    for other, after in said[at + 1 : at + 3]:
        if other != number or len(text) + len(after) > most:
            break
        text = f"{text} {after}"
    return text


def _title_of(passage: Passage) -> str:
    return passage.heading.replace(" > ", ": ", 1)


def cut_words(text: str) -> list[str]:
    """Words in lower case, cut at six letters; of Chinese, pairs of characters."""
    words = re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]+", text.casefold())
    found = []
    for word in words:
        if word[0] >= "\u4e00":
            found += [word[at : at + 2] for at in range(max(1, len(word) - 1))]
        else:
            found.append(word[:_CUT])
    return found


def cut_sentences(text: str) -> Sequence[str]:
    """Sentences by marks before a capital, and by Chinese ones."""
    return [one for one in _SENTENCE.split(text) if len(one) > _SHORTEST or has_chinese(one)]


def has_chinese(text: str) -> bool:
    """Whether a text has a Chinese character."""
    return re.search(r"[\u4e00-\u9fff]", text) is not None
