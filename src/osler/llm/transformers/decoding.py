"""The next token of a reply, chosen from logits, and the reply as it grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from osler.llm.core.align import decode_pieces
from osler.llm.core.base import Sampling, TokenScore
from osler.llm.core.token_bytes import TokenCodec
from osler.llm.transformers.hub import load_libraries


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
