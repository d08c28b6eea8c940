"""Verbs that are imported when they are used: `osler --help` imports none of them.

typer reads the options of a command from its function, which takes longer than the rest of
a short call. So a group holds names and words, and makes a command when somebody asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import typer
from typer.core import TyperGroup

from osler.cli.options import CommandGroup

if TYPE_CHECKING:
    from typer._click import Command, Context, HelpFormatter


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


def make_verbs(module: str, *names: str) -> dict[str, Verb]:
    """Functions of a module, "osler.cli.kb", as verbs; _ in a function's name is - in the verb."""
    return {name.replace("_", "-"): Verb(place=f"{module}:{name}") for name in names}


def list_under(part: str, verbs: Mapping[str, Verb]) -> dict[str, Verb]:
    """The verbs under one of `PARTS`."""
    return {name: replace(verb, part=part) for name, verb in verbs.items()}


def installed_verbs() -> dict[str, Verb]:
    """The verbs of the laboratory and of the server, where they are installed.

    Found by name: to ask for entry points takes longer than all else that help does.
    """
    found: dict[str, Verb] = {}
    for package in PACKAGES:
        if find_spec(package):
            found |= import_module(f"{package}.cli").VERBS
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
