"""Verbs, imported when they are used, and the options that several of them share.

A command is a function of a `CliSession` and of its own options. `CommandGroup` turns it into
what typer reads: the session becomes --json and --quiet, a dataclass of options those options.
typer reads them from the function, which takes longer than the rest of a short call. So a group
holds names and words, and makes a command when somebody asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_type_hints

import typer
from typer.core import TyperGroup

from osler.cli.session import CliSession, Json, Quiet, open_session

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter

Asked = Annotated[
    str | None,
    typer.Argument(help='The question; "-" = standard input.', show_default=False),
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


@dataclass(frozen=True)
class Filters:
    """Which texts are searched: the same words at every command that searches."""

    source: Annotated[
        list[str] | None,
        typer.Option("--source", "-s", help='Only these sources, as in "book,guideline".'),
    ] = None
    since: Annotated[
        str | None, typer.Option(help="Only texts from this date on: 2020, 2020-03 or 2020-03-31.")
    ] = None
    until: Annotated[str | None, typer.Option(help="Only texts up to this date.")] = None
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help='Only these kinds of text, as in "rct,guideline".'),
    ] = None
    as_of: Annotated[
        str | None, typer.Option(help="Only what was known on this date, as 2024-01-31.")
    ] = None

    @property
    def is_given(self) -> bool:
        return self != Filters()

    def as_settings(self) -> dict[str, object]:
        """By their keys; `None` where one was not given. Raises `BadFilter`."""
        if (self.since, self.until, self.as_of) != (None, None, None):
            self._check_dates()
        return {
            "kb.sources": self.source and ",".join(self.source),
            "retrieve.since": self.since,
            "retrieve.until": self.until,
            "retrieve.kinds": self.kind and ",".join(self.kind),
            "retrieve.as_of": self.as_of,
        }

    def _check_dates(self) -> None:
        from pydantic import ValidationError

        from osler.errors import BadFilter, describe_invalid
        from osler.settings.sections import RetrieveSettings

        given = {"since": self.since, "until": self.until, "as_of": self.as_of}
        try:
            RetrieveSettings.model_validate(given)
        except ValidationError as error:
            fix = "as in --since 2015 --until 2024-06 --as-of 2024-01-31"
            raise BadFilter(describe_invalid(error), fix=fix) from error


def refuse_options(why: str, **given: object) -> None:
    """Raises a usage error for the first option that was given: it would do nothing here."""
    for name, value in given.items():
        if value:
            raise typer.BadParameter(why, param_hint=f"--{name.replace('_', '-')}")


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
    """Wraps the command for typer: each parameter that is a dataclass becomes one option for each
    of its fields, and the session becomes --json and --quiet.

    When the command is called, the fields are put together again into the dataclass.
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


@dataclass(frozen=True)
class Verb:
    """A command, or a group of commands, by the words of its help and by where it is."""

    help: str = ""
    """Its line in the list of commands; empty = the first line of its docstring."""
    place: str = ""
    """Module and name within it, as in "osler.cli.kb:add"; empty for a group of `verbs`."""
    verbs: Mapping[str, Verb] = field(default_factory=dict)
    part: str = "Commands"
    """The heading under which help lists it."""

    @property
    def summary(self) -> str:
        return self.help or (inspect.getdoc(self._load_object()) or "").partition("\n\n")[0]

    def make_command(self, name: str) -> Command:
        """The command of typer; imports its module."""
        if self.verbs:
            return LazyGroup(
                verbs=self.verbs,
                name=name,
                help=self.help,
                no_args_is_help=True,
            )
        found = self._load_object()
        made = found if isinstance(found, typer.Typer) else CommandGroup()
        if made is not found:
            made.command(name)(found)
        made._add_completion = False
        made.rich_markup_mode = None
        command = typer.main.get_command(made)
        command.name = name
        return command

    def _load_object(self) -> Any:
        module, _, name = self.place.partition(":")
        return getattr(import_module(module), name)


PACKAGES = ("osler_lab", "osler_serve")
PARTS = ("Ask", "Texts", "Serve", "Measure", "Research", "Commands")
"""The headings of help, in the order of a reader's way through them."""


def make_verbs(module: str, *names: str, **helps: str) -> dict[str, Verb]:
    """Makes verbs of functions of a module ("osler.cli.kb"): `names` without a line of help,
    `helps` with one. An underscore in a function's name is a hyphen in its verb."""
    lines = {**dict.fromkeys(names, ""), **helps}
    return {name.replace("_", "-"): Verb(line, f"{module}:{name}") for name, line in lines.items()}


def list_under(part: str, verbs: Mapping[str, Verb]) -> dict[str, Verb]:
    """The verbs under one of `PARTS`."""
    return {name: replace(verb, part=part) for name, verb in verbs.items()}


def installed_verbs(own: Mapping[str, Verb]) -> dict[str, Verb]:
    """The verbs of the laboratory and of the server, where they are installed; those of a group
    that is there already join it.

    Found by name: to ask for entry points takes longer than all else that help does.
    """
    found = dict(own)
    for package in filter(find_spec, PACKAGES):
        for name, verb in import_module(f"{package}.cli").VERBS.items():
            group = found.get(name)
            found[name] = replace(group, verbs={**group.verbs, **verb.verbs}) if group else verb
    return found


class LazyCommands(MutableMapping[str, "Command"]):
    """The commands of a group by name, made when they are first asked for."""

    def __init__(self, verbs: Mapping[str, Verb]) -> None:
        self.verbs = dict(verbs)
        self._made: dict[str, Command] = {}

    def __getitem__(self, name: str) -> Command:
        if name not in self._made:
            self._made[name] = self.verbs[name].make_command(name)
        return self._made[name]

    def __setitem__(self, name: str, command: Command) -> None:
        self.verbs[name], self._made[name] = Verb(command.help or ""), command

    def __delitem__(self, name: str) -> None:
        del self.verbs[name]
        self._made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.verbs)

    def __len__(self) -> int:
        return len(self.verbs)


class LazyGroup(TyperGroup):
    """A group of verbs. Its help is plain text: the boxes of rich cost more than all the rest."""

    verbs: ClassVar[Mapping[str, Verb]] = {}

    def __init__(self, *, verbs: Mapping[str, Verb] | None = None, **given: Any) -> None:
        super().__init__(**{**given, "rich_markup_mode": None})
        self.lazy = LazyCommands(self.verbs if verbs is None else verbs)
        self.commands = self.lazy

    def list_commands(self, ctx: Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        verbs = self.lazy.verbs
        for part in sorted({verb.part for verb in verbs.values()}, key=PARTS.index):
            with formatter.section(part):
                formatter.write_dl([(n, v.summary) for n, v in verbs.items() if v.part == part])
