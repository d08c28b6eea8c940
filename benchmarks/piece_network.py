"""Fits the small network over an encoder's pieces (`osler.kb.encoders.network`), with torch.

`fit_network` gives layers whose inputs are the pieces as they come, `pack` what ships of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from osler.kb.encoders.network import LAYERS, PieceNetwork, read_network

HEADS = 8
RATE, WARMING = 1e-3, 50
DROPPED, PIECES_DROPPED, SMOOTHED = 0.2, 0.1, 0.02
SORTED = 1024
"""Texts that are put by length together, so that little is padded."""

Layers = list[tuple[Any, Any]]
"""Weights (in, out) and bias of `LAYERS`."""


@dataclass(frozen=True)
class Fitting:
    """How long to learn, and what from."""

    units: int = 64
    epochs: int = 6
    batch: int = 64
    seed: int = 0


class LearningNetwork:
    """The network as it is while it learns."""

    def __init__(self, width: int, units: int, ends: int) -> None:
        self.heads = nn.Linear(width, HEADS)
        self.units = nn.Linear(width * HEADS, units)
        self.ends = nn.Linear(units, ends)

    def parameters(self) -> list[Tensor]:
        return [one for layer in (self.heads, self.units, self.ends) for one in layer.parameters()]

    def judge(self, pieces: Tensor, there: Tensor) -> Tensor:
        shares = self.heads(pieces).masked_fill(~there[:, :, None], -1e4).softmax(1)
        brought = torch.einsum("bth,btd->bhd", shares, pieces).flatten(1)
        active = torch.relu(self.units(nn.functional.dropout(brought, DROPPED)))
        logits: Tensor = self.ends(nn.functional.dropout(active, DROPPED))
        return logits


@dataclass(frozen=True)
class FittedNetwork:
    """The layers, for pieces as they come."""

    layers: Layers

    def name_arrays(self, name: str) -> dict[str, Any]:
        """What is kept of it."""
        arrays: dict[str, Any] = {}
        for layer, (weights, bias) in zip(LAYERS, self.layers, strict=True):
            arrays |= name_layer(f"{name}_{layer}", weights, bias)
        return arrays

    def pack(self) -> PieceNetwork:
        """As it is read again."""
        return read_network(self.name_arrays(""), "")

    def less_first(self) -> FittedNetwork:
        """How much more each end has than the first, which is left out."""
        *others, (weights, bias) = self.layers
        return FittedNetwork([*others, (weights[:, 1:] - weights[:, :1], bias[1:] - bias[0])])


def name_layer(name: str, weights: Any, bias: Any) -> dict[str, Any]:
    """Weights of a byte each with the scale of each column, and the bias."""
    scale = np.abs(weights).max(axis=0) / 127
    return {
        name: np.rint(weights / scale).astype(np.int8),
        f"{name}_scale": scale.astype(np.float32),
        f"{name}_bias": bias.astype(np.float32),
    }


def fit_network(
    texts: Sequence[Any], kinds: Sequence[int], counts: Any, fitting: Fitting | None = None
) -> FittedNetwork:
    """Fits to the pieces of texts, each (pieces, width), of kinds and weights."""
    return fit_groups(texts, np.array(kinds)[:, None], [max(kinds) + 1], counts, fitting)


def fit_groups(
    texts: Sequence[Any],
    kinds: Any,
    sizes: Sequence[int],
    counts: Any,
    fitting: Fitting | None = None,
) -> FittedNetwork:
    """Fits to texts of a kind in each group, (texts, groups); -1 where a group says nothing.
    What comes out is group after group."""
    chosen = fitting or Fitting()
    torch.manual_seed(chosen.seed)
    chance = np.random.default_rng(0)
    every = np.concatenate(texts[::5]).astype(np.float32)
    mean, spread = every.mean(axis=0), every.std(axis=0) + 1e-3
    labels, weighed = torch.tensor(kinds), torch.tensor(counts, dtype=torch.float32)
    net = LearningNetwork(len(mean), chosen.units, sum(sizes))
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-2)
    steps = chosen.epochs * len(list(_batches(texts, chosen.batch, np.random.default_rng(0))))
    step = 0
    for _ in range(chosen.epochs):
        for some in _batches(texts, chosen.batch, chance):
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1, (step + 1) / WARMING) * (1 - step / steps)
            pieces, there = _pad([texts[at] for at in some], mean, spread)
            there &= torch.rand(there.shape) >= PIECES_DROPPED
            there[:, 0] = True
            told = net.judge(pieces, there).split(list(sizes), 1)
            each = torch.stack(
                [
                    nn.functional.cross_entropy(
                        one, own, reduction="none", label_smoothing=SMOOTHED, ignore_index=-1
                    )
                    for one, own in zip(told, labels[some].T, strict=True)
                ]
            )
            optimiser.zero_grad()
            (each.sum(0) * weighed[some]).mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            step += 1
    return FittedNetwork(list(_unscale(net, mean, spread)))


def _batches(texts: Sequence[Any], size: int, chance: np.random.Generator) -> Iterator[Any]:
    rows, batches = chance.permutation(len(texts)), []
    for part in np.array_split(rows, max(1, len(rows) // SORTED)):
        by_length = part[np.argsort([len(texts[at]) for at in part], kind="stable")]
        batches += [by_length[at : at + size] for at in range(0, len(by_length), size)]
    return (batches[at] for at in chance.permutation(len(batches)))


def _pad(texts: Sequence[Any], mean: Any, spread: Any) -> tuple[Tensor, Tensor]:
    longest = max(map(len, texts))
    pieces = np.zeros((len(texts), longest, len(mean)), np.float32)
    there = np.zeros((len(texts), longest), bool)
    for row, text in enumerate(texts):
        pieces[row, : len(text)] = (text - mean) / spread
        there[row, : len(text)] = True
    return torch.from_numpy(pieces), torch.from_numpy(there)


def _unscale(net: LearningNetwork, mean: Any, spread: Any) -> Iterator[tuple[Any, Any]]:
    """The layers for pieces as they come."""
    (heads, heads_bias), (units, units_bias), ends = (
        (layer.weight.detach().numpy().T, layer.bias.detach().numpy())
        for layer in (net.heads, net.units, net.ends)
    )
    turned = heads / spread[:, None]
    yield turned, heads_bias - mean @ turned
    often, wide = np.tile(mean, HEADS), np.tile(spread, HEADS)
    turned = units / wide[:, None]
    yield turned, units_bias - often @ turned
    yield ends
