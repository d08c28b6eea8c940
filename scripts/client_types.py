"""Writes the types of the API's replies for `osler.Client`, from the API's own description:
`python scripts/client_types.py`. A test holds the files to it."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2

PACKAGE = Path(__file__).parents[1] / "src" / "osler" / "client"
# Tags whose replies are in the second file; `openai` and `clinic` have clients of their own.
_SECOND, _OTHERS = {"evaluation", "knowledge", "graph", "uploads"}, {"openai", "clinic"}
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
Schema = dict[str, Any]


def render_types(api: Schema) -> dict[str, str]:
    """Name of each file, and its text."""
    forms: dict[str, Schema] = api["components"]["schemas"]
    first = _forms_of(api, forms, lambda tags: not tags & (_SECOND | _OTHERS))
    second = _forms_of(api, forms, lambda tags: bool(tags & _SECOND)) - first
    shared = sorted(one for one in first if any(_names(forms[two], one) for two in second))
    return {
        "replies.py": _render_file("Replies about runs and threads", first, forms, []),
        "replies_kb.py": _render_file(
            "Replies about knowledge, files and evaluations", second, forms, shared
        ),
    }


def _forms_of(api: Schema, forms: dict[str, Schema], wanted: Any) -> set[str]:
    """The forms of the replies of these operations, and the forms that they name."""
    todo = {
        name
        for ways in api["paths"].values()
        for one in ways.values()
        for status, reply in one["responses"].items()
        if wanted(set(one["tags"])) and status.startswith("2")
        for name in forms
        if _names(reply, name)
    }
    found: set[str] = set()
    while todo:
        found.add(one := todo.pop())
        todo |= {name for name in forms if name not in found and _names(forms[one], name)}
    return found


def _names(schema: Schema, name: str) -> bool:
    return f'"#/components/schemas/{name}"' in json.dumps(schema)


def _render_file(title: str, names: set[str], forms: dict[str, Schema], shared: list[str]) -> str:
    text = [
        f'"""{title}, as the API describes them. Written by scripts/client_types.py."""',
        "",
        "# fmt: off",
        "# ruff: noqa: E501, F401, I001",
        "from __future__ import annotations",
        "",
        "from typing import Any, Literal, NotRequired, TypedDict",
    ]
    if shared:
        text += ["", f"from osler.client.replies import {', '.join(map(_type_name, shared))}"]
    for name in sorted(names):
        needed = forms[name].get("required", [])
        text += ["", f"class {_type_name(name)}(TypedDict):"]
        for field, schema in forms[name]["properties"].items():
            kind = _render_kind(schema)
            text.append(f"    {field}: {kind if field in needed else f'NotRequired[{kind}]'}")
    return "\n".join([*text, ""])


def _type_name(form: str) -> str:
    """ "PassageView" → "PassageJson"."""
    return f"{form.removesuffix('View')}Json"


def _render_kind(schema: Schema) -> str:
    if "$ref" in schema:
        return _type_name(str(schema["$ref"]).rpartition("/")[2])
    if several := schema.get("anyOf"):
        return " | ".join(map(_render_kind, several))
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return f"Literal[{', '.join(json.dumps(one, ensure_ascii=False) for one in values)}]"
    if schema.get("type") == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})]
        return f"list[{' | '.join(dict.fromkeys(map(_render_kind, items)))}]"
    if schema.get("type") == "object":
        more = schema.get("additionalProperties")
        return f"dict[str, {_render_kind(more) if isinstance(more, dict) else 'Any'}]"
    return _PLAIN.get(str(schema.get("type")), "Any")


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    from served import serve_osler

    with tempfile.TemporaryDirectory() as home, serve_osler(Path(home)) as place:
        api = httpx2.get(f"{place.url}/openapi.json", timeout=60).json()
    for name, text in render_types(api).items():
        (PACKAGE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
