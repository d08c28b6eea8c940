"""The tables of TC-RAG's studies. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from osler.cli.tables import make_table

if TYPE_CHECKING:
    from osler.evaluate.attacks import AttackCell
    from osler.evaluate.intervals import Estimate
    from osler.evaluate.sigma import SigmaPoint

_INTERVALS = "In brackets: 95 % intervals (Wilson for shares, bootstrap for means)."


def attack_page(cells: Sequence[AttackCell]) -> Group:
    """Six rows as in the paper's Table 3, with n and intervals."""
    table = make_table(("attack", "noise", "n", "Summary", "Backtrack", "EM", "no call"))
    for cell in cells:
        shares = (cell.summary, cell.backtrack, cell.em)
        told = (_format_share(share) for share in shares)
        table.add_row(cell.kind, cell.noise, str(cell.em.n), *told, str(cell.unattacked))
    return Group(table, Text(f'{_INTERVALS} "no call": runs without a tool call, in all shares.'))


def sigma_page(points: Sequence[SigmaPoint]) -> Group:
    names = ("state", "sigma", "n", "converged", "budget", "no evidence", "steps", "tokens", "EM")
    table = make_table(names)
    for point in points:
        table.add_row(
            point.metric,
            f"{point.sigma:g}",
            str(point.converged.n),
            _format_share(point.converged),
            str(point.halts["budget"]),
            str(point.halts["no_evidence"]),
            f"{point.steps.value:.2f}",
            f"{point.tokens.value:,.0f}",
            _format_share(point.em) if point.em else "-",
        )
    return Group(table, Text(_INTERVALS))


def _format_share(found: Estimate) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
