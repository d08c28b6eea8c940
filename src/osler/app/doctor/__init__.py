"""What `osler doctor` looks at: each check really does the thing it reports on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.app.config import Settings
from osler.app.doctor.abilities import Ability, abilities
from osler.app.doctor.checks import Check, checks
from osler.app.doctor.needs import Verdict, verdicts
from osler.app.wiring import graphs


@dataclass(frozen=True, slots=True)
class Report:
    checks: tuple[Check, ...]
    models: tuple[Ability, ...]
    strategies: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        return all(check.status != "fail" for check in self.checks)


def examine(settings: Settings) -> Report:
    """Everything there is to see; what fails does not stop the rest."""
    found = asyncio.run(abilities(settings))
    told = verdicts(found, graph=graphs.exists(settings), options=settings.answer.options)
    return Report((*checks(settings), *map(_check, found)), found, told)


def _check(ability: Ability) -> Check:
    name = f"model of {', '.join(ability.roles)}"
    if ability.error:
        return Check(name, "fail", ability.error, ability.fix)
    able = [f"{ability.name} answers in {ability.seconds:.2f} s"]
    able.append("scores given texts" if ability.scores else "scores no given texts")
    able.append("words answers" if ability.writes else "never words answers (quotes only)")
    return Check(name, "pass", ", ".join(able))


__all__ = ["Ability", "Check", "Report", "Verdict", "abilities", "checks", "examine", "verdicts"]
