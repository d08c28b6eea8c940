"""Searches with their gold documents, of the sets of `pair_questions`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from osler.train.experts.pair_questions import MEDQUAD, PairQuestion, read_pair_questions
from osler.types import Passage


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A question and its gold documents."""

    id: str
    text: str
    source: str
    documents: tuple[str, ...]
    gold: frozenset[str]
    """Names of documents, as `document_name` gives them."""
    held_out: bool = False


def read_searches(data: Path) -> list[SearchQuestion]:
    """The questions of `pair_questions`; MedQuAD's that are asked of several pages are merged."""
    found: dict[tuple[str, str], SearchQuestion] = {}
    for one in read_pair_questions(data):
        gold = frozenset({_gold_of(one)} if one.source == MEDQUAD else one.documents)
        key = (one.source, " ".join(one.text.casefold().split()))
        if (known := found.get(key)) is None:
            found[key] = SearchQuestion(
                one.id, one.text, one.source, one.documents, gold, one.held_out
            )
        else:
            documents = tuple(dict.fromkeys(known.documents + one.documents))
            found[key] = replace(known, gold=known.gold | gold, documents=documents)
    return list(found.values())


def _gold_of(one: PairQuestion) -> str:
    """The answer's document, "GHR_0000064_Sec1"."""
    page, _, number = one.id.partition(":")[2].rpartition("_")
    return f"{page}_Sec{number}"


def document_name(passage: Passage) -> str:
    """PubMed id where there is one, else the document's part of the passage's id."""
    return passage.locator.code or passage.id.partition(":")[2].partition("#")[0]
