"""Bounds of a run: its budget, and the prices by which money is counted."""

from __future__ import annotations

from collections.abc import Mapping

from osler.errors import BadConfig
from osler.settings import Role, Settings
from osler.trace import Budget, Price, Run, Sink


def make_run(
    settings: Settings, names: Mapping[Role, str], id: str, sink: Sink | None = None
) -> Run:
    """A run with the seed, the bounds and the prices of the settings; `names` are `Parts.names`."""
    prices = run_prices(settings, names)
    return Run(id, settings.sampling.seed, run_budget(settings), sink=sink, prices=prices)


def run_budget(settings: Settings) -> Budget:
    chosen = settings.budget
    return Budget(chosen.calls, chosen.tokens, chosen.searches, chosen.seconds, chosen.money)


def run_prices(settings: Settings, names: Mapping[Role, str]) -> dict[str, Price]:
    """Prices by model identity, of the models that play the roles (`Parts.names`).

    Raises `BadConfig` for a budget in money that a model on a server has no price for: what runs
    in this process sends no bill.
    """
    table, found = settings.prices.table, dict[str, Price]()
    for role, identity in names.items():
        chosen = settings.model_for(role)
        if price := table.get(chosen.name) or table.get(identity):
            found[identity] = price
        elif settings.budget.money is not None and chosen.kind == "openai":
            raise _refuse_unpriced(chosen.name)
    return found


def _refuse_unpriced(name: str) -> BadConfig:
    return BadConfig(
        f"budget.money bounds nothing: {name} has no price",
        fix=f'add "{name}=READ/CACHED/WRITTEN" to prices.models',
    )
