"""The verbs, from the command line itself: a page for `osler` and one for each group of verbs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import typer
from tables import code, table

Path = tuple[str, ...]


def command_line() -> Any:
    """The command `osler`, as the package installs it."""
    (script,) = (one for one in entry_points(group="console_scripts") if one.name == "osler")
    owner = importlib.import_module(script.module)
    app = next(one for one in vars(owner).values() if isinstance(one, typer.Typer))
    return typer.main.get_command(app)


def verb_pages() -> Iterator[tuple[str, str]]:
    """Path of each page, and its Markdown."""
    yield from _group(command_line(), ("osler",), None)


def _group(group: Any, path: Path, above: typer.Context | None) -> Iterator[tuple[str, str]]:
    context = typer.Context(group, info_name=path[-1], parent=above)
    name = " ".join(path)
    groups = {verb: one for verb, one in group.commands.items() if hasattr(one, "commands")}
    verbs = {verb: one for verb, one in group.commands.items() if verb not in groups}
    below = [
        (f"[`{name} {verb}`]({_page((*path, verb)).rpartition('/')[2]})", _first(one))
        for verb, one in groups.items()
    ]
    parts = [f"# {name}\n", *_verb(group, name, context), table(("Group", "Does"), below)]
    for verb, one in verbs.items():
        if not one.hidden:
            inner = typer.Context(one, info_name=verb, parent=context)
            parts += [f"## {name} {verb}\n", *_verb(one, f"{name} {verb}", inner)]
    yield _page(path), "\n".join(parts)
    for verb, one in groups.items():
        yield from _group(one, (*path, verb), context)


def _page(path: Path) -> str:
    return f"reference/verbs/{'-'.join(path)}.md"


def _first(command: Any) -> str:
    return str(command.help or "").partition("\n\n")[0]


def _verb(command: Any, name: str, context: typer.Context) -> Iterator[str]:
    yield f"{command.help or ''}\n"
    yield f"```text\n{name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    records = (one.get_help_record(context) for one in command.get_params(context))
    rows = [(code(one[0]), one[1]) for one in records if one and "--help" not in one[0]]
    yield table(("Argument or option", "Meaning"), rows)
