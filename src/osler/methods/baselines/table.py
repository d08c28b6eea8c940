"""The facts of every baseline: paper, needs, cost, departures, and the origins of its defaults.

Their one home is `methods.toml`, which documents its own keys. The tables of the guide are rendered
from it, and `osler doctor` and `--strategies all` read from it what a method needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.text import read_packaged_table

TEXT = "text alone"
LIKELY = "log-probabilities of its tokens"
LIKELIEST = "log-probabilities of its likeliest tokens"
ATTENTION = "attention (transformers)"
CHECKPOINT = "a checkpoint of Self-RAG's, with scoring of given texts"
CHAINS = f"{TEXT}; a concept graph"


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """One entry of `methods.toml`."""

    kind: str
    """Its `strategy.kind`."""
    paper: str
    calls: str
    most: int
    source: str
    needs: str = TEXT
    differs: str = "-"
    recalled: Sequence[str] = ()
    ours: Sequence[str] = ()


METHODS: tuple[MethodFacts, ...] = tuple(
    MethodFacts(kind, **facts)
    for kind, facts in read_packaged_table(__package__, "methods.toml").items()
)
METHODS_BY_KIND = {method.kind: method for method in METHODS}
