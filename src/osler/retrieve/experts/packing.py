"""Changes of an encoder's matrices in three bits a number, so that tuned layers can be shipped.

A row of a change is rounded to eight levels, `(code - 3.5) * step`; the step of each row is the one
that leaves the least squared error. The codes stand as three planes of bits. A fine-tuned model
keeps what it learnt even in one bit a number (Liu et al. 2024, "BitDelta"); three bits leave 4 % of
a change's squared size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
        error = ((_codes(change, tried) - 3.5) * tried - change) ** 2
        better = error.mean(1, keepdims=True) < best
        best, step = (
            np.where(better, error.mean(1, keepdims=True), best),
            np.where(better, tried, step),
        )
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
