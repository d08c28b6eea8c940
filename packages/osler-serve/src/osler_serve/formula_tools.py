"""MCP: verified formulas and written calculations.

A fact of the patient that a formula lacks is asked for where the client can ask its user
(`input_required`; before 2026-07-28 an elicitation).
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel, Field, create_model

from osler.methods.kag.executors import LONGEST, run_calculation
from osler.methods.kag.formulas import (
    FORMULAS,
    ChoiceInput,
    FlagInput,
    Formula,
    NumberInput,
    evaluate_formula,
)
from osler_serve.reading_tools import read_only_hints, report_refusals

FormulaId = Annotated[str, Field(max_length=100)]
Facts = Annotated[dict[str, float | bool | str], Field(max_length=64)]


class Calculation(BaseModel):
    formula_id: str
    """"" for a written calculation, which has no title, unit and source either."""
    title: str
    value: float | bool | str
    unit: str
    inputs: dict[str, float | bool | str]
    """In the formula's own units, defaults among them."""
    assumed: list[str]
    """Inputs that were not given."""
    said: str
    source: str
    note: str


class FormulaInput(BaseModel):
    name: str
    kind: Literal["number", "yes or no", "choice"]
    unit: str = ""
    low: float | None = None
    high: float | None = None
    choices: list[str] = []


class FormulaView(BaseModel):
    formula_id: str
    title: str
    unit: str
    source: str
    inputs: list[FormulaInput]


class FormulaList(BaseModel):
    formulas: list[FormulaView]


def add_calculation(mcp: MCPServer[Any]) -> None:
    @mcp.tool(annotations=read_only_hints("Calculate"))
    @report_refusals
    async def calculate(
        asked: Annotated[ElicitationResult[BaseModel], Resolve(ask_missing)],
        formula_id: FormulaId = "",
        inputs: Facts = {},  # noqa: B006
        python: Annotated[str, Field(max_length=LONGEST)] = "",
    ) -> Calculation:
        """A verified clinical formula, else a calculation in `python`, with `inputs` as its names.

        A formula's quantity is a number in its own unit, or words such as "1.2 mg/dL";
        `list_formulas` says what each takes. Where the client can, its user is asked for what is
        missing. Python reaches no file and no network, and its last expression is the value.
        """
        if bool(formula_id) == bool(python):
            raise ToolError("give formula_id or python, and not both")
        if isinstance(asked, AcceptedElicitation) and isinstance(asked.data, BaseModel):
            inputs = {**inputs, **asked.data.model_dump(exclude_none=True)}
        return await (_run_python(python, inputs) if python else _formula_of(formula_id, inputs))

    @mcp.tool(annotations=read_only_hints("List the formulas"))
    async def list_formulas() -> FormulaList:
        """The verified formulas, with what each takes and where it was published."""
        return FormulaList(formulas=[_formula_view(one) for one in FORMULAS.values()])


def ask_missing(
    context: Context[Any, Any], formula_id: str, inputs: dict[str, float | bool | str]
) -> Elicit[BaseModel] | None:
    """A form for what the formula needs and was not given; `None` where nothing is missing, or
    the client cannot ask: the refusal then names it."""
    formula = FORMULAS.get(formula_id)
    able = context.client_capabilities
    if formula is None or able is None or able.elicitation is None:
        return None
    missing = [
        one
        for one in formula.inputs
        if one.name not in inputs and not isinstance(one, FlagInput) and one.default is None
    ]
    if not missing:
        return None
    names = ", ".join(one.name for one in missing)
    return Elicit(f"{formula.title} needs: {names}.", _facts_form(missing))


def _facts_form(missing: list[NumberInput | ChoiceInput]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for one in missing:
        if isinstance(one, ChoiceInput):
            fields[one.name] = (Literal[one.choices], Field(title=one.name))
        else:
            said = f"In {one.unit}, {one.low:g} to {one.high:g}." if one.unit else one.name
            fields[one.name] = (float, Field(title=one.name, description=said))
    return create_model("MissingFacts", **fields)


async def _formula_of(id: str, inputs: dict[str, float | bool | str]) -> Calculation:
    formula = FORMULAS.get(id)
    if formula is None:
        raise ToolError(f"there is no formula {id!r}; list_formulas names them")
    result = await asyncio.to_thread(evaluate_formula, formula, inputs)
    return Calculation(
        formula_id=formula.id,
        title=formula.title,
        value=result.value,
        unit=formula.unit,
        inputs=dict(result.used),
        assumed=list(result.assumed),
        said=result.text(),
        source=formula.source,
        note=formula.note,
    )


async def _run_python(code: str, inputs: dict[str, float | bool | str]) -> Calculation:
    """Raises `BadCalculation`."""
    done = await run_calculation(code, inputs)
    return Calculation(
        formula_id="",
        title="",
        value=done.value,
        unit="",
        inputs=inputs,
        assumed=[],
        said=f"{done.value}",
        source="",
        note="A written calculation: whether it is the right one, nobody has checked.",
    )


def _formula_view(given: Formula) -> FormulaView:
    return FormulaView(
        formula_id=given.id,
        title=given.title,
        unit=given.unit,
        source=given.source,
        inputs=[_input_view(one) for one in given.inputs],
    )


def _input_view(given: NumberInput | FlagInput | ChoiceInput) -> FormulaInput:
    match given:
        case NumberInput(name=name, unit=unit, low=low, high=high):
            return FormulaInput(name=name, kind="number", unit=unit, low=low, high=high)
        case FlagInput(name=name):
            return FormulaInput(name=name, kind="yes or no")
        case ChoiceInput(name=name, choices=options):
            return FormulaInput(name=name, kind="choice", choices=list(options))
