"""The reference pages of the site, generated from the code when the site is built.

mkdocs calls `on_files` (`hooks` in mkdocs.yml). Nothing here lists modules, settings or verbs: they
are discovered, so a page cannot lag behind the code.
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import tempfile
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import osler

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
BROUGHT_IN = {
    "contributing.md": "CONTRIBUTING.md",
    "papers/map.md": "PAPERS.md",
    "evaluation-log.md": "benchmarks/LOG.md",
    "changes.md": "CHANGELOG.md",
}
"""Pages of the site whose text lies elsewhere in the repository."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    verbs, modules = dict(verb_pages()), dict(module_pages())
    pages = {
        "reference/settings.md": settings_page(osler.Settings.model_json_schema()),
        "reference/http.md": http_page(openapi()),
        **verbs,
        **modules,
        "tutorial/examples.md": examples_page(),
        **{page: brought_in(page, ROOT / path) for page, path in BROUGHT_IN.items()},
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    listed = {"Verbs": list(verbs), "Python API": list(modules)}
    config.nav = [_filled(entry, listed) for entry in config.nav or []]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Names of modules, classes and functions link to their documentation.

    On the pages that are written for the site each of them must exist: mkdocs warns of those that
    do not, and --strict makes that an error.
    """
    written = not page.file.generated_by
    if not written and page.file.src_uri not in BROUGHT_IN:
        return markdown

    def linked(found: re.Match[str]) -> str:
        target = found[1].replace(":", ".")
        if target in NO_NAMES:
            return found[0]
        return f'<autoref identifier="{target}"{"" if written else " optional"}>{found[0]}</autoref>'

    blocks = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(one if one.startswith("```") else NAME.sub(linked, one) for one in blocks)


NAME = re.compile(r"(?<!\[)`(osler(?:[.:]\w+)+)(?:\([^`]*\))?`")
"""`osler.package.module`, `osler.package.module:Class`, `osler.package.module.function(…)`."""
NO_NAMES = {"osler.toml", "osler.unread"}
"""A file, and a field of a reply."""


def _filled(entry: Any, listed: dict[str, list[str]]) -> Any:
    """The navigation, with the pages of a generated section in the place of its name."""
    if isinstance(entry, dict):
        return {
            title: listed.get(title) or [_filled(one, listed) for one in below]
            if isinstance(below, list)
            else below
            for title, below in entry.items()
        }
    return entry


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n" if rows else ""


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


def _code(text: object) -> str:
    return f"`{text}`" if str(text) else ""


# Settings, from the JSON Schema of the settings.

PAPER = re.compile(r"\(?\b[^().;:]*(?:§|App\. |Alg\. |Eq\. |Table |released code)[^();]*\)?")


def settings_page(schema: dict[str, Any]) -> str:
    kinds = schema["$defs"]
    parts = [
        "# Settings\n",
        "Every setting, from the schema that Osler checks them against. A setting `key` of the"
        " section `[section]` is `OSLER__SECTION__KEY` in the environment and"
        " `--set section.key=VALUE` on the command line; `\"none\"` lifts a bound."
        " [Where settings come from](../guide/cli.md#where-settings-come-from) has the order of"
        " precedence; `osler config show --origin` prints the values in force and where each was"
        " set. *Origin* names the paper or program that a default is taken from; where it is"
        " empty, the default is Osler's own.\n",
    ]
    plain = {n: f for n, f in schema["properties"].items() if not _section(f)}
    parts += ["## Outside any section\n", _settings_table(plain, {})]
    for name, field in schema["properties"].items():
        if name == "strategy":
            parts += _strategies(field, kinds)
        elif ref := _section(field):
            section = kinds[ref]
            parts += [f"## `[{name}]` {{ #{name} }}\n", f"{field['description']}\n"]
            parts += [_settings_table(section["properties"], field.get("default", {}))]
    return "\n".join(parts)


def _section(field: dict[str, Any]) -> str:
    return str(field.get("$ref", "")).rpartition("/")[2] or ("s" if "oneOf" in field else "")


def _strategies(field: dict[str, Any], kinds: dict[str, Any]) -> Iterator[str]:
    yield "## `[strategy]` { #strategy }\n"
    yield (
        f"{field['description']} `strategy.kind` chooses one of the strategies below, and with it"
        " the other keys of the section. The methods of other papers have the sources of their"
        " defaults in [one table](../guide/baselines.md#where-the-values-come-from).\n"
    )
    for kind, ref in field["discriminator"]["mapping"].items():
        section = kinds[ref.rpartition("/")[2]]
        own = {name: one for name, one in section["properties"].items() if name != "kind"}
        yield f"### `kind = \"{kind}\"` {{ #strategy-{kind} }}\n"
        yield f"{section.get('description', '')}\n"
        yield _settings_table(own, {}) or "It has no further settings.\n"


def _settings_table(fields: dict[str, Any], defaults: dict[str, Any]) -> str:
    rows = []
    for name, field in fields.items():
        told = str(field.get("description", ""))
        found = [one.strip("() .") for one in PAPER.findall(told)]
        default = field.get("default", defaults.get(name, ""))
        rows.append((_code(name), _toml(default), _allowed(field), told, "; ".join(found)))
    return table(("Setting", "Default", "Allowed", "Meaning", "Origin"), rows)


def _toml(value: object) -> str:
    if value is None:
        return '`"none"`'
    if isinstance(value, bool):
        return _code(str(value).lower())
    if isinstance(value, str):
        return f'`"{value}"`' if value else '`""`'
    return _code(value)


def _allowed(field: dict[str, Any]) -> str:
    """What a JSON Schema allows, in words."""
    if "anyOf" in field:
        return " or ".join(_allowed(one) for one in field["anyOf"])
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"the keys of [`[{name.lower()}]`](#{name.lower()})"
    if "enum" in field or "const" in field:
        return ", ".join(_code(one) for one in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_allowed(field.get('items', {}))}"
    if field.get("type") == "null":
        return '`"none"`'
    bounds = [
        f"{sign} {field[key]:,}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if key in field
    ]
    kind = field.get("format") or field.get("type", "any")
    return " ".join([{"integer": "whole number", "string": "text"}.get(kind, kind), *bounds])


# Verbs, from the command line itself.


def verb_pages() -> Iterator[tuple[str, str]]:
    """A page for `osler` and for each group of verbs below it."""
    (script,) = (one for one in entry_points(group="console_scripts") if one.name == "osler")
    owner = importlib.import_module(script.module)
    app = next(one for one in vars(owner).values() if isinstance(one, typer.Typer))
    yield from _group(typer.main.get_command(app), ("osler",), None)


def _group(
    group: Any, path: tuple[str, ...], above: typer.Context | None
) -> Iterator[tuple[str, str]]:
    context = typer.Context(group, info_name=path[-1], parent=above)
    name = " ".join(path)
    groups = {verb: one for verb, one in group.commands.items() if hasattr(one, "commands")}
    text = [f"# {name}\n", *_verb(group, name, context, heading="")]
    if groups:
        rows = [
            (f"[`{name} {verb}`](<{_page((*path, verb)).rpartition('/')[2]}>)", _told(one))
            for verb, one in groups.items()
        ]
        text += [f"{table(('Group', 'Does'), rows)}"]
    for verb, one in group.commands.items():
        if verb not in groups and not one.hidden:
            inner = typer.Context(one, info_name=verb, parent=context)
            text += _verb(one, f"{name} {verb}", inner, heading="## ")
    yield _page(path), "\n".join(text)
    for verb, one in groups.items():
        yield from _group(one, (*path, verb), context)


def _page(path: tuple[str, ...]) -> str:
    return f"reference/verbs/{'-'.join(path)}.md"


def _told(command: Any) -> str:
    return str(command.help or "").split("\n\n")[0]


def _verb(command: Any, name: str, context: typer.Context, *, heading: str) -> Iterator[str]:
    if heading:
        yield f"{heading}{name}\n"
    yield f"{command.help or ''}\n"
    yield f"```text\n{name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    rows = [
        (_code(record[0]), record[1])
        for one in command.get_params(context)
        if (record := one.get_help_record(context)) and "--help" not in record[0]
    ]
    yield table(("Argument or option", "Meaning"), rows)


# The HTTP API, from its OpenAPI document.


def openapi() -> dict[str, Any]:
    from osler.serve.app import create, site

    with tempfile.TemporaryDirectory() as home:
        settings = osler.load({"home": home}, cwd=Path(home), env={}).settings
        made = site(settings, lambda _: "")
        try:
            return dict(create(made).openapi())
        finally:
            made.ledger.close()


def http_page(document: dict[str, Any]) -> str:
    schemas = document["components"]["schemas"]
    parts = [
        "# HTTP API\n",
        "From the OpenAPI document that a running server gives at `/openapi.json`."
        " [The server](../guide/serve.md) explains keys, limits and events. Errors are problem"
        " details (RFC 9457): every status from 400 on has a body of the form"
        f" [Problem](#{_anchor('Problem')}), except below `/v1`, which answers as OpenAI does.\n",
    ]
    tag = ""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                parts.append(f"## {tag.replace('openai', 'OpenAI').replace('_', ' ')}\n")
            parts += _operation(method.upper(), path, operation)
    parts.append("## Schemas\n")
    for name, schema in sorted(schemas.items(), key=lambda one: _short(one[0])):
        parts += [f"### {_short(name)} {{ #{_anchor(name)} }}\n", schema.get("description", "")]
        required = schema.get("required", ())
        rows = [
            (
                _code(key),
                _type(one),
                "yes" if key in required else "",
                _toml(one["default"]) if "default" in one else "",
                str(one.get("description", "")),
            )
            for key, one in schema.get("properties", {}).items()
        ]
        parts.append("\n" + table(("Field", "Type", "Required", "Default", "Meaning"), rows))
    return "\n".join(parts)


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}` {{ #{operation['operationId']} }}\n"
    yield f"{operation.get('description', operation['summary'])}\n"
    rows = [
        (_code(one["name"]), one["in"], _type(one["schema"]), _toml(one["schema"].get("default")))
        for one in operation.get("parameters", ())
    ]
    yield table(("Parameter", "In", "Type", "Default"), rows)
    if body := operation.get("requestBody"):
        yield f"Body: {_content(body)}\n"
    replies = operation["responses"].items()
    told = [f"`{status}` {_content(one)}".rstrip() for status, one in replies if status < "400"]
    wrong = ", ".join(f"`{status}`" for status, _ in replies if status >= "400")
    yield f"Replies: {'; '.join(told)}; errors {wrong}\n"


def _content(told: dict[str, Any]) -> str:
    return ", ".join(
        _type(one["schema"]) if one.get("schema") else _code(kind)
        for kind, one in told.get("content", {}).items()
    )


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{_short(name)}](#{_anchor(name)})"
    if "anyOf" in schema or "oneOf" in schema:
        return " or ".join(_type(one) for one in schema.get("anyOf") or schema["oneOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return "null" if schema.get("type") == "null" else _allowed(schema)


def _short(name: str) -> str:
    """`osler__serve__wire__Usage` is Usage of wire."""
    *owner, last = name.split("__")
    return f"{last} ({owner[-1]})" if owner else last


def _anchor(name: str) -> str:
    return f"schema-{name.lower()}"


# The Python API: a page for each package, with all of its modules.


def module_pages() -> Iterator[tuple[str, str]]:
    yield (
        "reference/python/index.md",
        "# Python API\n\nThe names that `import osler` offers, each documented where it is defined."
        " Everything else is internal: it is documented here as well, a page for each package, and"
        " may change between versions.\n\n" + "\n".join(map(_public, osler.__all__)) + "\n",
    )
    for package in sorted(one.parent for one in SOURCE.rglob("__init__.py")):
        name = ".".join(package.relative_to(SOURCE).parts)
        modules = [
            f"{name}.{one.stem}"
            for one in sorted(package.glob("*.py"))
            if not one.stem.startswith("__")
        ]
        if modules:
            own = f"::: {name}\n    options:\n      members: false\n      show_root_heading: false\n"
            below = "\n".join(f"::: {module}\n" for module in modules)
            yield f"reference/python/{name}.md", f"# {name}\n\n{own}\n{below}"


def _public(name: str) -> str:
    """A public name, documented where it is defined."""
    thing = getattr(osler, name)
    return f"- `osler.{name}`: [`{thing.__module__}.{name}`][{thing.__module__}.{name}]"


# Texts that lie elsewhere in the repository.


def examples_page() -> str:
    parts = [
        "# Examples\n",
        "Complete programs that use Osler as a library. They are in the folder `examples` of the"
        " repository, and tests run them.\n",
    ]
    for path in sorted((ROOT / "examples").glob("*.py")):
        words = path.stem.partition("_")[2]
        code = path.read_text(encoding="utf-8")
        told = (ast.get_docstring(ast.parse(code)) or "").split("\n\n")[0]
        parts += [f"## {words.replace('_', ' ').capitalize()}\n", f"{told} (`{path.name}`)\n"]
        parts += [f"```python\n{code}```\n"]
    return "\n".join(parts)


def brought_in(page: str, source: Path) -> str:
    """The text, with links to pages of the site kept and all others shown as paths."""
    pages = {ROOT / path: ROOT / "docs" / page for page, path in BROUGHT_IN.items()}
    here = (ROOT / "docs" / page).parent

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        path = target.partition("#")[0]
        if "://" in target or not path:
            return found.group(0)
        place = (source.parent / path).resolve()
        place = pages.get(place, place)
        if not place.is_relative_to(ROOT / "docs"):
            return f"{words} (`{path}`)"
        return f"[{words}]({os.path.relpath(place, here)}{target[len(path) :]})"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", link, source.read_text(encoding="utf-8"))

