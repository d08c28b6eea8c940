"""Options that several commands share, and how a command gets them.

A command is a function of a `CliSession` and of its own options. `CommandGroup` turns it into
what typer reads: the session becomes --json and --quiet, a dataclass of options those options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from osler.cli.session import CliSession, Json, Quiet, open_session

Asked = Annotated[
    str | None,
    typer.Argument(help='The question; "-" or nothing = standard input.', show_default=False),
]
Choices = Annotated[
    list[str] | None,
    typer.Option("--option", help="An option to choose from; repeatable."),
]
Planner = Annotated[
    str | None,
    typer.Option(
        help="original, query2doc, prompting, reflexion, serts or trained; auto by default."
    ),
]
Offered = Annotated[
    str | None, typer.Option(help='Sources to choose from, as in "book,guideline".')
]
Trace = Annotated[Path | None, typer.Option(help="Write the events to this file, as JSON Lines.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the files of the data sets, as published.")
]
EstimateAlone = Annotated[
    bool, typer.Option("--estimate", help="Estimate the cost and stop; no model is called.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate the cost, and do nothing.")]


# The session of a command that has --json alone: its result is all that it prints.
JsonSession = Annotated[CliSession, "no --quiet"]

_CONTEXT, _JSON, _QUIET = (
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in (
        ("context", inspect.Parameter.empty, typer.Context),
        ("as_json", False, Json),
        ("quiet", False, Quiet),
    )
)


class CommandGroup(typer.Typer):
    """A typer app whose commands take a session and groups of options."""

    def command(self, name: str | None = None) -> Callable[[Callable[..., None]], Any]:  # type: ignore[override]
        register = super().command(name)
        return lambda function: register(expand_options(function))


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with its session and its dataclasses of options laid open for typer.

    Commands that share options share their list, and hand on what was given as one value.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    opened: list[inspect.Parameter] = []
    last: list[inspect.Parameter] = []
    session = ""
    for parameter in signature.parameters.values():
        if parameter.annotation in (CliSession, JsonSession):
            session = parameter.name
            opened.append(_CONTEXT)
            last = [_JSON] if parameter.annotation is JsonSession else [_JSON, _QUIET]
        elif is_dataclass(parameter.annotation):
            groups[parameter.name] = parameter.annotation
            opened += _group_parameters(parameter.annotation)
        else:
            opened.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def call_command(**given: Any) -> None:
        if session:
            # What typer filled in for the session never reaches the command.
            flags = {name: given.pop(name) for name in ("as_json", "quiet") if name in given}
            given[session] = open_session(given.pop("context"), **flags)
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    # typer reads the parameters of a command from its signature, in this order.
    call_command.__signature__ = signature.replace(parameters=opened + last)  # type: ignore[attr-defined]
    return call_command


def _group_parameters(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for one in fields(group):
        yield inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.default,
            annotation=hints[one.name],
        )
