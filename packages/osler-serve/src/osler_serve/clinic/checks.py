"""The three checks, with the drugs that they know and the rules that they quote.

Each states what the record says and quotes the sentence about it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from osler.errors import BadCalculation
from osler.methods.kag.formulas import FORMULAS, Given, evaluate_formula
from osler.text import has_cjk, read_packaged_table
from osler_serve.clinic.chart import Chart, NamedItem
from osler_serve.clinic.outside import read_clinic_file


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
    return read_clinic_file(path, lambda text: ClinicRules.model_validate(tomllib.loads(text)))


@cache
def packaged_clinic_rules() -> ClinicRules:
    return ClinicRules.model_validate(read_packaged_table(__package__, "rules.toml"))


CheckName = Literal["interactions", "renal-doses", "allergies"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a card says: facts, and the rule that they meet."""

    id: str
    """Stable within a request."""
    summary: str
    facts: tuple[str, ...]
    rule: QuotedRule | None = None
    """`None` for a check that could not be made, and for what the record itself says."""
    urgent: bool = True


@dataclass(frozen=True)
class ReadDrugs:
    """A chart with its drugs recognised."""

    chart: Chart
    rules: ClinicRules
    is_order: bool
    names: DrugNames = field(init=False)
    taken: dict[str, list[NamedItem]] = field(init=False)
    ordered: dict[str, list[NamedItem]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", DrugNames(self.rules.drugs))
        object.__setattr__(self, "taken", self._recognise(self.chart.taken))
        object.__setattr__(self, "ordered", self._recognise(self.chart.ordered))

    def _recognise(self, items: Iterable[NamedItem]) -> dict[str, list[NamedItem]]:
        found: dict[str, list[NamedItem]] = {}
        for item in items:
            for drug in sorted(self.names.find(item.text)):
                found.setdefault(drug, []).append(item)
        return found

    @property
    def new(self) -> dict[str, list[NamedItem]]:
        """What the check is about: the orders, or all that is taken where a chart is opened."""
        return self.ordered if self.is_order else self.taken

    def describe(self, drug: str) -> str:
        """As in "Warfarin 3 mg tablet (MedicationRequest/7, taken)"."""
        items = [(item, "ordered") for item in self.ordered.get(drug, [])]
        items += [(item, "taken") for item in self.taken.get(drug, [])]
        return "; ".join(f"{i.text} ({i.reference}, {what})" for i, what in items)

    def unread(self, name: CheckName) -> Iterator[Finding]:
        """What the check could not look at."""
        items = self.chart.ordered if self.is_order else self.chart.taken
        if name == "interactions":  # an order meets what is taken
            items = (*self.chart.ordered, *self.chart.taken)
        for item in dict.fromkeys(items):
            if not item.text:
                problem = "A drug has a code and no name: not checked"
                yield Finding(f"unnamed-{item.reference}", problem, (item.reference,), urgent=False)
        for cut in self.chart.cut_short:
            fact = f"The list of {cut} says itself that it is not whole."
            problem = f"Only a part of {cut} was sent: the rest is not checked"
            yield Finding(f"cut-{cut}", problem, (fact,), urgent=False)


def find_interactions(read: ReadDrugs) -> Iterator[Finding]:
    """Combinations of what is ordered with what is taken, or of what is taken."""
    pool = {*read.taken, *read.ordered}
    for number, rule in enumerate(read.rules.interaction):
        choices = read.rules.matching_drugs(rule, pool)
        drugs = sorted({d for chosen in choices if set(chosen) & set(read.new) for d in chosen})
        if drugs:
            summary = f"Interaction: {', '.join(drugs)}"
            facts = tuple(read.describe(drug) for drug in drugs)
            yield Finding(f"interaction-{number}", summary, facts, rule)


def find_renal_doses(read: ReadDrugs) -> Iterator[Finding]:
    """Drugs whose dose depends on a kidney function that is below a bound, or is not known."""
    for number, rule in enumerate(read.rules.renal):
        for drug in sorted(set(rule.drugs) & set(read.new)):
            yield from _check_kidney(f"renal-{number}-{drug}", rule, drug, read)


def _check_kidney(id: str, rule: RenalRule, drug: str, read: ReadDrugs) -> Iterator[Finding]:
    formula = FORMULAS[rule.formula]
    chart, order = read.chart, read.describe(drug)
    measured = [one for one in (chart.creatinine, chart.weight) if one is not None]
    known: dict[str, Given | None] = {
        "age": chart.age,
        "sex": chart.sex,
        "creatinine": chart.creatinine.value if chart.creatinine else None,
        "weight": chart.weight.value if chart.weight else None,
    }
    given = {wanted.name: known.get(wanted.name) for wanted in formula.inputs}
    if missing := [name for name, value in given.items() if value is None]:
        problem = f"{drug.capitalize()}: kidney function not computed, for lack of {missing[0]}"
        needed = f"{formula.title} needs {', '.join(missing)}; a measurement counts for a year."
        unread = [f"Not read: {one.said}" for one in measured if one.value is None]
        yield Finding(id, problem, (order, needed, *unread), rule, urgent=False)
        return
    try:
        result = evaluate_formula(formula, {k: v for k, v in given.items() if v is not None})
    except BadCalculation as error:
        problem = f"{drug.capitalize()}: kidney function not computed"
        yield Finding(id, problem, (order, error.message), rule, urgent=False)
        return
    if result.value < rule.below:
        found = f"{formula.title.partition(' (')[0]} {result.value:.0f} {formula.unit}"
        summary = f"{drug.capitalize()}: {found}, below {rule.below:g}"
        seen = f"Measured: {'; '.join(one.said for one in measured if one.value is not None)}"
        yield Finding(id, summary, (order, result.text(), seen, formula.source), rule)


def find_allergies(read: ReadDrugs) -> Iterator[Finding]:
    """Orders of what a recorded allergy names, or of a relative of it."""
    groups = DrugNames(read.rules.group_names)
    for allergy in read.chart.allergies:
        if not allergy.text:
            problem, facts = "An allergy has no name: not checked", (allergy.reference,)
            yield Finding(f"unnamed-{allergy.reference}", problem, facts, urgent=False)
        named, kinds = read.names.find(allergy.text), groups.find(allergy.text)
        direct = named | {d for kind in kinds for d in read.rules.members(kind)}
        shared = {
            rule: set(read.rules.members(rule.group))
            for rule in read.rules.allergy
            if rule.group in kinds or not named.isdisjoint(read.rules.members(rule.group))
        }
        recorded = f"Recorded allergy: {allergy.text} ({allergy.reference})"
        for drug in sorted(read.new):
            rule = next((rule for rule, members in shared.items() if drug in members), None)
            if drug not in direct and rule is None:
                continue
            how = "Recorded allergy" if drug in direct else "Related to a recorded allergy"
            id = f"allergy-{allergy.reference}-{drug}"
            yield Finding(id, f"{how}: {drug}", (recorded, read.describe(drug)), rule)


CHECKS: dict[CheckName, Callable[[ReadDrugs], Iterator[Finding]]] = {
    "interactions": find_interactions,
    "renal-doses": find_renal_doses,
    "allergies": find_allergies,
}


def run_check(name: CheckName, chart: Chart, rules: ClinicRules, is_order: bool) -> list[Finding]:
    """The findings of one check, the urgent ones first."""
    read = ReadDrugs(chart, rules, is_order)
    found = [*CHECKS[name](read), *read.unread(name)]
    return sorted(found, key=lambda finding: not finding.urgent)
