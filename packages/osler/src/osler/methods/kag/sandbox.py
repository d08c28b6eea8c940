"""Runs a calculation that a model wrote in an isolated worker.

The interpreter is `pydantic-monty` (extra `math`): a Python of its own without files,
network, environment or imports beyond a few pure modules. KAG 0.8 runs such code in a
plain subprocess with all rights of the user, which is never done here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType

from osler.errors import BadCalculation, require_extra

# Bounds of one calculation. A second is a thousand times what an arithmetic program needs.
SECONDS = 1.0
MEMORY = 64 * 2**20
OUTPUT = 64 * 2**10
"""Bytes of printed text."""
LONGEST = 20_000
"""Characters of a program."""
DEPTH = 300
_LARGEST = 10**300
"""A larger integer is no `float`, and no measure of anything."""

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""The date and time of every calculation."""

LACKING = "statistics, fractions, enum, string, operator, calendar, contextlib, numpy, sympy"
"""Modules that models often import and that do not exist here; prompts name them."""

Plain = bool | int | float | str


@dataclass(frozen=True, slots=True)
class SandboxResult:
    value: Plain
    """Value of the last expression; else the last printed line."""
    printed: str = ""


async def run_calculation(code: str, inputs: Mapping[str, Plain] | None = None) -> SandboxResult:
    """Runs `code` with `inputs` bound as names, so that data never becomes code.

    Time stands still and chance is seeded, so that a run replays. Raises `BadCalculation`
    with the program's own error, which is what a model needs to mend it.
    """
    if len(code) > LONGEST:
        raise BadCalculation(f"a program of {len(code)} characters; at most {LONGEST} are run")
    monty = _load_monty()
    try:
        return await _run_fed(monty, code, dict(inputs or {}))
    except monty.MontyCrashedError as error:
        if error.timed_out:
            raise BadCalculation(f"the program ran longer than {SECONDS:g} s") from error
    try:  # a worker that was killed from outside is replaced: once more
        return await _run_fed(monty, code, dict(inputs or {}))
    except monty.MontyCrashedError as error:
        raise BadCalculation("the program crashed the calculator twice") from error


async def _run_fed(monty: ModuleType, code: str, inputs: dict[str, Plain]) -> SandboxResult:
    printed = monty.CollectString(max_bytes=OUTPUT)
    limits = {
        "max_feed_duration_secs": SECONDS,
        "max_memory": MEMORY,
        "max_recursion_depth": DEPTH,
        "max_suspensions": 10,
    }
    # Fixed time and seed: a replayed run gets the same result.
    still = {"datetime": EPOCH, "sleep": "zero", "random_start": {"seed": 0}}
    try:
        async with (
            # The pool's own timeout backs up the interpreter's: a hung worker is killed.
            monty.AsyncMonty(max_processes=1, request_timeout=3 * SECONDS) as pool,
            pool.checkout(limits=limits, os_policy=still) as session,
        ):
            value = await session.feed_run(code, inputs=inputs, print_callback=printed)
    except monty.MontyCrashedError:
        raise
    except monty.MontyError as error:
        raise BadCalculation(f"the program failed: {str(error)[:500]}") from error
    return _check_value(value, printed.output.strip())


def _check_value(value: object, printed: str) -> SandboxResult:
    if value is None:
        if not printed:
            raise BadCalculation("the program gave no result", fix="end it with the result")
        return SandboxResult(printed.splitlines()[-1].strip(), printed)
    if not isinstance(value, bool | int | float | str):
        value = str(value)
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise BadCalculation("the program gave an integer of over 300 digits")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadCalculation(f"the program gave {value}, which is not a finite number")
    return SandboxResult(value, printed)


def _load_monty() -> ModuleType:
    with require_extra("math", "written calculations need the extra `math`", BadCalculation):
        import pydantic_monty
    return pydantic_monty
