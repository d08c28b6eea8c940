"""Scoring one token a step, by a logit bias that no token resists.

The engine's server has no call that scores a given text, but it reports what the raw model
thought of a token that it is forced to take. That is slow (a step a token) and needs nothing
but the server: the oracle of `batch_scoring.py`, and what stands in for it.

A token that is only part of a character is never reported as the chosen one, so such tokens
are looked up among the likeliest, 300 first, all of them last.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from osler.errors import ModelError
from osler.llm.local.engine import LlamaEngine
from osler.llm.local.token_scores import TextScores, Tokens

_FORCE = 1_000.0
"""Logit bias that no raw logit reaches."""
_LOOKUPS = (300, 3_000, 1_000_000)
"""Numbers of likeliest tokens to ask for until the wanted one is among them."""


class ForcedScorer:
    """Scores token sequences in one slot of the engine's server."""

    def __init__(
        self,
        engine: LlamaEngine,
        slot: int,
        stop: threading.Event,
        pieces: Mapping[int, bytes],
        plain: int,
    ) -> None:
        """`pieces`: the tokens' bytes; `plain`: any token that is whole characters."""
        self._engine = engine
        self._slot = slot
        self._stop = stop
        self._pieces = pieces
        self._plain = plain
        self._cached = -1

    def score(self, prefix: list[int], texts: Sequence[Tokens]) -> TextScores:
        """Scores each text after the prefix. Raises `ModelError`; `CallStopped` once stopped."""
        # By path, not by token: options of one question begin alike and share what is equal.
        known: dict[Tokens, float] = {}
        if len(texts) > 1:
            # Read alone or behind a long prompt, a token differs by as much as 0.1 nats: after
            # this every text begins from the same cached state, whichever comes first.
            self._force_entry(prefix, self._plain, 1)
        for text in texts:
            for i, token in enumerate(text):
                if text[: i + 1] not in known:
                    known[text[: i + 1]] = self.force_token([*prefix, *text[:i]], token)
        scores = tuple(tuple(known[text[: i + 1]] for i in range(len(text))) for text in texts)
        return TextScores(scores, min(self._cached, len(prefix)))

    def force_token(self, prompt: list[int], token: int) -> float:
        """Returns the raw model's log-probability of `token` after `prompt`."""
        try:
            self._pieces[token].decode("utf-8")
        except UnicodeDecodeError:
            return self.look_up_token(prompt, token)
        entry = self._force_entry(prompt, token, 1)
        if entry["id"] != token:
            raise ModelError(f"{self._engine.name}: the engine did not take the token {token}")
        return float(entry["logprob"])

    def look_up_token(self, prompt: list[int], token: int) -> float:
        """Returns the same, found among the likeliest."""
        for count in _LOOKUPS:
            for entry in self._force_entry(prompt, self._plain, count)["top_logprobs"]:
                if entry["id"] == token:
                    return float(entry["logprob"])
        raise ModelError(f"{self._engine.name}: token {token} has no log-probability")

    def _force_entry(self, prompt: list[int], token: int, count: int) -> Any:
        """Returns the engine's entry of the forced token, and of the `count` likeliest."""
        reply = self._engine.run_request(
            {
                "prompt": prompt,
                "n_predict": 1,
                "n_probs": count,
                "temperature": 0.0,
                "logit_bias": [[token, _FORCE]],
                "id_slot": self._slot,
            },
            self._stop,
        )
        if self._cached < 0:
            self._cached = reply["timings"]["cache_n"]
        return reply["entries"][0]
