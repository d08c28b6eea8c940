"""Commands that share a list of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from osler.cli.options import CommandGroup


@dataclass(frozen=True)
class Pace:
    steps: Annotated[int, typer.Option(min=1, help="How many.")] = 2
    name: Annotated[str | None, typer.Option("--called", help="Whose.")] = None


def walk(
    where: Annotated[str, typer.Argument(help="To.")],
    *,
    pace: Pace,
    back: Annotated[bool, typer.Option("--back", help="And home.")] = False,
) -> None:
    """Walk somewhere."""
    typer.echo(f"{where} {pace} {back}")


def app() -> typer.Typer:
    made = CommandGroup()
    made.command()(walk)
    return made


def test_a_group_reaches_the_command_as_one_value() -> None:
    done = CliRunner().invoke(app(), ["home", "--steps", "3", "--called", "x", "--back"])
    assert done.output == "home Pace(steps=3, name='x') True\n"


def test_what_is_not_given_of_a_group_is_its_default() -> None:
    assert CliRunner().invoke(app(), ["home"]).output == "home Pace(steps=2, name=None) False\n"


def test_the_options_of_a_group_keep_their_bounds_and_their_place() -> None:
    assert CliRunner().invoke(app(), ["home", "--steps", "0"]).exit_code == 2
    command = typer.main.get_command(app())
    assert [option.name for option in command.params][:4] == ["where", "steps", "name", "back"]
