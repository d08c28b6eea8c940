"""A small network over what an encoder's layers say of each piece of a text.

Heads weigh the pieces, units look at what each head brings, and ends weigh the units: attention
without queries, and one hidden layer. `benchmarks/piece_network.py` fits it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from numpy.typing import NDArray

    Layer: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
    """Weights, by what goes in and what comes out, and bias."""

ReadTokens = Callable[[str], "tuple[list[tuple[int, int]], NDArray[Any]] | None"]
"""Start and end of each piece of a text, and what the multilingual encoder says of it, (pieces,
768); `None` without the encoder."""
LAYERS = ("heads", "units", "ends")


@dataclass(frozen=True, slots=True)
class PieceNetwork:
    """The three layers."""

    heads: Layer
    """(width, heads)."""
    units: Layer
    """(heads x width, units)."""
    ends: Layer
    """(units, ends)."""

    def judge(self, pieces: NDArray[Any]) -> NDArray[Any]:
        """What comes out for the pieces of one text, (pieces, width): float32 of shape (ends,)."""
        import numpy as np

        looks = pieces @ self.heads[0] + self.heads[1]
        shares = np.exp(looks - looks.max(axis=0))
        brought = ((shares / shares.sum(axis=0)).T @ pieces).ravel()
        active = np.maximum(brought @ self.units[0] + self.units[1], 0)
        told: NDArray[Any] = active @ self.ends[0] + self.ends[1]
        return told


def read_network(kept: Mapping[str, Any], name: str) -> PieceNetwork:
    """The network of a name from arrays of `name_layer`."""
    return PieceNetwork(*(read_layer(kept, f"{name}_{layer}") for layer in LAYERS))


def read_networks(kept: Mapping[str, Any]) -> tuple[PieceNetwork, ...]:
    """Every network of the arrays, in the order of the names: they are heard together."""
    names = sorted({name.partition("_")[0] for name in kept})
    return tuple(read_network(kept, name) for name in names)


def read_layer(kept: Mapping[str, Any], name: str) -> Layer:
    """Weights of a byte each with the scale of each column, and the bias."""
    import numpy as np

    return kept[name].astype(np.float32) * kept[f"{name}_scale"], kept[f"{name}_bias"]


def describe_pieces(states: NDArray[Any]) -> NDArray[Any]:
    """Of each piece its states, those of the piece before and of the piece after."""
    import numpy as np

    nothing = np.zeros((1, states.shape[1]), states.dtype)
    padded = np.concatenate([nothing, states, nothing])
    return np.concatenate([states, padded[:-2], padded[2:]], axis=1)
