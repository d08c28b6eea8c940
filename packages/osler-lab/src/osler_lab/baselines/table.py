"""The facts of every baseline: paper, needs, cost, departures, and the origins of its defaults.

Their one home is `methods.toml`, which documents its own keys. The tables of the guide are rendered
from it, and `osler doctor` and `--strategies all` read from it what a method needs.
"""

from __future__ import annotations

from osler.settings.plugins import SINGLE_PASS, MethodFacts
from osler.text import read_packaged_table

METHODS: tuple[MethodFacts, ...] = (
    *SINGLE_PASS,
    *(
        MethodFacts(kind, **facts)
        for kind, facts in read_packaged_table(__package__, "methods.toml").items()
    ),
)
METHODS_BY_KIND = {method.kind: method for method in METHODS}
