"""Verified medical formulas: what a Math step tries before any code is run."""

from __future__ import annotations

from osler.methods.kag.formulas import body, fluids, organs, scores
from osler.methods.kag.formulas.base import (
    ChoiceInput,
    FlagInput,
    Formula,
    FormulaResult,
    Given,
    NumberInput,
    evaluate_formula,
)

__all__ = [
    "FORMULAS",
    "ChoiceInput",
    "FlagInput",
    "Formula",
    "FormulaResult",
    "Given",
    "NumberInput",
    "evaluate_formula",
]

FORMULAS: dict[str, Formula] = {
    formula.id: formula for group in (fluids, organs, body, scores) for formula in group.FORMULAS
}
"""By id."""
