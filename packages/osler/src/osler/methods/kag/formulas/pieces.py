"""Which formula a question asks for, and which input each number tells, by the question's pieces.

Names fail on strangers' words ("how well are his kidneys clearing things", "good cholesterol 55"):
here two small networks read what the multilingual encoder says of each piece. One tells the
formula, the other what each piece tells of it. `pieces.npz` is written by
`benchmarks/train_formulas.py`, whose head is its card. Rules of names and units go first: what they
read stands, and what they do not is looked for here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from osler.kb.encoders.network import (
    PieceNetwork,
    ReadTokens,
    describe_pieces,
    read_layer,
    read_network,
)
from osler.methods.kag.formulas.base import ChoiceInput, Formula, NumberInput
from osler.methods.kag.formulas.quantities import Quantity, find_numbers
from osler.text import has_cjk

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = "none"
"""In place of a formula: the question asks for no value of one."""
NOTHING, ASKED = "nothing", "asked"
"""What a piece tells that tells of no input, and one that says what is asked for."""
TELLS = 0.3
"""Share from which a number tells an input, on average over its pieces."""
_LONGEST = 600
"""Characters of a question that are read."""
_FEWEST = 2
"""Numbers without which an English question is not read: the encoder takes half a second to load.
A Chinese one needs one; its searches load it anyway."""


@dataclass(frozen=True)
class ReadPieces:
    """What the networks say of a question."""

    text: str
    places: list[tuple[int, int]]
    formulas: dict[str, float]
    """The share of each formula, and of `NONE`; they sum to 1."""
    names: NDArray[Any]
    """(pieces, names): log-odds of what each tells, as `_Weights.names`."""
    values: NDArray[Any]
    """(pieces, values): log-odds of the value told, as `_Weights.values`."""

    @property
    def likeliest(self) -> tuple[str, float]:
        """A formula or `NONE`, and its share."""
        return max(self.formulas.items(), key=lambda one: one[1])

    def share_inputs(self, formula: Formula) -> dict[str, NDArray[Any]]:
        """Of each input the share in each piece, among the formula's inputs alone."""
        import numpy as np

        known = _read_weights().names
        wanted = [each.name for each in formula.inputs if each.name in known]
        columns = [known.index(name) for name in (NOTHING, ASKED, *wanted)]
        shares = np.exp(self.names[:, columns] - self.names[:, columns].max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return {name: shares[:, 2 + at] for at, name in enumerate(wanted)}

    def find_pieces(self, start: int, end: int) -> list[int]:
        """The pieces that overlap a part of the text."""
        return [n for n, (first, last) in enumerate(self.places) if first < end and start < last]

    def find_owners(
        self, formula: Formula, taken: Sequence[tuple[int, int]]
    ) -> list[tuple[float, str, Quantity]]:
        """Each number that is not taken with an input that it may tell and its share in it, the
        surest first."""
        shares = self.share_inputs(formula)
        numbers = {each.name for each in formula.inputs if isinstance(each, NumberInput)}
        found = [
            (float(shares[name][pieces].mean()), name, number)
            for number in find_numbers(self.text)
            if not any(start < number.end and number.start < end for start, end in taken)
            if (pieces := self.find_pieces(number.start, number.end))
            for name in numbers & shares.keys()
        ]
        return sorted(found, key=lambda one: (-one[0], one[1], one[2].start))

    def share_number(self, formula: Formula, name: str, number: Quantity) -> float:
        """How much of a number tells an input, on average over its pieces."""
        pieces, shares = self.find_pieces(number.start, number.end), self.share_inputs(formula)
        return float(shares[name][pieces].mean()) if pieces and name in shares else 0.0

    def choose_value(self, formula: Formula, wanted: ChoiceInput) -> str | None:
        """The value of a choice that the pieces tell; `None` where none tells the choice."""
        shares = self.share_inputs(formula).get(wanted.name)
        known = _read_weights().values
        choices = [each for each in wanted.choices if f"{wanted.name}={each}" in known]
        if shares is None or not choices or max(shares, default=0) < TELLS:
            return None
        telling = shares > shares.max() / 2
        columns = [known.index(f"{wanted.name}={each}") for each in choices]
        told = shares[telling] @ self.values[telling][:, columns]
        return choices[int(told.argmax())]


def read_pieces(text: str, read_tokens: ReadTokens | None) -> ReadPieces | None:
    """Reads a question whose numbers are figures (`write_figures`).

    `None` for one with too few numbers, for a long one, and without the encoder.
    """
    fewest = 1 if has_cjk(text) else _FEWEST
    if read_tokens is None or len(text) > _LONGEST or len(find_numbers(text)) < fewest:
        return None
    read = read_tokens(text)
    if read is None:
        return None
    import numpy as np

    places, states = read
    weights = _read_weights()
    asked = weights.formulas.judge(states)
    shares = np.exp(asked - asked.max())
    shares /= shares.sum()
    around = np.broadcast_to(states.mean(axis=0), states.shape)
    described = np.concatenate([describe_pieces(states), around], axis=1)
    hidden, bias = weights.hidden
    active = np.maximum(described @ hidden + bias, 0)
    names, values = (
        active @ layer[0] + layer[1] for layer in (weights.to_names, weights.to_values)
    )
    formulas = dict(zip(weights.ids, map(float, shares), strict=True))
    return ReadPieces(text, places, formulas, names, values)


@dataclass(frozen=True)
class _Weights:
    ids: tuple[str, ...]
    """Of the formulas, `NONE` first."""
    names: tuple[str, ...]
    """`NOTHING`, `ASKED`, and the inputs."""
    values: tuple[str, ...]
    """"input=value" each."""
    formulas: PieceNetwork
    hidden: tuple[NDArray[Any], NDArray[Any]]
    to_names: tuple[NDArray[Any], NDArray[Any]]
    to_values: tuple[NDArray[Any], NDArray[Any]]


@cache
def _read_weights() -> _Weights:
    import numpy as np

    with as_file(files(__package__).joinpath("pieces.npz")) as path, np.load(path) as kept:
        return _Weights(
            tuple(map(str, kept["ids"])),
            tuple(map(str, kept["names"])),
            tuple(map(str, kept["values"])),
            read_network(kept, "formulas"),
            read_layer(kept, "hidden"),
            read_layer(kept, "to_names"),
            read_layer(kept, "to_values"),
        )
