"""The next token of a reply, chosen from logits, and the reply as it grows.

Texts, token ids and bytes are converted into each other for every fast tokenizer's alphabet.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from osler.errors import ModelError
from osler.llm.core.base import Sampling, TokenScore
from osler.llm.core.spans import decode_pieces, shared_prefix
from osler.llm.transformers.hub import load_libraries

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


class GrowingReply:
    """The tokens of a reply as they come, and the text they make so far."""

    def __init__(self, pieces: TokenCodec, stop: Sequence[str]) -> None:
        self._pieces = pieces
        self._stop = stop
        self.ids: list[int] = []
        self._spelt: list[bytes] = []
        self._told: list[tuple[float, list[tuple[int, float]]]] = []

    def add_token(self, token: int, logprob: float, top: list[tuple[int, float]]) -> None:
        self.ids.append(token)
        self._spelt.append(self._pieces.bytes_of(token))
        self._told.append((logprob, top))

    def is_stopped(self) -> bool:
        return any(stop in self._joined_text for stop in self._stop)

    @property
    def _joined_text(self) -> str:
        return b"".join(self._spelt).decode("utf-8", errors="ignore")

    @property
    def text(self) -> str:
        """The text without the first stop string and what follows it."""
        whole = self._joined_text
        stops_at = [at for stop in self._stop if (at := whole.find(stop)) >= 0]
        return whole[: min(stops_at)] if stops_at else whole

    def token_scores(self) -> tuple[TokenScore, ...]:
        """Scores the tokens of the text alone, not of a stop string."""
        text, (_, spans) = self.text, decode_pieces(self._spelt)
        return tuple(
            TokenScore(text[start:end], start, min(end, len(text)), logprob, self._name_tokens(top))
            for (start, end), (logprob, top) in zip(spans, self._told, strict=True)
            if start < len(text)
        )

    def _name_tokens(self, top: Sequence[tuple[int, float]]) -> tuple[tuple[str, float], ...]:
        return tuple(
            (self._pieces.bytes_of(token).decode("utf-8", errors="replace"), logprob)
            for token, logprob in top
        )


_Entry = tuple[float, list[tuple[int, float]]]
"""Log-probability of the chosen token; the likeliest tokens and theirs."""


def make_chooser(sampling: Sampling, device: Any) -> Callable[[Any], tuple[int, _Entry]]:
    """Makes the function from logits to the next token and its raw log-probabilities."""
    torch, _ = load_libraries()
    chance = torch.Generator(device=device).manual_seed(sampling.seed)

    def choose_token(logits: Any) -> tuple[int, _Entry]:
        raw = logits.float().log_softmax(-1)
        if sampling.temperature > 0:
            # Log-probabilities differ from logits by a constant, which the softmax cancels.
            weights = (raw / sampling.temperature).softmax(-1)
            token = int(torch.multinomial(weights, 1, generator=chance))
        else:
            token = int(raw.argmax())
        values, indices = raw.topk(min(sampling.top, len(raw)))
        top = list(zip(indices.tolist(), values.tolist(), strict=True))
        return token, (min(0.0, float(raw[token])), top)

    return choose_token


_STEP = 256
"""Tokens read at once; between two steps a call may be given up."""

Check = Callable[[], None]
"""Called between steps; raises where the call was given up."""


class PrefixCache:
    """The cache of one conversation, or of one query that texts are scored after.

    A new text keeps the longest prefix that it shares with the last one: a push reads
    what was pushed, a pop reads nothing. Models that cannot forget single tokens (a full
    sliding window, a recurrent state) read a text anew unless it only grows.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._cache: Any = None
        self._ids: list[int] = []
        self._wrapped = hasattr(model, "get_base_model")
        inner = model.get_base_model() if self._wrapped else model
        self._keeps = "logits_to_keep" in inspect.signature(inner.forward).parameters

    def keep_prefix(self, ids: Sequence[int]) -> int:
        """Forgets all but the longest prefix of `ids`; returns its length in tokens."""
        shared = shared_prefix(self._ids, ids)
        # What cannot be cropped (a sliding window, a recurrent state) is read anew.
        if shared < len(self._ids) and not self._crop_cache(shared):
            shared = 0
        if shared == 0:
            _, transformers = load_libraries()
            self._cache = transformers.DynamicCache(config=self._model.config)
        self._ids = list(ids[:shared])
        return shared

    def read(self, ids: Sequence[int], *, keep: int, check: Check) -> Iterator[Any]:
        """Reads `ids` after the cached ones; yields logits at the last `keep` of them, in blocks.

        Nothing stays cached of a reading that does not end.
        """
        # Emptied first: where the reading is given up, the cache holds nobody knows what.
        cached, self._ids = self._ids, []
        wanted = len(ids) - keep
        for start in range(0, len(ids), _STEP):
            check()
            block = ids[start : start + _STEP]
            rows = min(len(block), start + len(block) - wanted)
            logits = self._forward_block(block, max(1, rows))
            cached = [*cached, *block]
            if rows > 0:
                yield logits[0, -rows:]
        self._ids = cached

    def read_attention(self, ids: Sequence[int]) -> tuple[Any, Any]:
        """Returns logits at each of `ids`, and the last layer's attention from each to all before
        it, as a mean over heads. The cache stays as it was.
        """
        torch, _ = load_libraries()
        inner = self._model.get_base_model() if self._wrapped else self._model
        usual = inner.config._attn_implementation
        inner.set_attn_implementation("eager")  # faster ones do not keep the weights
        try:
            with torch.no_grad():
                output = self._model(
                    input_ids=torch.tensor([list(ids)], device=self._model.device),
                    past_key_values=copy.deepcopy(self._cache),
                    use_cache=True,
                    output_attentions=True,
                )
        finally:
            inner.set_attn_implementation(usual)
        return output.logits[0], output.attentions[-1][0].float().mean(0)

    def _forward_block(self, block: Sequence[int], rows: int) -> Any:
        torch, _ = load_libraries()
        kept = {"logits_to_keep": rows} if self._keeps else {}
        with torch.no_grad():
            return self._model(
                input_ids=torch.tensor([list(block)], device=self._model.device),
                past_key_values=self._cache,
                use_cache=True,
                **kept,
            ).logits

    def _crop_cache(self, length: int) -> bool:
        """Cuts the cache down to `length` tokens; returns False where it cannot be."""
        cache = self._cache
        if not length or cache is None or not cache.is_croppable or any(cache.is_sliding):
            return False
        cache.crop(length - len(self._ids))
        return True
