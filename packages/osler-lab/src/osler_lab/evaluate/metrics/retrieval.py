"""Retrieval measures: recall@k, reciprocal rank, nDCG, and the support of citations."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import log2
from typing import Literal
from urllib.parse import urlsplit

from osler_lab.evaluate.metrics.overlap import normalise_answer


def recall_at(ranked: Sequence[str | None], relevant: Collection[str], k: int) -> float:
    """Share of the relevant documents among the first k. Raises `ValueError` for none relevant."""
    if not relevant:
        raise ValueError("nothing is relevant")
    return len(set(ranked[:k]) & set(relevant)) / len(set(relevant))


def reciprocal_rank(ranked: Sequence[str | None], relevant: Collection[str]) -> float:
    """1 / rank of the first relevant document; 0.0 if absent."""
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


_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_CODE = re.compile(r"[^\W\d_]+:\d+")

GoldName = Literal["code", "address", "title"]


def kind_of_name(support: str) -> GoldName:
    """How the gold names a document: "PMID:123", "https://…", or its title."""
    if _ADDRESS.match(support):
        return "address"
    return "code" if _CODE.fullmatch(support) else "title"


def rests_on(passage: str, support: str, *, title: str = "", code: str = "", url: str = "") -> bool:
    """Whether a passage is of a document that the gold names.

    A name may be the passage's own id. A code is the passage's code or a part of its id; titles are
    compared in SQuAD's normal form, addresses without scheme, "www." and fragment.
    """
    if (code and code == support) or passage == support:
        return True
    match kind_of_name(support):
        case "code":
            # Passage ids are "source:document#chunk"; the number must be a whole part of the
            # document.
            document = passage.partition(":")[2].partition("#")[0]
            return support.rpartition(":")[2] in _PARTS.split(document)
        case "address":
            return bool(url) and _plain_address(url) == _plain_address(support)
        case "title":
            return bool(title) and normalise_answer(title) == normalise_answer(support)


def _plain_address(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url.strip())
    return parts.netloc.lower().removeprefix("www."), parts.path.rstrip("/"), parts.query


def precision(flags: Sequence[bool]) -> float:
    """Share of true flags. Raises `ValueError` for none."""
    if not flags:
        raise ValueError("nothing was cited")
    return sum(flags) / len(flags)
