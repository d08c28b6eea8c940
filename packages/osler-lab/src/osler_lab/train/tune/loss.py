"""Training losses: log-probabilities of learnt tokens, and two losses of them.

    SFT (Omni-RAG Eq. 2)   -E log M(P+ | x)
    DPO (Eq. 3-4)          -E log s(r(x, P+) - r(x, P-)), r(x, P) = b log M(P | x) / M_SFT(P | x)

Samples of one batch often begin alike (the same instruction; a pair's whole prompt). That
beginning is read once and its keys and values are shared, so gradients are the same as if each
sample had been read by itself. Logits are made only where something is learnt: a vocabulary of
49,152 words costs a quarter of what all layers do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from osler.llm.transformers.hub import import_extra
from osler_lab.train.tune.encode import EncodedText

SHARED_AT_LEAST = 16
"""Tokens below which a common beginning is not worth a pass of its own."""


class PrefixBatch(NamedTuple):
    """Rows that are read together: what they share, and what follows, padded on the right."""

    shared: Any
    """(1, P) or `None`."""
    rest: Any
    """(rows, S)"""
    learns: Any
    """(rows, S), bool; of `rest`."""

    @property
    def tokens(self) -> int:
        """Tokens that are read, padding included."""
        return int(self.rest.numel()) + (0 if self.shared is None else int(self.shared.shape[1]))


def batch_of(
    rows: Sequence[EncodedText], *, device: Any = "cpu", share: bool = True
) -> PrefixBatch:
    """The rows as tensors. With one row nothing is shared."""
    torch = import_extra("torch")
    common = _common_prefix(rows) if share and len(rows) > 1 else 0
    common = common if common >= SHARED_AT_LEAST else 0
    width = max(len(row) for row in rows) - common
    rest = torch.zeros(len(rows), width, dtype=torch.long)
    learns = torch.zeros(len(rows), width, dtype=torch.bool)
    for place, row in enumerate(rows):
        size = len(row) - common
        rest[place, :size] = torch.tensor(row.tokens[common:])
        learns[place, :size] = torch.tensor(row.learns[common:])
    shared = torch.tensor([rows[0].tokens[:common]], device=device) if common else None
    return PrefixBatch(shared, rest.to(device), learns.to(device))


def _common_prefix(rows: Sequence[EncodedText]) -> int:
    """Tokens that all rows begin with; what is learnt, and the token before it, is not shared."""
    # The token before the first learnt one predicts it, so its logits are needed per row.
    most = min(row.learns.index(True) - 1 if True in row.learns else len(row) - 1 for row in rows)
    first = rows[0].tokens
    for place in range(max(0, most)):
        if any(row.tokens[place] != first[place] for row in rows):
            return place
    return max(0, most)


def token_logprobs(model: Any, batch: PrefixBatch) -> tuple[Any, Any]:
    """Log-probability (natural, float32) of every learnt token, and the row that it is of.

    Padding stands on the right, behind all that is read, so no mask is needed.
    """
    torch = import_extra("torch")
    # From the column before the first learnt token to the one before the last: logits at i predict
    # token i + 1.
    columns = batch.learns.any(0).nonzero()[:, 0]
    kept = torch.arange(int(columns[0]) - 1, int(columns[-1]), device=batch.rest.device)
    logits = _compute_logits(model, batch, kept)
    learnt = batch.learns[:, kept + 1]
    words = batch.rest[:, kept + 1][learnt]
    logprobs = -torch.nn.functional.cross_entropy(logits[learnt].float(), words, reduction="none")
    rows = torch.arange(len(learnt), device=learnt.device)[:, None].expand_as(learnt)[learnt]
    return logprobs, rows


def _compute_logits(model: Any, batch: PrefixBatch, kept: Any) -> Any:
    if batch.shared is None:
        return model(input_ids=batch.rest, use_cache=False, logits_to_keep=kept).logits
    cache = import_extra("transformers").DynamicCache(config=model.config)
    model(input_ids=batch.shared, past_key_values=cache, use_cache=True, logits_to_keep=1)
    for layer in cache.layers:
        # A view: the shared keys are stored once, and gradients of all rows sum up in them.
        layer.keys = layer.keys.expand(len(batch.rest), -1, -1, -1)
        layer.values = layer.values.expand(len(batch.rest), -1, -1, -1)
    return model(
        input_ids=batch.rest, past_key_values=cache, use_cache=True, logits_to_keep=kept
    ).logits


def row_logprobs(model: Any, batch: PrefixBatch) -> Any:
    """Sums log M(reply | prompt) of every row: (rows,)."""
    logprobs, rows = token_logprobs(model, batch)
    # log M(P | x) = sum of the learnt tokens' log-probabilities (Eq. 2).
    return logprobs.new_zeros(len(batch.rest)).index_add(0, rows, logprobs)


def sft_sum(model: Any, batch: PrefixBatch) -> Any:
    """The negative log-likelihood of all learnt tokens of the batch, in nats."""
    return -token_logprobs(model, batch)[0].sum()


def dpo_losses(chosen: Any, rejected: Any, before: Any, *, beta: float) -> tuple[Any, Any]:
    """Computes each pair's loss and its margin r(x, P+) - r(x, P-).

    `chosen`, `rejected` are log M of the two replies, `before` (pairs, 2) those of the reference.
    """
    # Eq. 4: r(x, P) = beta * log(M(P | x) / M_SFT(P | x)); Eq. 3: -log sigmoid(r+ - r-).
    margin = beta * ((chosen - before[:, 0]) - (rejected - before[:, 1]))
    return -import_extra("torch").nn.functional.logsigmoid(margin), margin


def perplexity(model: Any, rows: Sequence[EncodedText]) -> float:
    """Perplexity: e to the mean negative log-likelihood of all learnt tokens, row by row."""
    torch = import_extra("torch")
    device, training = next(model.parameters()).device, model.training
    model.eval()
    nats = 0.0
    try:
        with torch.no_grad():
            for row in rows:
                nats += float(sft_sum(model, batch_of([row], device=device)))
    finally:
        model.train(training)
    return math.exp(nats / sum(row.learnt for row in rows))
