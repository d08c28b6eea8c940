"""Retrieval measures: recall@k, reciprocal rank, nDCG, and the support of citations."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import log2

from osler.evaluate.metrics.words import normalise_answer


def recall_at(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the relevant documents among the first k. Raises `ValueError` for none relevant."""
    if not relevant:
        raise ValueError("nothing is relevant")
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """1 / rank of the first relevant document; 0.0 where there is none."""
    return next((1 / rank for rank, doc in enumerate(ranked, 1) if doc in relevant), 0.0)


def ndcg(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """nDCG as in trec_eval: gain is the grade, discount log2(rank + 1), against the best order.

    Raises `ValueError` where no grade is above 0.
    """
    best = _dcg(sorted((g for g in grades.values() if g > 0), reverse=True)[:k])
    if not best:
        raise ValueError("nothing is relevant")
    # Unjudged documents count as not relevant, as in trec_eval.
    return _dcg([max(0, grades.get(doc, 0)) for doc in ranked[:k]]) / best


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))


_PARTS = re.compile(r"[^\w]+|_")


def rests_on(passage: str, support: str, *, title: str = "", code: str = "") -> bool:
    """Whether a passage is of a document that the gold names.

    The gold's name is a code ("PMID:123"), which is the passage's code or a part of its id,
    or a title.
    """
    if code and code == support:
        return True
    kind, colon, number = support.rpartition(":")
    if colon and number.isdigit() and kind.isalpha():
        # Passage ids are "source:document#chunk"; the number must be a whole part of the document.
        document = passage.partition(":")[2].partition("#")[0]
        return number in _PARTS.split(document)
    return bool(title) and normalise_answer(title) == normalise_answer(support)


def precision(flags: Sequence[bool]) -> float:
    """Share of true flags. Raises `ValueError` for none."""
    if not flags:
        raise ValueError("nothing was cited")
    return sum(flags) / len(flags)
