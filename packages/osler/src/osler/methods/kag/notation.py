"""Renders logical forms in the notation of the paper's Table 1; `kag.parse` is the inverse.

Names are in single quotes; a quote or a backslash inside is escaped. Types and properties,
which have no quotes in the paper, get them only where they would not parse back.
"""

from __future__ import annotations

import re
from typing import assert_never

from osler.methods.kag.logical_forms import (
    Constraint,
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Output,
    PlanStep,
    Retrieval,
    SpoNode,
)

PLAIN = re.compile(r"[^\W_](?:[\w \-/%]*\w)?")
"""A type, property or variable that needs no quotes."""


def render_plan(plan: LogicalPlan) -> str:
    """`Step1: …`, `Action1: …`, one line each."""
    return "\n".join(render_step(step) for step in plan.steps)


def render_step(step: PlanStep) -> str:
    return f"Step{step.n}: {step.question}\nAction{step.n}: {render_form(step.action)}"


def render_form(form: Form) -> str:
    match form:
        case Retrieval():
            nodes = zip("spo", form.nodes, strict=True)
            parts = [f"{place}={_render_node(node)}" for place, node in nodes]
            return f"Retrieval({', '.join([*parts, *map(_render_constraint, form.constraints)])})"
        case Math():
            return f"Math({_render_arguments(form)}){_render_arrow(form.alias)}"
        case Deduce():
            return f"Deduce(op={form.op}, {_render_arguments(form)}){_render_arrow(form.alias)}"
        case Output():
            return f"Output({','.join(_plain_text(name) for name in form.variables)})"
        case _ as never:
            assert_never(never)


def quote_text(text: str) -> str:
    """The text in single quotes, with `\\` before a quote or a backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain_text(text: str) -> str:
    return text if PLAIN.fullmatch(text) else quote_text(text)


def _render_node(node: SpoNode) -> str:
    kind = f":{_plain_text(node.type)}" if node.type else ""
    name = f"[{quote_text(node.name)}]" if node.name or node.id else ""
    id = f"[{quote_text(node.id)}]" if node.id else ""
    return f"{node.alias}{kind}{name}{id}"


def _render_constraint(constraint: Constraint) -> str:
    value = constraint.value
    said = quote_text(value) if isinstance(value, str) else _render_list(value)
    comparison = " in " if constraint.comparison == "in" else constraint.comparison
    return f"{constraint.on}.{_plain_text(constraint.property)}{comparison}{said}"


def _render_arguments(form: Math | Deduce) -> str:
    return f"content={_render_list(form.content)}, target={quote_text(form.target)}"


def _render_list(items: tuple[str, ...]) -> str:
    return f"[{', '.join(map(quote_text, items))}]"


def _render_arrow(alias: str) -> str:
    return f"->{_plain_text(alias)}" if alias else ""
