"""Markdown tables, and JSON Schema in words: what several generated pages share."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
NAMES = {"integer": "whole number", "string": "text", "null": "`null`"}


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Nothing at all where there are no rows."""
    if not rows:
        return ""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def code(text: object) -> str:
    return f"`{text}`"


def value(given: object) -> str:
    """A default, as JSON writes it."""
    return code(json.dumps(given, ensure_ascii=False))


def allowed(schema: dict[str, Any], link: Callable[[str], str]) -> str:
    """What a JSON Schema allows; `link` names another schema."""
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(allowed(one, link) for one in several)
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return ", ".join(map(code, schema["enum"]))
    kind = schema.get("format") or schema.get("type", "anything")
    if kind == "array":
        return f"list of {allowed(schema.get('items', {}), link)}"
    pattern = [f"matching {code(schema['pattern'])}"] if "pattern" in schema else []
    return " ".join([NAMES.get(kind, kind), *_bounds(schema), *pattern])


def _bounds(schema: dict[str, Any]) -> list[str]:
    if "minimum" in schema and "maximum" in schema:
        return [f"{schema['minimum']:,} to {schema['maximum']:,}"]
    told = [f"{sign} {schema[key]:,}" for key, sign in BOUNDS.items() if key in schema]
    return [", ".join(told)] if told else []
