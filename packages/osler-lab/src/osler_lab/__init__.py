"""Osler's laboratory: methods to compare with, evaluation, training.

| Package | Holds |
|---|---|
| `baselines` | the methods that the papers compare with, on the same models, searches and budget |
| `evaluate` | data sets, measures, reports |
| `studies` | calibration, sensitivity, robustness; evaluations made from settings |
| `train` | training data, and training |
| `build`, `cli` | training from settings; the verbs that it adds to `osler` |

`osler_lab.measure_solver` measures a solver in one call; it is loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from osler_lab.evaluate.measuring import measure_solver

__all__ = ["measure_solver"]


def __getattr__(name: str) -> Any:
    if name == "measure_solver":
        from osler_lab.evaluate import measuring

        return measuring.measure_solver
    raise AttributeError(f"module 'osler_lab' has no attribute {name!r}")
