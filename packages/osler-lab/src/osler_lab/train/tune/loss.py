"""Training losses: log-probabilities of learnt tokens, and two losses of them.

    SFT (Omni-RAG Eq. 2)   -E log M(P+ | x)
    DPO (Eq. 3-4)          -E log s(r(x, P+) - r(x, P-)), r(x, P) = b log M(P | x) / M_SFT(P | x)

Samples of one batch often begin alike (the same instruction; a pair's whole prompt). That
beginning is read once and its keys and values are shared, so gradients are the same as if each
sample had been read by itself. Logits are made only where something is learnt: a vocabulary of
49,152 words costs a quarter of what all layers do.

An `Objective` is a loss as the training loop asks for it: of a micro-batch, to be summed over a
step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from osler.llm.transformers.hub import import_extra
from osler_lab.train.tune.encode import EncodedPair, EncodedText

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
    with _reading(model) as device:
        nats = sum(float(sft_sum(model, batch_of([row], device=device))) for row in rows)
    return math.exp(nats / sum(row.learnt for row in rows))


Inputs: TypeAlias = dict[str, Any]
"""A micro-batch as tensors; what a loop may move to another device."""


class Objective(Protocol):
    """Loss of a step: `total` over `items`, whatever micro-batches it was worked in."""

    def inputs(self, rows: Sequence[Any]) -> Inputs: ...
    def items(self, inputs: Inputs) -> int: ...
    def total(self, model: Any, inputs: Inputs) -> tuple[Any, dict[str, float]]:
        """The summed loss, and sums of figures for the log."""


@dataclass(frozen=True)
class ReplyLikelihood:
    """SFT (Eq. 2): replies become likely. A step's loss is the mean over its learnt tokens.

    Eq. 2 has the mean over samples; with AdamW a constant factor changes nothing.
    """

    share: bool = True

    def inputs(self, rows: Sequence[EncodedText]) -> Inputs:
        return {**batch_of(rows, share=self.share)._asdict(), "samples": len(rows)}

    def items(self, inputs: Inputs) -> int:
        return int(inputs["learns"].sum())

    def total(self, model: Any, inputs: Inputs) -> tuple[Any, dict[str, float]]:
        loss = sft_sum(model, _as_batch(inputs))
        return loss, {"nats_a_sample": float(loss.detach()) / inputs["samples"]}


@dataclass(frozen=True, slots=True)
class ReferencedPair:
    """A pair of replies with their log-probabilities under the reference."""

    pair: EncodedPair
    before: tuple[float, float]

    def __len__(self) -> int:
        return len(self.pair)


@dataclass(frozen=True)
class PreferenceGain:
    """DPO (Eq. 3-4): the better reply gains. A step's loss is the mean over its pairs."""

    beta: float
    share: bool = True

    def inputs(self, rows: Sequence[ReferencedPair]) -> Inputs:
        both = [text for row in rows for text in (row.pair.chosen, row.pair.rejected)]
        before = import_extra("torch").tensor([row.before for row in rows])
        return {**batch_of(both, share=self.share)._asdict(), "before": before}

    def items(self, inputs: Inputs) -> int:
        return len(inputs["before"])

    def total(self, model: Any, inputs: Inputs) -> tuple[Any, dict[str, float]]:
        # Rows alternate: the chosen reply, then the rejected one of each pair.
        now = row_logprobs(model, _as_batch(inputs)).view(-1, 2)
        losses, margin = dpo_losses(now[:, 0], now[:, 1], inputs["before"], beta=self.beta)
        figures = {"margin": margin.detach().mean(), "accuracy": (margin > 0).float().mean()}
        return losses.sum(), {name: float(value) for name, value in figures.items()}


def _as_batch(inputs: Inputs) -> PrefixBatch:
    return PrefixBatch(inputs["shared"], inputs["rest"], inputs["learns"])


def reference_logprobs(
    model: Any, pairs: Sequence[EncodedPair], *, share: bool = True, progress: Any = None
) -> list[tuple[float, float]]:
    """Computes log M of both replies of every pair, by the model as it is now.

    Before the first step the policy is the reference (Eq. 4), so this is all that is ever
    needed of it: no second copy of the weights and no second pass a step.
    """
    logprobs = []
    with _reading(model) as device:
        for number, pair in enumerate(pairs, 1):
            batch = batch_of((pair.chosen, pair.rejected), device=device, share=share)
            chosen, rejected = row_logprobs(model, batch).tolist()
            logprobs.append((chosen, rejected))
            if progress:
                progress("reference", number, len(pairs))
    return logprobs


@contextmanager
def _reading(model: Any) -> Iterator[Any]:
    """The model as it is asked, not trained, until the block ends; yields its device."""
    training = model.training
    model.eval()
    try:
        with import_extra("torch").no_grad():
            yield next(model.parameters()).device
    finally:
        model.train(training)
