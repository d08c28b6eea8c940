"""The pair model as an ONNX graph: the packaged encoder with an expert's deltas and head.

The graph reads one pair, ids and segments of shape (1, pieces), and gives one logit. As in
`osler.kb.encoders.minilm` there is no padding, so a score does not depend on its neighbours.

The changes are packed in three bits a number, so that tuned layers can be shipped. A row is rounded
to eight levels, `(code - 3.5) * step`; its step is the one that leaves the least squared error. A
fine-tuned model keeps what it learnt even in one bit a number (Liu et al. 2024, "BitDelta"); three
bits leave 4 % of a change's squared size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from osler.errors import ModelError
from osler.kb.encoders.minilm import (
    LAYERS,
    Float32Graph,
    Int8Graph,
    add_encoder_layer,
    embed_tokens,
    serialise_graph,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Tensor: TypeAlias = NDArray[Any]

PLANES, STEP, PLAIN = ".planes", ".step", ".delta"
_BITS = 3
_STEPS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
"""Steps that are tried, in standard deviations of the row."""


def pack_delta(name: str, change: Tensor) -> dict[str, Tensor]:
    """The tensors that stand for the change of the tensor `name`, of shape (rows, columns).

    A vector is kept as float16, under `NAME.delta`.
    """
    import numpy as np

    if change.ndim != 2 or change.shape[1] % 8:
        return {name + PLAIN: change.astype(np.float16)}
    # As float16, so that what is packed is what will be read.
    spread = np.sqrt((change**2).mean(1, keepdims=True)) + 1e-7
    best = np.full((len(change), 1), np.inf)
    step = spread.copy()
    for factor in _STEPS:
        tried = (spread * factor).astype(np.float16).astype(np.float32)
        squares = ((_codes(change, tried) - 3.5) * tried - change) ** 2
        error = squares.mean(1, keepdims=True)
        step = np.where(error < best, tried, step)
        best = np.minimum(error, best)
    codes = _codes(change, step).astype(np.uint8)
    planes = [np.packbits((codes >> bit) & 1, axis=1) for bit in range(_BITS)]
    return {name + PLANES: np.stack(planes), name + STEP: step.astype(np.float16)}


def _codes(change: Tensor, step: Tensor) -> Tensor:
    import numpy as np

    # A row that did not change has no step: its codes do not matter.
    return np.clip(np.rint(change / np.maximum(step, 1e-12) + 3.5), 0, 2**_BITS - 1)


def unpack_deltas(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The changes by the names of the encoder's tensors, float32."""
    import numpy as np

    found = {}
    for name, one in tensors.items():
        if name.endswith(PLAIN):
            found[name.removesuffix(PLAIN)] = one.astype(np.float32)
        elif name.endswith(PLANES):
            key = name.removesuffix(PLANES)
            bits = np.unpackbits(one, axis=2)
            codes = sum(bits[bit].astype(np.float32) * 2**bit for bit in range(_BITS))
            found[key] = (codes - 3.5) * tensors[key + STEP].astype(np.float32)
    return found


HEAD_WEIGHT, HEAD_BIAS = "head.weight", "head.bias"


class TextPieces(Protocol):
    """Cuts a text into a model's pieces; `first` begins what it reads, `last` ends each text."""

    first: int
    last: int

    def piece_ids(self, text: str) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class PairInput:
    """Ids of [CLS] question [SEP] text [SEP], and 1 where the text is."""

    ids: tuple[int, ...]
    segments: tuple[int, ...]


def merge_deltas(base: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The encoder's tensors with the expert's changes added.

    Raises `ModelError` for a change of a tensor that the encoder lacks, or of another shape.
    """
    merged = dict(base)
    for name, change in unpack_deltas(tensors).items():
        if name not in base or base[name].shape != change.shape:
            raise ModelError(f"the expert's change of {name} does not fit the encoder")
        merged[name] = base[name] + change
    return merged


def pair_graph(
    base: Mapping[str, Tensor], deltas: Mapping[str, Tensor], *, exact: bool = False
) -> bytes:
    """Serialises the pair model: in 8 bits as the encoder is run, or `exact`, in float32."""
    import numpy as np

    tensors = merge_deltas(base, deltas)
    graph = Float32Graph() if exact else Int8Graph()
    x = embed_tokens(graph, tensors, "ids", "segments")
    for number in range(LAYERS):
        x = add_encoder_layer(graph, tensors, number, x)
    mean = graph.add_op("ReduceMean", x, axes=[1], keepdims=0)
    start = graph.add_constant(np.array([0], np.int64))
    axis = graph.add_constant(np.array([1], np.int64))
    first = graph.add_op("Squeeze", graph.add_op("Gather", x, start, axis=1), axis)
    read = graph.add_op("Concat", first, mean, axis=-1)
    # The head stays in float32: it is one product of 768 numbers.
    head = graph.add_constant(deltas[HEAD_WEIGHT].astype(np.float32).T)
    product = graph.add_op("MatMul", read, head)
    bias = graph.add_constant(deltas[HEAD_BIAS].astype(np.float32))
    logit = graph.add_op("Add", product, bias)
    return serialise_graph(graph, "osler-pair", ("ids", "segments"), logit, 1)


def run_pairs(session: Any, pairs: Sequence[PairInput]) -> list[float]:
    """Logits of the pairs, one at a time."""
    import numpy as np

    logits = []
    for pair in pairs:
        ids = np.array([pair.ids], np.int64)
        segments = np.array([pair.segments], np.int64)
        (logit,) = session.run(None, {"ids": ids, "segments": segments})
        logits.append(float(logit[0, 0]))
    return logits
