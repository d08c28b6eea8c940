"""The span that answers a question of no known relation: of the kind its question word asks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from osler.methods.kag.text_route.relations import DATE, NAME
from osler.methods.kag.text_route.spans import TextSpan, clean_value, plain_name
from osler.retrieve.words import content_terms
from osler.text import split_sentences

LEAST = 0.5
"""Least share of the question's words of content in the sentence and the title that answer."""
_NUMBER = (
    r"\d[\d,.]*(?:[ -](?:%|percent|million|billion|thousand|miles|km|years?|inches|hours?|days?"
    r"|mg|g|ml))?"
)
_TYPES: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (re.compile(r"(?i)\b(?:when|(?:what|which) (?:year|date|day))\b"), re.compile(DATE)),
    (re.compile(r"(?i)\bhow (?:many|much|long|old|far|tall|big|high)\b"), re.compile(_NUMBER)),
    (re.compile(r"(?i)\b(?:who|whose|whom|where|what|which)\b"), re.compile(NAME)),
)


def find_open_span(question: str, texts: Sequence[str]) -> tuple[int, TextSpan] | None:
    """The text's index and the span; `None` where no sentence is near enough."""
    kinds = [span for asks, span in _TYPES if asks.search(question)]
    if not kinds:
        return None
    terms = set(content_terms(question))
    named = plain_name(question)
    best: tuple[float, int, TextSpan] | None = None
    for at, text in enumerate(texts):
        for start, end in split_sentences(text):
            sentence = text[start:end]
            shared = terms & set(content_terms(sentence))
            score = len(shared) / max(len(terms), 1) - 0.01 * at
            if score < LEAST or (best is not None and score <= best[0]):
                continue
            value = _nearest_value(kinds[0], sentence, shared, named)
            if value:
                best = score, at, TextSpan(value, start, end)
    return None if best is None else (best[1], best[2])


def _nearest_value(
    kind: re.Pattern[str], sentence: str, shared: set[str], named: str
) -> str | None:
    """The span of the kind that stands nearest to the words shared with the question."""
    folded = sentence.casefold()
    places = [folded.find(term) for term in shared if term in folded] or [0]
    found = [
        (min(abs(match.start() - place) for place in places), clean_value(match[0]))
        for match in kind.finditer(sentence)
        if plain_name(match[0]) not in named
    ]
    return min(found)[1] if found else None
