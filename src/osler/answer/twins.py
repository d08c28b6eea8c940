"""Sentences that are the same but for a number, a negation, or a word that points the other way.

The rules of `disagreement` leave alone a sentence with several amounts or with a comparison. Where
two sentences share nearly all their words there is less to be mistaken about: what differs is what
they disagree on, or what somebody changed.
"""

from __future__ import annotations

import re
from collections import Counter

from osler.answer.disagreement import Claim, Difference, read_amounts, read_directions

LEAST_SHARED, LEAST_WORDS = 0.8, 4
"""Share of the longer one's words of content, and how many at least, that twins share."""
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|neither|nor|cannot)\b|n't\b|不|未|无|没有|并非|勿", re.IGNORECASE
)
_WORSE = re.compile(
    r"\b(?:worse|worsen(?:s|ed|ing)?|deteriorat(?:e|es|ed|ing))\b|恶化|加重", re.IGNORECASE
)
"""Says the opposite of the words that `disagreement` has for an effect."""
_MOST_NUMBERS = 2
"""Numbers in which twins may differ: more, and they are two studies in the same form."""


def is_checkable(sentence: str) -> bool:
    """Whether there is something in it to differ in."""
    return bool(
        _NUMBER.search(sentence)
        or _NEGATION.search(sentence)
        or _WORSE.search(sentence)
        or read_amounts(sentence)
        or read_directions(sentence)
    )


def are_twins(mine: Claim, theirs: Claim) -> bool:
    """Whether the two share nearly all words of content."""
    one, other = {*mine.content}, {*theirs.content}
    shared = len(one & other)
    return shared >= LEAST_WORDS and shared >= LEAST_SHARED * max(len(one), len(other))


def find_twin_difference(mine: Claim, theirs: Claim) -> Difference | None:
    """In what two twins differ; `None` where they are none, or say the same."""
    if not are_twins(mine, theirs):
        return None
    shared = tuple(word for word in mine.content if word in theirs.content)
    share = len(shared) / max(1, len(mine.content), len(theirs.content))
    ours, others = (Counter(_NUMBER.findall(one.text)) for one in (mine, theirs))
    ours_alone, denied = list((ours - others).elements()), list((others - ours).elements())
    if ours_alone and denied and max(len(ours_alone), len(denied)) <= _MOST_NUMBERS:
        return Difference("amounts", ", ".join(ours_alone), ", ".join(denied), shared, share)
    if ours_alone or denied:
        return None
    one, other = _pointers(mine.text), _pointers(theirs.text)
    if one.keys() == other.keys():
        return None
    words = [" ".join(sorted(side.values())) or "-" for side in (one, other)]
    return Difference("directions", words[0], words[1], shared, share)


def _pointers(sentence: str) -> dict[tuple[str, int], str]:
    """Axis and way of its words that point; of a sentence without any, whether it denies."""
    directions = read_directions(sentence)
    found = {(axis, way): words for axis, ways in directions.items() for way, words in ways.items()}
    if worse := _WORSE.search(sentence):
        found["effect", -1] = worse[0]
    if found:
        return found
    denied = _NEGATION.findall(sentence)
    return {("denial", 1): denied[0]} if len(denied) % 2 else {}
