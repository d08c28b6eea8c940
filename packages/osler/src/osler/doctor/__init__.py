"""The checks of `osler doctor`: each really does the thing that it reports on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.build import graphs
from osler.doctor.abilities import Ability, probe_models
from osler.doctor.checks import Check, run_checks
from osler.doctor.needs import StrategyVerdict, judge_strategies
from osler.settings import Settings


@dataclass(frozen=True, slots=True)
class DoctorReport:
    checks: tuple[Check, ...]
    models: tuple[Ability, ...]
    strategies: tuple[StrategyVerdict, ...]

    @property
    def ok(self) -> bool:
        return all(check.status != "fail" for check in self.checks)


def run_doctor(settings: Settings) -> DoctorReport:
    """Everything there is to see; what fails does not stop the rest."""
    abilities = asyncio.run(probe_models(settings))
    verdicts = judge_strategies(
        abilities, graph=graphs.has_graph(settings), options=settings.answer.options
    )
    return DoctorReport(
        (*run_checks(settings), *map(_check_ability, abilities)), abilities, verdicts
    )


def _check_ability(ability: Ability) -> Check:
    name = f"model of {', '.join(ability.roles)}"
    if ability.error:
        return Check(name, "fail", ability.error, ability.fix)
    able = [f"{ability.name} answers in {ability.seconds:.2f} s"]
    able.append("scores given texts" if ability.scores else "scores no given texts")
    able.append("words answers" if ability.writes else "never words answers (quotes only)")
    return Check(name, "pass", ", ".join(able))
