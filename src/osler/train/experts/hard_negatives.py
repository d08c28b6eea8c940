"""Wrong texts that lie near a question: what a search would find beside the answer.

The packaged encoder ranks the right texts of other questions of the same part by their cosine to
the question; those nearest to it are its hard negatives. Texts of a document that the question
rests on are left out, and so is what is as near as its own answer may be: two questions in a row
often ask the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from osler.train.experts.pair_questions import MEDQUAD, CandidateText, PairQuestion

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder, Vectors

_LEAD = 300
"""Characters of a text that are compared: enough to tell what it is about."""
SAME_QUESTION = 0.9
"""Cosine of two questions from which they ask the same, so that an answer may serve both."""


def add_hard_negatives(
    questions: Sequence[PairQuestion], encoder: Encoder, *, each: int = 6
) -> list[PairQuestion]:
    """The questions with up to `each` further wrong texts, nearest first.

    MedQuAD's are answers of the same kind about another subject; the others' come from their own
    set. Pass the questions of one part only, or texts would cross the split.
    """
    made: dict[str, PairQuestion] = {}
    for source in dict.fromkeys(one.source for one in questions):
        group = [one for one in questions if one.source == source]
        made |= {one.id: one for one in _mine_group(group, encoder, each)}
    return [made[one.id] for one in questions]


def _mine_group(group: list[PairQuestion], encoder: Encoder, each: int) -> list[PairQuestion]:
    asked = encoder.encode([one.text for one in group], kind="query")
    owners, texts = [], []
    for number, one in enumerate(group):
        # A question with fifty snippets would fill everybody's list.
        for candidate in one.right[:4]:
            owners.append(number)
            texts.append(candidate)
    read = [f"{one.title}. {one.text[:_LEAD]}" if one.title else one.text[:_LEAD] for one in texts]
    said = encoder.encode(read, kind="passage")
    return [
        replace(one, wrong=one.wrong + _nearest(number, group, asked, said, owners, texts, each))
        for number, one in enumerate(group)
    ]


def _nearest(
    number: int,
    group: Sequence[PairQuestion],
    asked: Vectors,
    said: Vectors,
    owners: Sequence[int],
    texts: Sequence[CandidateText],
    each: int,
) -> tuple[CandidateText, ...]:
    one = group[number]
    same = asked @ asked[number] >= SAME_QUESTION
    known = {candidate.text for candidate in (*one.right, *one.wrong)}
    found: list[CandidateText] = []
    for row in np.argsort(-(said @ asked[number]), kind="stable"):
        other = group[owners[row]]
        if same[owners[row]] or not set(other.documents).isdisjoint(one.documents):
            continue
        if one.source == MEDQUAD and other.kind != one.kind:
            continue
        if texts[row].text not in known:
            why = "another subject" if one.source == MEDQUAD else "another question"
            found.append(replace(texts[row], why=why))
            known.add(texts[row].text)
        if len(found) == each:
            break
    return tuple(found)
