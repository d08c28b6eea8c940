"""The facts of every baseline: paper, needs, cost, departures, and the origins of its defaults.

Their one home is `methods.toml`, which documents its own keys. The tables of the guide are rendered
from it, and `osler doctor` and `--strategies all` read from it what a method needs.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

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
    for kind, facts in tomllib.loads(
        files(__package__).joinpath("methods.toml").read_text(encoding="utf-8")
    ).items()
)
METHODS_BY_KIND = {method.kind: method for method in METHODS}


def render_methods_table() -> str:
    """The first table of docs/guide/baselines.md."""
    rows = ["| `--strategy` | Method | Needs of the model | Calls | At most | Differs |"]
    rows.append("|---|---|---|---|--:|---|")
    rows += [
        f"| `{m.kind}` | {m.paper} | {m.needs} | {m.calls} | {m.most} | {m.differs} |"
        for m in METHODS
    ]
    return "\n".join(rows)


def render_sources_table(settings: Mapping[str, Sequence[str]]) -> str:
    """The second table of docs/guide/baselines.md; `settings`: names of each method's settings.

    A setting that is neither recalled nor ours was found in the method's source.
    """
    rows = [
        "| `--strategy` | Looked up in | Found there | Recalled | Ours |",
        "|---|---|---|---|---|",
    ]
    for m in METHODS:
        found = [name for name in settings[m.kind] if name not in (*m.recalled, *m.ours)]
        columns = (_quote_names(names) for names in (found, m.recalled, m.ours))
        rows.append(f"| `{m.kind}` | {m.source} | {' | '.join(columns)} |")
    return "\n".join(rows)


def _quote_names(settings: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in settings) or "-"
