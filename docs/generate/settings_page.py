"""The settings, from the JSON Schema that they are checked against."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tables import allowed, code, table, value

import osler
from osler.settings.fields import SettingsSection
from osler.settings.show import describe_fields

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
{} `strategy.kind` selects one of the strategies below, and with it the other keys of the section.
The origins of the baselines' defaults are in
[one table](../papers/baselines.md#defaults).
"""
HEADS = ("Setting", "Default", "Allowed", "Meaning", "Origin")
ORIGIN = re.compile(r"§|App\. |Alg\. |Eq\. |Table |released")


def settings_page() -> str:
    schema = osler.Settings.model_json_schema()
    _describe(schema, osler.Settings)
    for section in _find_sections(SettingsSection):
        if found := schema["$defs"].get(section.__name__):
            _describe(found, section)
    return "\n".join(_SettingsPage(schema).parts())


def _find_sections(base: type[SettingsSection]) -> Iterator[type[SettingsSection]]:
    for section in base.__subclasses__():
        yield section
        yield from _find_sections(section)


def _describe(schema: dict[str, Any], section: type[SettingsSection]) -> None:
    """Puts what each field is for into the schema, which is made without."""
    for name, said in describe_fields(section).items():
        if said and name in schema["properties"]:
            schema["properties"][name].setdefault("description", said)


class _SettingsPage:
    def __init__(self, schema: dict[str, Any]) -> None:
        self.fields: dict[str, dict[str, Any]] = schema["properties"]
        self.kinds: dict[str, dict[str, Any]] = schema["$defs"]
        self.section_of = {_name(one["$ref"]): s for s, one in self.fields.items() if "$ref" in one}

    def parts(self) -> Iterator[str]:
        yield ABOUT
        sections = {*self.section_of.values()}
        for name, field in self.fields.items():
            if name not in sections and "oneOf" not in field:
                yield self._table({name: field})
        for name, field in self.fields.items():
            if "oneOf" in field:
                yield from self._strategies(name, field)
            elif name in sections:
                yield f"## `[{name}]` {{ #{name} }}\n\n{field['description']}\n"
                yield self._table(self.kinds[_name(field["$ref"])]["properties"])

    def _strategies(self, name: str, field: dict[str, Any]) -> Iterator[str]:
        yield f"## `[{name}]` {{ #{name} }}\n\n{STRATEGIES.format(field['description'])}"
        for strategy, ref in field["discriminator"]["mapping"].items():
            section = self.kinds[_name(ref)]
            own = {key: one for key, one in section["properties"].items() if key != "kind"}
            yield f'### `kind = "{strategy}"` {{ #{name}-{strategy} }}\n'
            yield f"{section.get('description', '')}\n"
            yield self._table(own) or "This strategy has no other settings.\n"

    def _table(self, fields: dict[str, Any]) -> str:
        return table(HEADS, [self._row(name, one) for name, one in fields.items()])

    def _row(self, name: str, field: dict[str, Any]) -> tuple[str, ...]:
        told = str(field.get("description", ""))
        default = value(field["default"]) if "default" in field else "computed"
        kinds = allowed(field, self._link)
        none = [one.replace("`null`", '`"none"`') for one in (default, kinds)]
        return code(name), *none, told, _origin(told)

    def _link(self, kind: str) -> str:
        section = self.section_of[kind]
        return f"a table with the keys of [`[{section}]`](#{section})"


def _name(ref: str) -> str:
    return ref.rpartition("/")[2]


def _origin(told: str) -> str:
    """What the description says in parentheses, or says alone, of a place in a paper."""
    said = re.findall(r"\(([^()]*)\)", told) or [told]
    return "; ".join(one.rstrip(".") for one in said if ORIGIN.search(one) and len(one) < 100)
