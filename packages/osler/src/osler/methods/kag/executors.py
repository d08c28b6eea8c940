"""Executors of Math and Deduce, the steps that are computed or inferred (KAG-Thinker §3.4).

A calculation that a model wrote runs in an isolated worker, whose interpreter is `pydantic-monty`
(extra `math`): a Python of its own without files, network, environment or imports beyond a few pure
modules. KAG 0.8 runs such code in a plain subprocess with all rights of the user, which is never
done here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from osler.errors import BadCalculation, MalformedOutput, require_extra
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion
from osler.llm.core.grammar import Grammar
from osler.llm.core.grammar.schema import from_schema
from osler.llm.reading.json_replies import json_in
from osler.methods.kag.formulas import (
    FORMULAS,
    ChoiceInput,
    FlagInput,
    Formula,
    Given,
    NumberInput,
    evaluate_formula,
)
from osler.methods.kag.formulas.slots import AmbiguousUnit, settle_bare_numbers
from osler.methods.kag.formulas.targets import nearest_formulas
from osler.methods.kag.logical_forms import Deduce, Math
from osler.methods.kag.parse import answer_or_text, boxed_grammar
from osler.prompts import RenderedPrompt, render_prompt
from osler.trace import Calculated, Noted, Run
from osler.types import Language

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
"""The date and time of every calculation, for a run must replay; so none may ask for today."""
_CLOCK = re.compile(r"\.(?:today|now|utcnow)\(")

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
    if _CLOCK.search(code):
        raise BadCalculation("there is no clock here", fix="take the date from what is known")
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


TRIES = 3
"""Programs that are tried; each prompt shows the error of the previous one."""
_CODE = re.compile(
    r"<python>(.*?)(?:</python>|$)|```(?:python)?\s*\n(.*?)(?:```|$)", re.IGNORECASE | re.DOTALL
)
Chosen = tuple[Formula | None, dict[str, Given]]


@dataclass(frozen=True)
class Calculator:
    """Computes with a verified formula if one fits, else with a program in the sandbox."""

    speaker: Speaker
    formulas: Mapping[str, Formula] | None = None
    """`None` = all of Osler's formulas; empty = programs only (the paper)."""

    async def solve(
        self, n: int, form: Math, content: Sequence[str], language: Language, run: Run
    ) -> str:
        """The result in words; "" when nothing could be computed. `content` has its references
        filled in."""
        # Verified formulas come before generated code: their units, ranges and sources are
        # checked.
        by_formula = await self._by_formula(n, form, content, language, run)
        if by_formula is None:
            return ""
        return by_formula or await self._by_program(n, form, content, language, run)

    async def _by_formula(
        self, n: int, form: Math, content: Sequence[str], language: Language, run: Run
    ) -> str | None:
        """The result; "" where no formula fits, `None` where one does and a unit is missing."""
        known = FORMULAS if self.formulas is None else self.formulas
        offered = nearest_formulas(known, f"{form.target} {' '.join(content)}")
        if not offered:
            return ""
        prompt = render_prompt(
            "kag/formula",
            language,
            formulas=[_describe_formula(formula, language) for formula in offered],
            content=list(content),
            target=form.target,
        )
        names = {formula.id: formula for formula in offered}
        try:
            chosen, inputs = await self.speaker.ask(
                prompt, _choice_parser(names), run, grammar=choice_grammar(offered)
            )
        except MalformedOutput as error:
            run.emit(Noted(f"step {n}: no formula: {error.message}"))
            return ""
        if chosen is None:
            return ""
        try:
            result = evaluate_formula(chosen, settle_bare_numbers(chosen, inputs, content))
        except BadCalculation as error:
            run.emit(Calculated(n, "formula", chosen.id, "", error.message))
            # A program would only guess the unit.
            return None if isinstance(error, AmbiguousUnit) else ""
        value = f"{result.value:.6g} {chosen.unit}".strip()
        run.emit(Calculated(n, "formula", f"{result.text()} ({chosen.source})", value))
        return value

    async def _by_program(
        self, n: int, form: Math, content: Sequence[str], language: Language, run: Run
    ) -> str:
        # Each retry shows the last error, as KAG's released executor does.
        known, error = list(content), ""
        for _ in range(TRIES):
            told = [*known, f"The program before failed: {error}"] if error else known
            prompt = calculation_prompt(form, told, language)
            try:
                code = await self.speaker.ask(prompt, extract_program, run)
            except MalformedOutput as malformed:
                run.emit(Noted(f"step {n}: no program: {malformed.message}"))
                return ""
            try:
                result = await run_calculation(code)
            except BadCalculation as failed:
                error = failed.message
                run.emit(Calculated(n, "python", code, "", error))
            else:
                run.emit(Calculated(n, "python", code, str(result.value)))
                return str(result.value)
        return ""


@dataclass(frozen=True)
class Deducer:
    """Asks the model one question about the known facts, worded by the operation."""

    speaker: Speaker

    async def solve(
        self, n: int, form: Deduce, content: Sequence[str], language: Language, run: Run
    ) -> str:
        prompt = deduction_prompt(form, content, language)
        try:
            return await self.speaker.ask(
                prompt, answer_or_text, run, grammar=boxed_grammar(reason=self.speaker.reasoning)
            )
        except MalformedOutput as error:
            run.emit(Noted(f"step {n}: no deduction: {error.message}"))
            return ""


def calculation_prompt(form: Math, content: Sequence[str], language: Language) -> RenderedPrompt:
    """Asks for a program; `content` and target have their references filled in."""
    return render_prompt(
        "kag/calculate", language, content=list(content), target=form.target, lacking=LACKING
    )


def deduction_prompt(form: Deduce, content: Sequence[str], language: Language) -> RenderedPrompt:
    """Asks for a conclusion; `content` and target have their references filled in."""
    return render_prompt(
        "kag/deduce", language, op=str(form.op), content=list(content), target=form.target
    )


def _describe_formula(formula: Formula, language: Language) -> dict[str, str]:
    inputs = "; ".join(_describe_input(wanted) for wanted in formula.inputs)
    return {"id": formula.id, "title": formula.title_in(language), "inputs": inputs}


def _describe_input(wanted: NumberInput | FlagInput | ChoiceInput) -> str:
    match wanted:
        case NumberInput(name=name, unit=unit):
            return f"{name} ({unit})" if unit else name
        case FlagInput(name=name):
            return f"{name} (true or false)"
        case ChoiceInput(name=name, choices=choices):
            return f"{name} ({' or '.join(choices)})"


def choice_grammar(offered: Sequence[Formula]) -> Grammar:
    """`{"formula": …, "inputs": {…}}` of one of the formulas, or of none; an input may be null."""
    none = {"formula": {"const": "none"}, "inputs": {"const": {}}}
    arms: list[dict[str, Any]] = [
        {"formula": {"const": formula.id}, "inputs": _inputs_schema(formula)} for formula in offered
    ]
    objects = [{"type": "object", "properties": arm, "required": [*arm]} for arm in (*arms, none)]
    return from_schema({"anyOf": objects}, name="formula")


def _inputs_schema(formula: Formula) -> dict[str, Any]:
    names = [wanted.name for wanted in formula.inputs]
    kinds = [{"anyOf": [*_input_schemas(wanted), {"type": "null"}]} for wanted in formula.inputs]
    properties = dict(zip(names, kinds, strict=True))
    return {"type": "object", "properties": properties, "required": names}


def _input_schemas(wanted: NumberInput | FlagInput | ChoiceInput) -> list[dict[str, Any]]:
    match wanted:
        case NumberInput():
            # As a text where it is told in another unit: "128 lb".
            return [{"type": "number"}, {"type": "string", "maxLength": 20}]
        case FlagInput():
            return [{"type": "boolean"}]
        case ChoiceInput(choices=choices):
            return [{"enum": list(choices)}]


def _choice_parser(names: Mapping[str, Formula]) -> Callable[[Completion], Chosen]:
    """A parser of `{"formula": …, "inputs": …}` for the formulas offered."""

    def parse(reply: Completion) -> Chosen:
        expected = 'one JSON object, {"formula": "…", "inputs": {…}}'
        value = json_in(reply.text)
        if not isinstance(value, dict) or not isinstance(value.get("inputs", {}), dict):
            raise MalformedOutput(reply.text, expected=expected)
        if value.get("formula") in (None, "none"):
            return None, {}
        if value["formula"] not in names:
            raise MalformedOutput(reply.text, expected=f"a formula of {', '.join(names)} or none")
        # Nested values are dropped: an input is a number, a text or a yes or no.
        given = {
            k: v
            for k, v in value.get("inputs", {}).items()
            if isinstance(v, bool | int | float | str)
        }
        return names[value["formula"]], given

    return parse


def extract_program(reply: Completion) -> str:
    """The program in `<Python>` or a code block. Raises `MalformedOutput` if absent."""
    match = _CODE.search(reply.text)
    code = next((part for part in match.groups() if part), "") if match else ""
    if not code.strip():
        raise MalformedOutput(reply.text, expected="<Python>a program</Python>")
    return code.strip("\n")
