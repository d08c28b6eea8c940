"""Character offsets of tokens from their bytes, safe for tokens that are part of a character."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Returns each byte's character index; `count` for stray bytes."""
    owner, index, at = [], -1, 0
    while at < len(whole):
        width = _character_width(whole, at)
        if width == 0:
            owner.append(min(index + 1, count))
            at += 1
            continue
        index += 1
        owner += [index] * width
        at += width
    return owner


def _character_width(whole: bytes, at: int) -> int:
    """Returns the bytes of the valid UTF-8 character that begins at `at`; 0 when none does."""
    # 0xC0 and 0xC1 begin no character; other stray bytes fail to decode below.
    lead = whole[at]
    width = 1 if lead < 0x80 else 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4
    try:
        return width if len(whole[at : at + width].decode("utf-8")) == 1 else 0
    except UnicodeDecodeError:
        return 0


def token_scores(
    text: str, spans: Sequence[tuple[int, int]], logprobs: Sequence[float]
) -> tuple[TokenScore, ...]:
    """Makes the tokens of a text from their spans and log-probabilities."""
    return tuple(
        TokenScore(text[start:end], start, end, logprob)
        for (start, end), logprob in zip(spans, logprobs, strict=True)
    )
