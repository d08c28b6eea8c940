"""The network: units → a score for every span and type (after Efficient GlobalPointer).

Like W2NER it scores a grid of unit pairs, so that names may lie within each other; unlike it,
a cell says at once that a name of a type begins and ends there. Units are known by hashes of
themselves, their beginning, end and shape: there is no vocabulary, and no word is unknown.
A bidirectional LSTM reads them. All of it fits a CPU.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osler.llm.transformers.hub import import_extra
from osler.text import is_cjk

FEATURES = 5
"""Hashes of a unit."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network: all that is needed to build it anew."""

    types: tuple[str, ...]
    buckets: int = 1 << 14
    width: int = 64
    """Numbers of an embedding, and of each direction of the LSTM."""
    head: int = 24
    """Numbers of a unit as the beginning, or the end, of a type."""
    longest: int = 24
    """Units of a name."""
    dropout: float = 0.3

    @property
    def parameters(self) -> int:
        """Numbers that are learnt; biases of the linear layers with them."""
        lstm = 2 * 4 * (self.width * self.width * 2 + 2 * self.width)
        heads = (2 * self.width + 1) * 2 * len(self.types) * self.head
        return self.buckets * self.width + lstm + heads + len(self.types) * (self.longest + 1)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A stretch of a text as the network reads it."""

    places: tuple[tuple[int, int], ...]
    """Start and end of its units in the text."""
    hashes: tuple[tuple[int, ...], ...]


def of_places(text: str, places: Sequence[tuple[int, int]], shape: Shape) -> Sentence:
    """Makes a sentence of the units at these places of the text."""
    hashes = tuple(_hash_features(text[start:end], shape.buckets) for start, end in places)
    return Sentence(tuple(places), hashes)


def _hash_features(unit: str, buckets: int) -> tuple[int, ...]:
    """Hashes a unit's features. Bucket 0 is padding, 1 a word that is hidden while training."""
    low = unit.casefold()
    form = "".join(_char_kind(char) for char in unit[:6])
    # Word, prefix, two suffixes, shape; the letter in front keeps the kinds apart.
    features = (f"w{low}", f"a{low[:3]}", f"z{low[-3:]}", f"y{low[-2:]}", f"f{form}")
    # crc32, not hash(): Python's hash differs from process to process, a saved model must not.
    return tuple(2 + zlib.crc32(one.encode()) % (buckets - 2) for one in features)


def _char_kind(char: str) -> str:
    if is_cjk(char):
        return "c"
    if char.isdigit():
        return "0"
    return ("X" if char.isupper() else "x") if char.isalpha() else char


def build_network(shape: Shape) -> Any:
    """The network, with weights of chance. Raises `ModelError` without the extra `train`."""
    torch = import_extra("torch")
    nn = torch.nn

    class SpanNetwork(nn.Module):  # type: ignore[misc,name-defined]  # torch is imported lazily
        """Hashes and lengths → scores [batch, type, begin, end]; impossible cells are -inf."""

        def __init__(self) -> None:
            super().__init__()
            kinds = len(shape.types)
            self.embedding = nn.Embedding(shape.buckets, shape.width, padding_idx=0)
            self.lstm = nn.LSTM(shape.width, shape.width, batch_first=True, bidirectional=True)
            self.dropout = nn.Dropout(shape.dropout)
            self.heads = nn.Linear(2 * shape.width, 2 * kinds * shape.head)
            self.widths = nn.Parameter(torch.zeros(kinds, shape.longest))
            # Names are rare among spans: a start below 0 spares the first epochs from unlearning.
            self.bias = nn.Parameter(torch.full((kinds,), -2.0))

        def forward(self, hashes: Any, lengths: Any) -> Any:
            batch, most, _ = hashes.shape
            felt = self.dropout(self.embedding(hashes).sum(2))
            packed = nn.utils.rnn.pack_padded_sequence(
                felt, lengths, batch_first=True, enforce_sorted=False
            )
            read, _ = nn.utils.rnn.pad_packed_sequence(
                self.lstm(packed)[0], batch_first=True, total_length=most
            )
            heads = self.heads(self.dropout(read))
            begin, end = heads.view(batch, most, 2, len(shape.types), shape.head).unbind(2)
            # Begin i and end j of type k by a dot product, scaled as attention is (1/sqrt(d)).
            scores = torch.einsum("bikd,bjkd->bkij", begin, end) / shape.head**0.5
            return self._possible(scores, lengths)

        def _possible(self, scores: Any, lengths: Any) -> Any:
            """Adds the score of a name's length, and masks spans that cannot be names: they end
            before they begin, leave the sentence, or are too long."""
            most = scores.shape[-1]
            place = torch.arange(most)
            # Row i, column j: j - i, the length of the span less one.
            apart = place[None, :] - place[:, None]
            known = (apart >= 0) & (apart < shape.longest)
            width = self.widths[:, apart.clamp(0, shape.longest - 1)]
            inside = place[None, :] < lengths[:, None]
            valid = known[None] & inside[:, None, :] & inside[:, :, None]
            scores = scores + width[None] + self.bias[None, :, None, None]
            return scores.masked_fill(~valid[:, None], float("-inf"))

    return SpanNetwork()


def batch_sentences(sentences: Sequence[Sentence]) -> tuple[Any, Any]:
    """Returns hashes, padded with zeros, and lengths. No sentence may be empty."""
    torch = import_extra("torch")
    most = max(len(one.places) for one in sentences)
    hashes = torch.zeros(len(sentences), most, FEATURES, dtype=torch.long)
    for n, one in enumerate(sentences):
        hashes[n, : len(one.places)] = torch.tensor(one.hashes)
    return hashes, torch.tensor([len(one.places) for one in sentences])


def loss_of(scores: Any, gold: Any) -> Any:
    """Multi-label softmax (GlobalPointer): log(1 + Σ e^s of wrong) + log(1 + Σ e^-s of right).

    Of each type and sentence, as a mean. `gold` is 1 where a name stands; a cell at -inf
    must not be.
    """
    torch = import_extra("torch")
    scores, gold = scores.flatten(2), gold.flatten(2).bool()
    # e^0 = 1 of the formula: the threshold that right spans lie above and wrong ones below.
    nothing = torch.zeros_like(scores[..., :1])
    wrong = torch.cat([scores.masked_fill(gold, float("-inf")), nothing], -1).logsumexp(-1)
    right = torch.cat([(-scores).masked_fill(~gold, float("-inf")), nothing], -1).logsumexp(-1)
    return (wrong + right).mean()
