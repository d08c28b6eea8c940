"""What the pieces of a line are, by a small network over what the multilingual encoder says.

Of each piece the states of layers 6 and 8 of multilingual-e5-small, with those of its neighbours,
go through one hidden layer. `tokens.npz` is written by `benchmarks/train_identifiers.py`, whose
head is its card.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from osler.kb.encoders.network import describe_pieces
from osler.llm.core.cache import cache_dir
from osler_serve.clinic.identifiers.found import Identifier, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS: tuple[Kind, ...] = ("NAME", "PLACE", "PHONE", "ID", "DATE", "AGE")
"""Kinds that a piece can be of, from 1 in the network's outputs; 0 is none of them."""
DOUBTFUL = frozenset({"NAME", "PLACE", "ADDRESS"})
"""Kinds of which the network has a say in what the rules find."""
SURE = 0.4
"""What a piece of an identifier is at least with, of all kinds together."""
DOUBTED = 0.02
"""Where no piece of what a rule calls a name or a place has as much, it is none."""
_LONGEST = 400
"""Characters that are read together."""
_STOPS = re.compile(r"[.!?;。！？；]\s*|\s+")
_WORD = re.compile(r"[^\W\d_\u4e00-\u9fff]+")
_LEADS = "在于到从由自往去来回至"
_CODE_BEFORE = re.compile(r"[A-Z-]+$")
_PUBLIC = re.compile(r"(?:NCT|ISRCTN|PMID|PMC|GSK|BMS|AZD|SARS|CYP|HLA|COVID|ISO|IEC)[A-Z-]*\d")
_BETWEEN = re.compile(r"[ \-'’·.]{0,2}")


@dataclass(frozen=True)
class ReadLine:
    """A line, its pieces, and the shares of the kinds in each: `(pieces, 7)`, each sums to 1."""

    line: str
    places: list[tuple[int, int]]
    shares: NDArray[Any]

    def find_identifiers(self, ruled: Iterable[Identifier] = ()) -> list[Identifier]:
        """Runs of pieces of one kind that are likely enough something; a date or a number that a
        rule found is left to the rule, which knows where it ends."""
        measured = [one for one in ruled if one.kind not in DOUBTFUL]
        found: list[Identifier] = []
        for (start, end), shares in zip(self.places, self.shares, strict=True):
            if 1 - shares[0] <= SURE or any(
                one.start < end and one.end > start for one in measured
            ):
                continue
            kind = KINDS[int(shares[1:].argmax())]
            if found and self._goes_on(found[-1], kind, start):
                found[-1] = Identifier(found[-1].kind, found[-1].start, end)
            else:
                found.append(Identifier(kind, start, end))
        return [one for one in map(self._trim, found) if not self._is_public(one)]

    def _goes_on(self, last: Identifier, kind: Kind, start: int) -> bool:
        """Whether a piece of a kind belongs to what was found before it."""
        if last.kind == kind:
            return _BETWEEN.fullmatch(self.line, last.end, start) is not None
        return last.end == start and {last.kind, kind} == {"NAME", "PLACE"}

    def _trim(self, one: Identifier) -> Identifier:
        """Without the preposition that stands in one piece with a Chinese place."""
        is_led = one.kind == "PLACE" and one.end - one.start > 2 and self.line[one.start] in _LEADS
        return Identifier(one.kind, one.start + is_led, one.end)

    def _is_public(self, one: Identifier) -> bool:
        """Whether it is the code of a trial, an article, a gene or a compound."""
        before = _CODE_BEFORE.search(self.line, 0, one.start)
        return one.kind == "ID" and bool(
            _PUBLIC.match(self.line, before.start() if before else one.start)
        )

    def speaks_against(self, one: Identifier) -> bool:
        """Whether none of its pieces looks like part of an identifier."""
        inside = [
            1 - shares[0]
            for (start, end), shares in zip(self.places, self.shares, strict=True)
            if start < one.end and end > one.start
        ]
        return bool(inside) and max(inside) < DOUBTED


def read_line(line: str) -> ReadLine:
    """Reads a line with the encoder, in parts where it is long. Raises `ModelError`."""
    import numpy as np

    from osler.build.hub import load_e5

    places: list[tuple[int, int]] = []
    shares = [np.zeros((0, 1 + len(KINDS)), np.float32)]
    at = 0
    while part := _first_part(line[at:]):
        found, states = load_e5(cache_dir()).read_tokens(part)
        places += [(at + start, at + end) for start, end in found]
        shares.append(join_words(part, found, _find_shares(describe_pieces(states))))
        # Signs that stand for several (㌔) may be more than the encoder reads at once.
        read = found[-1][1] if found else len(part)
        at += read if part[read:].strip() else len(part)
    return ReadLine(line, places, np.concatenate(shares))


def _first_part(line: str) -> str:
    """As much as is read together, up to where a sentence or a word ends."""
    if len(line) <= _LONGEST:
        return line
    stops = [one.end() for one in _STOPS.finditer(line, 0, _LONGEST)]
    return line[: stops[-1] if stops else _LONGEST]


def join_words(line: str, places: list[tuple[int, int]], shares: NDArray[Any]) -> NDArray[Any]:
    """The shares, in which the pieces of one Latin word agree: half its surest piece, half all."""
    shares = shares.copy()
    for word in _WORD.finditer(line):
        inside = [
            n for n, (start, end) in enumerate(places) if start < word.end() and end > word.start()
        ]
        if len(inside) > 1:
            surest = min(inside, key=lambda n: float(shares[n][0]))
            shares[inside] = (shares[surest] + shares[inside].mean(axis=0)) / 2
    return shares


def _find_shares(pieces: NDArray[Any]) -> NDArray[Any]:
    """The network: of each piece the shares of the kinds."""
    import numpy as np

    (hidden, hidden_bias), (outer, outer_bias) = _read_weights()
    active = np.maximum(pieces @ hidden + hidden_bias, 0)
    logits = active @ outer + outer_bias
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: NDArray[Any] = weights / weights.sum(axis=1, keepdims=True)
    return shares


@cache
def _read_weights() -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Weights and biases of the two layers."""
    import numpy as np

    with as_file(files(__package__).joinpath("tokens.npz")) as path, np.load(path) as kept:
        layers = ("hidden", "outer")
        return [
            (kept[one].astype(np.float32) * kept[f"{one}_scale"], kept[f"{one}_bias"])
            for one in layers
        ]
