r"""The span of the answer in a reply, and the model's confidence in it.

Spans are cut by characters, never by token strings: what a tokenizer makes of
`\boxed{抗坏血酸}` is its own affair. The confidence of a span is the *least* probability of
its tokens (KAG-Thinker §3.2): a mean would hide one unsure token among many sure ones.

Offsets of tokens are found from their bytes, safe for tokens that are part of a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from operator import eq
from typing import Any

from osler.llm.core.base import TokenScore


def decode_pieces(pieces: Sequence[bytes]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Returns the pieces' text, and the span `[start, end)` of characters that each piece touches.

    A piece that is only part of a character gets the whole character's span, so a
    span of text always finds every token that made it. Bytes that never become a
    character (a reply cut in its middle) are left out of the text and get an
    empty span at its end.
    """
    whole = b"".join(pieces)
    # "ignore", not "replace": a mark in a byte's place would move every span behind it.
    text = whole.decode("utf-8", errors="ignore")
    owner = _character_indexes(whole, len(text))
    spans, at = [], 0
    for piece in pieces:
        touched = owner[at : at + len(piece)]
        spans.append((touched[0], touched[-1] + 1) if touched else (len(text), len(text)))
        at += len(piece)
    return text, tuple((min(s, len(text)), min(e, len(text))) for s, e in spans)


def _character_indexes(whole: bytes, count: int) -> list[int]:
    """Returns each byte's character index; of stray bytes, the next character's."""
    owner: list[int] = []
    index = 0
    # Each stray byte becomes a surrogate of its own, and nothing else does.
    for char in whole.decode("utf-8", errors="surrogateescape"):
        if "\ud800" <= char <= "\udfff":
            owner.append(min(index, count))
        else:
            owner += [index] * len(char.encode())
            index += 1
    return owner


def shared_prefix(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Counts the characters, or tokens, that both begin with."""
    alike = enumerate(map(eq, one, other))
    return next((i for i, same in alike if not same), min(len(one), len(other)))


def token_scores(
    text: str, spans: Sequence[tuple[int, int]], logprobs: Sequence[float]
) -> tuple[TokenScore, ...]:
    """Makes the tokens of a text from their spans and log-probabilities."""
    return tuple(
        TokenScore(text[start:end], start, end, logprob)
        for (start, end), logprob in zip(spans, logprobs, strict=True)
    )


Span = tuple[int, int]
"""`text[start:end]`."""

_BOXED = re.compile(r"\\boxed\s*\{")
_TYPE = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf))\s*\{")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_UNTOLD = -1_000.0
"""Servers write -9999 for a token that is not among those they tell; no model is so unsure."""


@dataclass(frozen=True, slots=True)
class Probability:
    """A probability, or an upper bound of one."""

    value: float
    """In [0, 1]."""
    exact: bool = True
    """False: an upper bound, since some token of the span has no log-probability of its own."""


def tagged_span(text: str, tag: str) -> Span | None:
    """Finds the last whole `<tag>…</tag>`, trimmed; None without one.

    `</tag>…</tag>`, which models also write, counts where there is no other.
    """
    name = re.escape(tag)
    for opening in (f"<{name}>", f"</{name}>"):
        # The look-ahead keeps a match from running over a tag that was never closed.
        matches = list(re.finditer(rf"{opening}((?:(?!</?{name}>).)*)</{name}>", text, re.DOTALL))
        if matches:
            return _trim_span(text, *matches[-1].span(1))
    return None


def boxed_span(text: str, within: Span | None = None) -> Span | None:
    r"""Finds the inside of the last `\boxed{…}` that begins in `within`; braces may be nested.

    Escaped braces are text. A box that is never closed is none. None without one. Of
    `\boxed{\text{a}}` it is `a`: the type says nothing, so its tokens weigh nothing.
    """
    *_, last = None, *boxed_spans(text, within)
    return last


def boxed_spans(text: str, within: Span | None = None) -> Iterator[Span]:
    """The insides of all boxes that `boxed_span` chooses from, as they begin."""
    start, end = within or (0, len(text))
    for opening in _BOXED.finditer(text, start, end):
        closing = _closing_brace(text, opening.end(), end)
        if closing is not None:
            yield _untyped_span(text, _trim_span(text, opening.end(), closing))


def strip_types(text: str, span: Span) -> str:
    r"""Returns the text of the span without LaTeX types: `5\text{ mg}` becomes "5 mg"."""
    text_left = text[slice(*span)]
    at = 0
    while opening := _TYPE.search(text_left, at):
        closing = _closing_brace(text_left, opening.end(), len(text_left))
        if closing is None:
            at = opening.end()
            continue
        inner = text_left[opening.end() : closing]
        text_left = text_left[: opening.start()] + inner + text_left[closing + 1 :]
        at = opening.start()
    return text_left


def answer_span(text: str) -> Span | None:
    r"""Finds the last `\boxed{…}` of the last `<answer>`; without such a tag, of the whole text."""
    return boxed_span(text, tagged_span(text, "answer"))


def span_tokens(tokens: Sequence[TokenScore], span: Span) -> tuple[TokenScore, ...]:
    """Returns the tokens of the span, with those that reach over an end of it.

    A byte-pair token begins with the space before its word, and so before the span.
    """
    start, end = span
    return tuple(token for token in tokens if token.start < end and token.end > start)


def least_probability(tokens: Sequence[TokenScore], span: Span) -> Probability | None:
    """Returns the least probability of the tokens that overlap the span; None where none does, or
    for an empty span.

    A token that reaches over an end of the span (`}</`) counts, as do all the tokens of
    one character. A token that the server did not tell is bounded by what the told ones
    leave over, and by the least of them; a character that no token covers is sure of
    nothing, so that the value is an upper bound, too.
    """
    start, end = span
    # Half-open intervals overlap where each begins before the other ends.
    inside = span_tokens(tokens, span)
    if not inside or start >= end:
        return None
    covered = {i for token in inside for i in range(token.start, token.end)}
    reported = all(token.logprob > _UNTOLD for token in inside)
    exact = reported and covered >= set(range(start, end))
    return Probability(min(map(_token_probability, inside)), exact)


def _token_probability(token: TokenScore) -> float:
    if token.logprob > _UNTOLD:
        return min(1.0, exp(token.logprob))
    others = [exp(logprob) for _, logprob in token.top if logprob > _UNTOLD]
    return max(0.0, min([1.0 - sum(others), *others]))


def _closing_brace(text: str, start: int, end: int) -> int | None:
    """Finds where the brace that is open at `start` closes."""
    depth = 1
    for brace in _BRACE.finditer(text, start, end):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0:
            return brace.start()
    return None


def _untyped_span(text: str, span: Span) -> Span:
    r"""Narrows the span to the `\text{…}` that fills it, and to the next; else keeps it."""
    start, end = span
    opening = _TYPE.match(text, start, end)
    if opening is None or _closing_brace(text, opening.end(), end) != end - 1:
        return span
    return _untyped_span(text, _trim_span(text, opening.end(), end - 1))


def _trim_span(text: str, start: int, end: int) -> Span:
    inner = text[start:end]
    left = len(inner) - len(inner.lstrip())
    return (start + left, start + len(inner.rstrip())) if left < len(inner) else (start, start)
