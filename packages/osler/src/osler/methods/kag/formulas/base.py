"""A verified formula: named inputs with units and ranges, a source, and what it computes.

Units are checked by pint. A quantity of a substance may come as a mass
or as an amount concentration: creatinine in mg/dL or µmol/L.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from osler.errors import BadCalculation
from osler.types import Language

if TYPE_CHECKING:
    from pint import UnitRegistry

Given = float | bool | str
"""A number in the input's own unit, yes or no, one of its choices, or "16 kg"."""

MOLAR_MASS = {
    "creatinine": 113.12,
    "bilirubin": 584.66,
    "calcium": 40.078,
    "glucose": 180.156,
    "urea nitrogen": 28.014,
    "cholesterol": 386.65,
    "triglycerides": 885.4,
}
"""g/mol. Triglycerides as triolein, as laboratories convert them."""


# A number and a unit. Nothing that would be calculated: no powers of numbers, no sums.
_QUANTITY = re.compile(
    r"\s*(?P<number>[-+]?\d{1,12}(?:\.\d{1,12})?)\s*(?P<unit>[^\W\d_%*^]?[\w%/·. ^×⁹²³]{0,24})\s*"
)
_UNITS = {
    "10^9/L": "1/nanoliter",
    "K/uL": "1/nanoliter",
    "K/µL": "1/nanoliter",
    "bpm": "1/min",
    "%": "percent",
}


# HbA1c in mmol/mol (IFCC) to percent (NGSP): Hoelzel W et al. Clin Chem 2004;50:166-74.
_IFCC_SLOPE, _IFCC_OFFSET = 0.09148, 2.152


@dataclass(frozen=True, slots=True)
class NumberInput:
    """An input with a unit and the range in which the formula holds."""

    name: str
    unit: str
    low: float
    high: float
    substance: str = ""
    """A key of `MOLAR_MASS`, where masses and amounts are both in use."""
    default: float | None = None


@dataclass(frozen=True, slots=True)
class FlagInput:
    """A yes-or-no input; absent means no, as in clinical scores, and the result says so."""

    name: str


@dataclass(frozen=True, slots=True)
class ChoiceInput:
    name: str
    choices: tuple[str, ...]
    default: str | None = None


Input = NumberInput | FlagInput | ChoiceInput


@dataclass(frozen=True, slots=True)
class Formula:
    """`compute` takes the inputs by name, in their units, and gives the result in `unit`."""

    id: str
    title: str
    title_zh: str
    inputs: tuple[Input, ...]
    compute: Callable[..., float]
    source: str
    """Publication."""
    unit: str = ""
    """Of the result; empty = a score or a ratio."""
    substance: str = ""
    """A key of `MOLAR_MASS` for a result in mg/dL that is in use in mmol/L too."""
    note: str = ""
    """Limits of validity."""
    aliases: tuple[str, ...] = ()
    """Other names; a name of several formulas stands for the first of them."""
    wordings: tuple[str, ...] = ()
    """Names in other words (regular expressions, read without capitals)."""
    expression: str = ""
    """The formula in a line, with the inputs' names."""

    def title_in(self, language: Language) -> str:
        return self.title_zh if language == "zh" else self.title

    @property
    def units(self) -> dict[str, str]:
        """Of the inputs that are numbers, by name."""
        return {i.name: i.unit for i in self.inputs if isinstance(i, NumberInput)}


@dataclass(frozen=True, slots=True)
class FormulaResult:
    formula: Formula
    value: float
    used: Mapping[str, Given]
    """Every input in the formula's unit, defaults among them."""
    assumed: tuple[str, ...]
    """Inputs that were not given and took their default."""

    @property
    def amount(self) -> float | None:
        """The value in mmol/L, where it is in use."""
        substance = self.formula.substance
        return 10 * self.value / MOLAR_MASS[substance] if substance else None

    def text(self) -> str:
        """One line for the trace: "Parkland formula: weight 70 kg, burned 30 %: 8400 ml"."""
        units = self.formula.units
        inputs = ", ".join(
            f"{name.replace('_', ' ')} {_format_value(value)} {units.get(name, '')}".rstrip()
            for name, value in self.used.items()
        )
        result = f"{_format_value(self.value)} {self.formula.unit}".rstrip()
        return f"{self.formula.title}: {inputs}: {result}"


def evaluate_formula(formula: Formula, given: Mapping[str, Given]) -> FormulaResult:
    """Evaluates the formula on the given inputs.

    Raises `BadCalculation` for an input that is unknown, absent, out of range, of another
    dimension or no number, and for a result that is not finite.
    """
    names = {wanted.name for wanted in formula.inputs}
    if unknown := sorted(set(given) - names):
        raise BadCalculation(
            f"{formula.id} has no input {unknown[0]!r}", fix=f"it takes {', '.join(sorted(names))}"
        )
    used = {wanted.name: _read_input(formula, wanted, given) for wanted in formula.inputs}
    assumed = tuple(name for name in used if name not in given)
    try:
        value = float(formula.compute(**used))
    except (ArithmeticError, ValueError) as error:
        raise BadCalculation(f"{formula.id} cannot be computed from {used}: {error}") from error
    if not math.isfinite(value):
        raise BadCalculation(f"{formula.id} does not give a finite number from {used}")
    return FormulaResult(formula, value, used, assumed)


def _read_input(formula: Formula, wanted: Input, given: Mapping[str, Given]) -> Given:
    match wanted:
        case FlagInput(name=name):
            flag = given.get(name, False)
            if not isinstance(flag, bool):
                raise _input_error(formula, name, "yes or no", flag)
            return flag
        case ChoiceInput(name=name, choices=choices, default=default):
            chosen = given.get(name, default)
            if chosen not in choices:
                raise _input_error(formula, name, f"one of {', '.join(choices)}", given.get(name))
            return str(chosen)
        case NumberInput(name=name, default=default):
            value = given.get(name, default)
            if value is None:
                raise _input_error(formula, name, f"a number of {wanted.unit or 'its kind'}", None)
            return _read_number(formula, wanted, value)


def _read_number(formula: Formula, wanted: NumberInput, value: Given) -> float:
    if isinstance(value, bool):
        raise _input_error(formula, wanted.name, "a number", value)
    number = _convert_unit(formula, wanted, value) if isinstance(value, str) else float(value)
    if not wanted.low <= number <= wanted.high:
        low, high = _format_value(wanted.low), _format_value(wanted.high)
        bounds = f"a value from {low} to {high} {wanted.unit}".rstrip()
        raise _input_error(formula, wanted.name, bounds, value)
    return number


def _convert_unit(formula: Formula, wanted: NumberInput, text: str) -> float:
    """Converts "1.2 mg/dL" to the input's unit; a bare number counts as already converted."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise _input_error(formula, wanted.name, f"a quantity in {wanted.unit or 'no unit'}", text)
    unit = match["unit"].strip()
    try:
        return convert_number(wanted, float(match["number"]), unit) if unit else float(match[0])
    except ValueError as error:
        raise _input_error(formula, wanted.name, f"in {wanted.unit or 'no unit'}", text) from error


def convert_number(wanted: NumberInput, number: float, unit: str) -> float:
    """Converts a number from `unit` to the input's unit.

    Raises `ValueError` for a unit of another dimension.
    """
    # Equal spellings need no conversion, and so no pint, which takes a while to load.
    if _spell_unit(unit) == _spell_unit(wanted.unit):
        return number
    if unit.casefold().replace(" ", "") == "mmol/mol" and wanted.name == "hba1c":
        return number * _IFCC_SLOPE + _IFCC_OFFSET
    if wanted.name == "heart_rate" and unit in ("s", "ms"):  # the interval between two beats
        return 60 / number if unit == "s" else 60_000 / number
    # Calcium has two charges, all other ions of the formulas one.
    if wanted.substance == "calcium" and unit.casefold() == "meq/l":
        number /= 2
    units = _unit_registry()
    import pint

    try:
        quantity = units.Quantity(number, _spell_unit(unit))
        if not wanted.substance:
            return float(quantity.to(_spell_unit(wanted.unit)).magnitude)
        mass = MOLAR_MASS[wanted.substance] * units.Unit("g/mol")
        return float(quantity.to(_spell_unit(wanted.unit), "chemistry", mw=mass).magnitude)
    except (pint.PintError, TypeError, AttributeError, AssertionError, ArithmeticError) as error:
        raise ValueError(f"{unit} is not a unit of {wanted.name}") from error


def convert_unit(number: float, unit: str, to: str) -> float | None:
    """The number in another unit; `None` for one of another dimension. As it is where both are
    the same, or one of them is absent or not known."""
    one, other = (re.sub(r"[\s^]", "", u.replace("²", "2")).casefold() for u in (unit, to))
    if one == other or not one or not other:
        return number
    units = _unit_registry()
    import pint

    try:
        return float(units.Quantity(number, _spell_unit(unit)).to(_spell_unit(to)).magnitude)
    except pint.DimensionalityError:
        return None
    except (pint.PintError, ValueError, TypeError, AttributeError, AssertionError, ArithmeticError):
        return number


def _spell_unit(unit: str) -> str:
    """The unit in pint's spelling: cell counts per nanolitre, percent as a unit."""
    return _UNITS.get(unit.replace("×", "").replace("⁹", "^9").replace(" ", ""), unit)


@cache
def _unit_registry() -> UnitRegistry[Any]:
    import pint

    # No cache folder: pint would write into the user's home.
    units: UnitRegistry[Any] = pint.UnitRegistry(cache_folder=None)
    # Valid for the univalent ions that the formulas take.
    units.define("mEq = millimole")
    units.define("IU = enzyme_unit")
    return units


def _input_error(formula: Formula, name: str, wanted: str, got: Given | None) -> BadCalculation:
    have = "nothing was given" if got is None else f"got {got!r}"
    return BadCalculation(f"{formula.id}: {name} should be {wanted}, {have}")


def _format_value(value: Given) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.6g}"
