"""What a question asks of the graph, by the question's pieces.

No table has a stranger's words for a relation ("what clashes with", 犯冲, 奔着哪个病去的): small
networks, heard together, read what the multilingual encoder says of each piece, once for each
concept that is named. They tell which relations are followed from there, what is done with what
they reach, and whether the graph can be asked that at all. `pieces.npz` is written by
`benchmarks/train_graph.py`, whose head is its card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any

from osler.kb.encoders.network import PieceNetwork, ReadTokens, read_networks
from osler.methods.kag.graph_route.vocabulary import name_hops
from osler.types import Language

if TYPE_CHECKING:
    from numpy.typing import NDArray

Shares = dict[str, dict[object, float]]
"""The logarithm of each end's share, by group; those of a group sum to 1."""
NONE = "none"
"""No operation of the graph's; no further hop."""
HELD = "held"
"""In place of a first hop: the concept is held against what is reached from the other."""
OPERATIONS = (NONE, "", "judgement", "intersection", "union", "difference", "most", "fewest")
_WHETHER = (False, True)
_NEAR = 3.0
"""Pieces over which nearness falls to a third."""
_STAND_INS: dict[str, dict[Language, tuple[str, str]]] = {
    "disease": {"en": ("asthma", "gout"), "zh": ("哮喘", "痛风")},
    "drug": {"en": ("warfarin", "aspirin"), "zh": ("华法林", "阿司匹林")},
    "symptom": {"en": ("fever", "cough"), "zh": ("发热", "咳嗽")},
    "test": {"en": ("spirometry", "biopsy"), "zh": ("肺功能检查", "活检")},
    "gene": {"en": ("BRCA1", "TP53"), "zh": ("BRCA1基因", "TP53基因")},
    "anatomy": {"en": ("liver", "kidney"), "zh": ("肝脏", "肾脏")},
    "class": {"en": ("statins", "opioids"), "zh": ("他汀类", "阿片类")},
}
"""Names that are read in place of a question's own: the one that is followed, and another. So what
is told of one drug holds of all, and the network knows which of two it is asked of."""
STANDING = tuple(_STAND_INS)


def name_ends() -> dict[str, tuple[object, ...]]:
    """What comes out of the network, group by group."""
    hops = name_hops()
    return {
        "operation": OPERATIONS,
        "counted": _WHETHER,
        "permits": _WHETHER,
        "first": (HELD, *hops),
        "second": (NONE, *hops),
        "taken": _WHETHER,
        "after": (NONE, *hops),
    }


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """Where a question names a concept, and of which kind."""

    start: int
    end: int
    kind: str


def write_stand_ins(
    text: str, places: Sequence[NamedPlace], chosen: int, language: Language
) -> tuple[str, list[tuple[int, int]]]:
    """The question with stand-ins in place of its names, and where each of them stands."""
    written, at = "", 0
    spans = []
    for n, place in enumerate(places):
        names = _STAND_INS.get(place.kind, _STAND_INS["disease"])[language]
        written += text[at : place.start]
        spans.append((len(written), len(written) + len(names[n != chosen])))
        written += names[n != chosen]
        at = place.end
    return written + text[at:], spans


def describe(
    pieces: Sequence[tuple[int, int]],
    states: NDArray[Any],
    spans: Sequence[tuple[int, int]],
    chosen: int,
) -> NDArray[Any]:
    """Of each piece its states, and how near it stands to the chosen name and to others."""
    import numpy as np

    at = np.arange(len(pieces))
    columns = []
    for some in (spans[chosen : chosen + 1], [*spans[:chosen], *spans[chosen + 1 :]]):
        own = [
            n
            for n, (start, end) in enumerate(pieces)
            if any(start < last and first < end for first, last in some)
        ]
        if not own:
            columns += [np.zeros(len(at))] * 3
            continue
        before, after = np.maximum(min(own) - at, 0), np.maximum(at - max(own), 0)
        near = np.exp(-(before + after) / _NEAR)
        columns += [before + after == 0, near * (before > 0), near * (after > 0)]
    return np.concatenate([states, np.stack(columns, 1).astype(np.float32)], axis=1)


def read_shares(
    text: str, places: Sequence[NamedPlace], language: Language, read_tokens: ReadTokens
) -> list[Shares] | None:
    """What the network tells of each place; `None` without the encoder."""
    import numpy as np

    told = []
    for chosen in range(len(places)):
        written, spans = write_stand_ins(text, places, chosen, language)
        read = read_tokens(written)
        if read is None:
            return None
        described = describe(*read, spans, chosen)
        ends, at = np.mean([one.judge(described) for one in _read_networks()], axis=0), 0
        shares: Shares = {}
        for group, names in name_ends().items():
            own = ends[at : at + len(names)]
            logs = own - np.logaddexp.reduce(own)
            shares[group] = dict(zip(names, map(float, logs), strict=True))
            at += len(names)
        told.append(shares)
    return told


@cache
def _read_networks() -> tuple[PieceNetwork, ...]:
    import numpy as np

    with as_file(files(__package__).joinpath("pieces.npz")) as path, np.load(path) as kept:
        return read_networks(kept)
