"""Verified medical formulas, which a Math step tries before any code is run.

`formulas.toml` has the formulas' titles, inputs with units and ranges, and publications; `compute`
has their functions; `base` reads inputs, converts units and evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osler.methods.kag.formulas.base import (
    ChoiceInput,
    FlagInput,
    Formula,
    FormulaResult,
    Given,
    Input,
    NumberInput,
    evaluate_formula,
)
from osler.methods.kag.formulas.compute import COMPUTE
from osler.text import read_packaged_table

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


def _read_input(entry: str | Mapping[str, Any]) -> Input:
    if isinstance(entry, str):
        return FlagInput(entry)
    if "choices" in entry:
        return ChoiceInput(**{**entry, "choices": tuple(entry["choices"])})
    return NumberInput(**entry)


def _load_formulas() -> dict[str, Formula]:
    entries = read_packaged_table(__package__, "formulas.toml")
    if entries.keys() != COMPUTE.keys():
        raise ValueError(f"formulas.toml and compute.py differ: {entries.keys() ^ COMPUTE.keys()}")
    return {
        id: Formula(
            **{
                **entry,
                "inputs": tuple(map(_read_input, entry["inputs"])),
                "aliases": tuple(entry["aliases"]),
            },
            id=id,
            compute=COMPUTE[id],
        )
        for id, entry in entries.items()
    }


FORMULAS: dict[str, Formula] = _load_formulas()
"""By id."""
