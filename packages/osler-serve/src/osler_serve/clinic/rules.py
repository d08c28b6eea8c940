"""The drugs that the services know, and the rules that they quote."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from osler.errors import BadConfig
from osler.methods.kag.formulas import FORMULAS
from osler.text import has_cjk, read_packaged_table


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QuotedRule(_Part):
    """A rule, and the sentence that it rests on."""

    passage: Annotated[str, Field(min_length=1)]
    title: Annotated[str, Field(min_length=1)]
    quote: Annotated[str, Field(min_length=1)]
    url: str = ""


class InteractionRule(QuotedRule):
    groups: Annotated[tuple[str, ...], Field(min_length=2, max_length=4)]


class RenalRule(QuotedRule):
    drugs: tuple[str, ...]
    formula: str
    below: float
    """In the formula's unit."""


class AllergyRule(QuotedRule):
    group: str


class ClinicRules(_Part):
    drugs: dict[str, tuple[str, ...]]
    groups: dict[str, tuple[str, ...]] = {}
    group_names: dict[str, tuple[str, ...]] = {}
    interaction: tuple[InteractionRule, ...] = ()
    renal: tuple[RenalRule, ...] = ()
    allergy: tuple[AllergyRule, ...] = ()

    @model_validator(mode="after")
    def _require_known(self) -> Self:
        named = [name for rule in self.interaction for name in rule.groups]
        named += [name for rule in self.renal for name in rule.drugs]
        named += [name for members in self.groups.values() for name in members]
        named += [*self.group_names, *(rule.group for rule in self.allergy)]
        known = {*self.drugs, *self.groups}
        if unknown := sorted(set(named) - known):
            raise ValueError(f"{unknown[0]!r} is neither a drug nor a group")
        if unknown := sorted({rule.formula for rule in self.renal} - set(FORMULAS)):
            raise ValueError(f"there is no formula {unknown[0]!r}")
        return self

    def members(self, name: str) -> tuple[str, ...]:
        """Of a group; a drug is a group of one."""
        return self.groups.get(name, (name,))

    def matching_drugs(self, rule: InteractionRule, drugs: set[str]) -> Iterator[tuple[str, ...]]:
        """Each choice out of `drugs` of one drug of its own for every group of the rule."""
        fitting = sorted({d for name in rule.groups for d in self.members(name)} & drugs)
        for chosen in permutations(fitting, len(rule.groups)):
            if all(d in self.members(g) for d, g in zip(chosen, rule.groups, strict=True)):
                yield chosen


class DrugNames:
    """Finds the drugs that a text names."""

    def __init__(self, names: dict[str, tuple[str, ...]]) -> None:
        self._meant: dict[str, set[str]] = {}
        for name, others in names.items():
            for spelled in (name, *others):
                self._meant.setdefault(spelled.casefold(), set()).add(name)
        # The longest first: a Chinese name may stand within another.
        spelled_out = sorted(self._meant, key=len, reverse=True)
        parts = [re.escape(s) if has_cjk(s) else rf"\b{re.escape(s)}\b" for s in spelled_out]
        self._pattern = re.compile("|".join(parts) or r"(?!)")

    def find(self, text: str) -> set[str]:
        found = self._pattern.findall(text.casefold())
        return set().union(*(self._meant[name] for name in found))


def read_clinic_rules(path: Path) -> ClinicRules:
    """Raises `BadConfig` for a file that cannot be read, or names what it does not define."""
    try:
        return ClinicRules.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise BadConfig(f"{path}: {problem}", fix="see docs/guide/clinic.md") from error


@cache
def packaged_clinic_rules() -> ClinicRules:
    return ClinicRules.model_validate(read_packaged_table(__package__, "rules.toml"))
