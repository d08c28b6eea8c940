"""The HTTP API, from the OpenAPI document of the server."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tables import allowed, code, table, value

import osler
from osler_serve.app import build_state, create_app

ABOUT = """\
# HTTP API

This page is generated from the OpenAPI document, which a running server gives at `/openapi.json`.
[The server](../guide/serve.md) explains keys, limits and events. Every status from 400 on has a
body of the form [Problem](#schema-problem) (RFC 9457), except below `/v1`, where errors have
OpenAI's form.
"""


def openapi() -> dict[str, Any]:
    """The document, of a server that is never started."""
    with tempfile.TemporaryDirectory() as home:
        settings = osler.load({"home": home}, cwd=Path(home), env={}).settings
        made = build_state(settings, lambda _: "")
        try:
            return dict(create_app(made).openapi())
        finally:
            made.ledger.close()


def http_page() -> str:
    document = openapi()
    tagged: dict[str, list[str]] = defaultdict(list)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tagged[operation["tags"][0]] += _operation(method.upper(), path, operation)
    parts = [ABOUT]
    for tag, told in tagged.items():
        parts += [f"## {tag.capitalize().replace('Openai', 'OpenAI')}\n", *told]
    parts.append("## Schemas\n")
    for name, schema in sorted(document["components"]["schemas"].items(), key=_by_short_name):
        parts += _schema(name, schema)
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}` {{ #{operation['operationId']} }}\n"
    yield f"{operation.get('description', operation['summary'])}\n"
    parameters = operation.get("parameters", ())
    rows = [(code(one["name"]), one["in"], *_typed(one["schema"])) for one in parameters]
    yield table(("Parameter", "In", "Type", "Default"), rows)
    if body := operation.get("requestBody"):
        yield f"Body: {_content(body)}\n"
    replies = operation["responses"].items()
    told = "; ".join(f"{code(status)} {_content(one)}" for status, one in replies if status < "4")
    errors = ", ".join(code(status) for status, _ in replies if status >= "4")
    yield f"Replies: {told}. Errors: {errors}\n"


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {_short(name)} {{ #{_anchor(name)} }}\n"
    yield f"{schema.get('description', '')}\n"
    required = schema.get("required", ())
    rows = [
        (code(key), *_typed(one), "yes" if key in required else "", one.get("description", ""))
        for key, one in schema.get("properties", {}).items()
    ]
    yield table(("Field", "Type", "Default", "Required", "Meaning"), rows)


def _typed(schema: dict[str, Any]) -> tuple[str, str]:
    return allowed(schema, _link), value(schema["default"]) if "default" in schema else ""


def _content(told: dict[str, Any]) -> str:
    forms = told.get("content", {}).items()
    return ", ".join(
        allowed(one["schema"], _link) if one.get("schema") else code(kind) for kind, one in forms
    )


def _link(name: str) -> str:
    return f"[{_short(name)}](#{_anchor(name)})"


def _short(name: str) -> str:
    """`osler__serve__wire__Usage` is Usage (wire)."""
    *owner, last = name.split("__")
    return f"{last} ({owner[-1]})" if owner else last


def _by_short_name(item: tuple[str, Any]) -> str:
    return _short(item[0])


def _anchor(name: str) -> str:
    return f"schema-{name.lower()}"
