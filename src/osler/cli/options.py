"""Options that several families of commands have, and groups of options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Asked = Annotated[
    str | None,
    typer.Argument(help='The question; "-" or nothing = standard input.', show_default=False),
]
Choices = Annotated[
    list[str] | None,
    typer.Option("--option", help="An option to choose from; give it once for each."),
]
Planner = Annotated[
    str | None,
    typer.Option(
        help="original, query2doc, prompting, reflexion, serts or trained; auto by default."
    ),
]
Offered = Annotated[str | None, typer.Option(help='Sources on offer, as in "book,guideline".')]
Trace = Annotated[Path | None, typer.Option(help="Write the events to this file, as JSON Lines.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the files of the data sets, as published.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what it would take, and do nothing.")]


def group_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with each parameter that is a dataclass of options given as those options.

    So commands that share options share their list, and hand on what was given as one value.
    """
    told = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        p.name: p.annotation for p in told.parameters.values() if is_dataclass(p.annotation)
    }

    @wraps(command)
    def call_grouped(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        command(**given)

    laid_open = [one for p in told.parameters.values() for one in _option_parameters(p)]
    call_grouped.__signature__ = told.replace(parameters=laid_open)  # type: ignore[attr-defined]
    return call_grouped


def _option_parameters(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    group = parameter.annotation
    if not is_dataclass(group):
        yield parameter
        return
    hints = get_type_hints(group, include_extras=True)
    for one in fields(group):
        yield inspect.Parameter(
            one.name, parameter.kind, default=one.default, annotation=hints[one.name]
        )
