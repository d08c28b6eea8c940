"""The settings, from the JSON Schema that they are checked against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tables import allowed, code, table, value

import osler

ABOUT = """\
# Settings

This page is generated from the schema that Osler checks settings against. A setting `key` of the
section `[section]` is `OSLER__SECTION__KEY` in the environment and `--set section.key=VALUE` on
the command line. `"none"` lifts a bound. [Where settings come
from](../guide/cli.md#where-settings-come-from) has the order of precedence, and `osler config
show --origin` prints the values in force with the place where each was set.

*Origin* names the paper or program that a default is taken from. Where it is empty, the default is
Osler's own.
"""
STRATEGIES = """\
{} `strategy.kind` selects one of the strategies below, and with it the other keys of the section. The
origins of the baselines' defaults are in
[one table](../guide/baselines.md#where-the-values-come-from).
"""
HEADS = ("Setting", "Default", "Allowed", "Meaning", "Origin")
ORIGIN = re.compile(r"[^().;:]*(?:§|App\. |Alg\. |Eq\. |Table |released code)[^();]*")


def settings_page() -> str:
    return "\n".join(_parts(osler.Settings.model_json_schema()))


def _parts(schema: dict[str, Any]) -> Iterator[str]:
    kinds = schema["$defs"]
    yield ABOUT
    for name, field in schema["properties"].items():
        if "$ref" not in field and "oneOf" not in field:
            yield _table({name: field}, {})
    for name, field in schema["properties"].items():
        if "oneOf" in field:
            yield from _strategies(name, field, kinds)
        elif "$ref" in field:
            yield f"## `[{name}]` {{ #{name} }}\n\n{field['description']}\n"
            yield _table(_kind(field["$ref"], kinds)["properties"], field.get("default", {}))


def _kind(ref: str, kinds: dict[str, Any]) -> dict[str, Any]:
    return dict(kinds[ref.rpartition("/")[2]])


def _strategies(name: str, field: dict[str, Any], kinds: dict[str, Any]) -> Iterator[str]:
    yield f"## `[{name}]` {{ #{name} }}\n\n{STRATEGIES.format(field['description'])}"
    for strategy, ref in field["discriminator"]["mapping"].items():
        section = _kind(ref, kinds)
        own = {key: one for key, one in section["properties"].items() if key != "kind"}
        yield f'### `kind = "{strategy}"` {{ #{name}-{strategy} }}\n'
        yield f"{section.get('description', '')}\n"
        yield _table(own, {}) or "This strategy has no other settings.\n"


def _table(fields: dict[str, Any], defaults: dict[str, Any]) -> str:
    return table(HEADS, [_row(name, one, defaults) for name, one in fields.items()])


def _row(name: str, field: dict[str, Any], defaults: dict[str, Any]) -> tuple[str, ...]:
    told = str(field.get("description", ""))
    default = field["default"] if "default" in field else defaults.get(name, ...)
    shown = {None: '`"none"`', ...: "computed"}.get(default) if _single(default) else None
    words = allowed(field, lambda ref: f"a table, as [`[{ref.lower()}]`](#{ref.lower()})")
    origin = "; ".join(one.strip(" .") for one in ORIGIN.findall(told))
    return code(name), shown or value(default), words.replace("`null`", '`"none"`'), told, origin


def _single(default: object) -> bool:
    return default is None or default is ...
