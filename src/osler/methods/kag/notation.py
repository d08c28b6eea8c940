"""Logical forms as text, in the notation of the paper's Table 1; `parse` is the inverse.

Names stand in single quotes; a quote or a backslash within is escaped. What has no
quotes in the paper (types, properties) gets them only where it would not read back.
"""

from __future__ import annotations

import re
from typing import assert_never

from osler.methods.kag.logical_forms import (
    Constraint,
    Deduce,
    Form,
    Math,
    Node,
    Output,
    Plan,
    Retrieval,
    Step,
)

PLAIN = re.compile(r"[^\W_](?:[\w \-/%]*\w)?")
"""A type, property or variable that needs no quotes."""


def render_plan(plan: Plan) -> str:
    """`Step1: …`, `Action1: …`, one line each."""
    return "\n".join(render_step(step) for step in plan.steps)


def render_step(step: Step) -> str:
    return f"Step{step.n}: {step.question}\nAction{step.n}: {render_form(step.action)}"


def render_form(form: Form) -> str:
    match form:
        case Retrieval():
            nodes = zip("spo", form.nodes, strict=True)
            parts = [f"{place}={_node(node)}" for place, node in nodes]
            return f"Retrieval({', '.join([*parts, *map(_constraint, form.constraints)])})"
        case Math():
            return (
                f"Math({_content(form.content)}, target={quote(form.target)}){_arrow(form.alias)}"
            )
        case Deduce():
            inside = f"op={form.op}, {_content(form.content)}, target={quote(form.target)}"
            return f"Deduce({inside}){_arrow(form.alias)}"
        case Output():
            return f"Output({','.join(_plain(name) for name in form.variables)})"
        case _ as never:
            assert_never(never)


def quote(text: str) -> str:
    """In single quotes, with `\\` before a quote or a backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _plain(text: str) -> str:
    return text if PLAIN.fullmatch(text) else quote(text)


def _node(node: Node) -> str:
    kind = f":{_plain(node.type)}" if node.type else ""
    name = f"[{quote(node.name)}]" if node.name or node.id else ""
    id = f"[{quote(node.id)}]" if node.id else ""
    return f"{node.alias}{kind}{name}{id}"


def _constraint(constraint: Constraint) -> str:
    value = constraint.value
    said = quote(value) if isinstance(value, str) else _list(value)
    comparison = " in " if constraint.comparison == "in" else constraint.comparison
    return f"{constraint.on}.{_plain(constraint.property)}{comparison}{said}"


def _content(items: tuple[str, ...]) -> str:
    return f"content={_list(items)}"


def _list(items: tuple[str, ...]) -> str:
    return f"[{', '.join(map(quote, items))}]"


def _arrow(alias: str) -> str:
    return f"->{_plain(alias)}" if alias else ""
