"""Conversion between texts, token ids and bytes, for every fast tokenizer's alphabet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from osler.errors import ModelError
from osler.llm.core.align import decode_pieces

Span = tuple[int, int]
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_SPACE = "▁"


class TokenCodec:
    """Text to token ids, and ids to bytes, of a fast tokenizer of transformers."""

    def __init__(self, tokenizer: Any) -> None:
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelError(
                f"{type(tokenizer).__name__} does not reveal the bytes of its tokens",
                fix="use a model with a tokenizer.json",
            )
        self._tokenizer = tokenizer
        decoders = set(_decoder_kinds(json.loads(backend.to_str())["decoder"]))
        self._spelt = _by_bytes if "ByteLevel" in decoders else _by_marks
        self._added: dict[int, bytes] = {
            number: token.content.encode()
            for number, token in backend.get_added_tokens_decoder().items()
        }

    def bytes_of(self, token: int) -> bytes:
        """Returns a token's bytes, of a template's own marks too: some fence off what a model
        thinks.
        """
        # An added token is spelt as it stands, whatever the alphabet of the others is.
        if token in self._added:
            return self._added[token]
        return self._spelt(self._tokenizer.convert_ids_to_tokens(token) or "")

    def token_ids(self, text: str, *, begins: bool = False, special: bool = False) -> list[int]:
        """Encodes a text. `begins`: with the first token that some models want at a text's
        beginning; `special`: a template's own marks in it are tokens.
        """
        return list(self._encode_text(text, begins=begins, special=special)["input_ids"])

    def ids_and_spans(self, text: str, *, special: bool = False) -> tuple[list[int], list[Span]]:
        """Returns ids of a given text, and the characters that each one touches; they tile the
        text. `special`: the model's own marks in it are tokens.

        Tokenizers that put a space before a text, or that change its letters, are asked
        for their own offsets.
        """
        encoded = self._encode_text(text, begins=False, special=special)
        ids = list(encoded["input_ids"])
        spelt, spans = decode_pieces([self.bytes_of(token) for token in ids])
        if spelt == text:
            return ids, list(spans)
        return ids, _tile_offsets(encoded["offset_mapping"], len(text))

    def _encode_text(self, text: str, *, begins: bool, special: bool) -> Any:
        return self._tokenizer(
            text,
            add_special_tokens=begins,
            # A user's text may spell a template's mark, and must not become one.
            split_special_tokens=not special,
            return_offsets_mapping=True,
            return_attention_mask=False,
            verbose=False,
        )


def _tile_offsets(offsets: Sequence[Sequence[int]], length: int) -> list[Span]:
    """Closes holes in offsets: a character that no token claims belongs to the next one."""
    spans, reached = [], 0
    for i, (start, end) in enumerate(offsets):
        last = i == len(offsets) - 1
        spans.append((min(start, reached), length if last else max(end, min(start, reached))))
        reached = max(reached, end)
    return spans


def _decoder_kinds(decoder: Any) -> Iterator[str]:
    if decoder:
        yield decoder["type"]
        for inner in decoder.get("decoders", ()):
            yield from _decoder_kinds(inner)


def _by_bytes(token: str) -> bytes:
    """Decodes GPT-2's alphabet: each character stands for a byte."""
    alphabet = _byte_alphabet()
    return b"".join(bytes([alphabet[c]]) if c in alphabet else c.encode() for c in token)


def _by_marks(token: str) -> bytes:
    """Decodes SentencePiece: a mark for the space, and `<0xE6>` for a byte."""
    if byte := _BYTE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    return token.replace(_SPACE, " ").encode()


@cache
def _byte_alphabet() -> dict[str, int]:
    """Maps printable bytes to themselves, and characters from 256 on to the others."""
    # As in GPT-2's `bytes_to_unicode`: the printable bytes of Latin-1, without the soft hyphen.
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}
