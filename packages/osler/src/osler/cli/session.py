"""The global options, the settings and the error handling that every command shares.

This module is imported to print `--help`, so it imports nothing heavy: settings,
rich and the rest of Osler are imported by the command that needs them.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer._click.core import Context
from typer._click.exceptions import NoArgsIsHelpError, UsageError
from typer._click.formatting import HelpFormatter
from typer.core import TyperGroup

from osler.cli.words import LANGUAGE, choose_language, say, say_all
from osler.errors import OslerError, StorageFailed

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from osler.settings import LoadedSettings, Settings

# Exit codes that no `OslerError` carries (`docs/guide/cli.md` has them all).
ABSTAINED, USAGE, PARTIAL, REFUSED, INTERRUPTED = 1, 2, 6, 7, 130

# Columns of a page that goes to a file or a pipe.
WIDTH = 100

ProgressMode = Literal["auto", "rich", "plain", "json", "none"]

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result.")]


@dataclass
class CliSession:
    """The global options of one call, and what follows from them."""

    file: Path | None = None
    preset: str | None = None
    flags: dict[str, object] = field(default_factory=dict)
    """Settings given as options, by dotted key; `None` = not given."""
    json: bool = False
    quiet: bool = False
    no_color: bool = False
    progress: ProgressMode = "auto"

    def load_layers(
        self, flags: Mapping[str, object] | None = None, *, strategy: str | None = None
    ) -> LoadedSettings:
        """The settings and their origins; `strategy`: where none is named. Raises `BadConfig`."""
        from osler.settings import USUAL_STRATEGY, load

        # An option that was not given leaves what --set says.
        given = {key: value for key, value in (flags or {}).items() if value is not None}
        return load(
            {**self.flags, **given},
            cwd=Path.cwd(),
            env=os.environ,
            preset=self.preset,
            file=self.file,
            strategy=strategy or USUAL_STRATEGY,
        )

    def load_settings(
        self, flags: Mapping[str, object] | None = None, *, strategy: str | None = None
    ) -> Settings:
        """The settings, within the scope of the key where access.key_file names one."""
        from osler.build.privacy import narrow_by_key

        return narrow_by_key(self.load_layers(flags, strategy=strategy).settings)

    def make_console(self, *, stderr: bool = False) -> Console:
        from rich.console import Console

        stream = sys.stderr if stderr else sys.stdout
        # No markup, emoji or highlighting: texts of models and files are data, never commands.
        return Console(
            file=stream,
            no_color=self.no_color or None,
            width=None if stream.isatty() else WIDTH,
            highlight=False,
            markup=False,
            emoji=False,
        )

    def show_result(self, page: RenderableType, document: object) -> None:
        """The result: `document` with `--json`, else `page`."""
        if self.json:
            write_json(document)
        else:
            self.make_console().print(page)

    def show(self, document: object, page: object = None) -> None:
        """The result as plain data: `document` with `--json`; else a table of it, or of `page`
        where a reader wants less than all."""
        if self.json:
            write_json(document)
            return
        from osler.cli.tables import document_page

        self.make_console().print(document_page(document if page is None else page))

    def report_line(self, line: str, document: object) -> None:
        """The result of a command that has no page: `document` with `--json`, else `line`."""
        if self.json:
            write_json(document)
        self.print_line(line)

    def print_line(self, line: str) -> None:
        """A line that only a person wants; silent with `--json` and `--quiet`."""
        if not (self.json or self.quiet):
            sys.stdout.write(f"{say_all(line)}\n")


def open_session(
    context: typer.Context, *, as_json: bool = False, quiet: bool = False
) -> CliSession:
    """The call's session; options after the verb add to those before it."""
    session: CliSession = context.find_root().obj
    # --json may stand before the verb or after it.
    session.json |= as_json
    session.quiet |= quiet
    return session


def parse_flags(given: Iterable[str]) -> dict[str, object]:
    """KEY=VALUE words as flags. Raises a usage error for a word that is none."""
    flags: dict[str, object] = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{word!r} is not KEY=VALUE", param_hint="--set")
        flags[key.strip()] = value.strip()
    return flags


def write_json(document: object, *, lines: bool = False) -> None:
    # NaN is not JSON: a document that holds one is a fault to be seen here, not by the reader.
    text = json.dumps(document, ensure_ascii=False, indent=None if lines else 2, allow_nan=False)
    sys.stdout.write(f"{text}\n")


def complete_strategy(incomplete: str) -> list[str]:
    """For the shell."""
    from osler.settings import STRATEGIES

    return [name for name in STRATEGIES if name.startswith(incomplete)]


def complete_preset(incomplete: str) -> list[str]:
    """For the shell."""
    from osler.settings import read_presets

    return [name for name in read_presets() if name.startswith(incomplete)]


# What a disk says that is full, broken, or not this user's.
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES, errno.EPERM}


def _settings_first(args: list[str]) -> list[str]:
    """The arguments with each `--set KEY=VALUE` before the verb, wherever it was written: no verb
    has an option of this name."""
    words = args[: args.index("--")] if "--" in args else args
    first: list[str] = []
    rest: list[str] = []
    for place, word in enumerate(words):
        is_value = place > 0 and words[place - 1] == "--set"
        (first if is_value or word == "--set" or word.startswith("--set=") else rest).append(word)
    return [*first, *rest, *args[len(words) :]]


class ErrorGroup(TyperGroup):
    """The one place where an `OslerError`, a disk that fails and Ctrl-C become a line and an exit
    code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Kept for the line after Ctrl-C; click takes the words out of `args` while it parses.
        ctx.meta["osler.args"] = list(args)
        LANGUAGE.set(choose_language(os.environ, args))
        Context.formatter_class = HelpFormatter
        if LANGUAGE.get() == "zh":
            from osler.cli.help_page import ChineseFormatter

            Context.formatter_class = ChineseFormatter
        with _told_usage():
            return super().parse_args(ctx, _settings_first(args))

    def invoke(self, ctx: Any) -> Any:
        try:
            with _told_usage():
                return super().invoke(ctx)
        except (OslerError, OSError) as error:
            failed = error if isinstance(error, OslerError) else _storage_error(error)
            _print_error(failed, as_json=isinstance(ctx.obj, CliSession) and ctx.obj.json)
            raise typer.Exit(failed.exit_code) from error
        except KeyboardInterrupt as error:
            again = shlex.join(["osler", *ctx.meta["osler.args"]])
            sys.stderr.write(f"osler: {say(f'interrupted; to go on, run again: {again}')}\n")
            raise typer.Exit(INTERRUPTED) from error


def _storage_error(error: OSError) -> StorageFailed:
    """What a disk says; any other error is raised again."""
    if error.errno not in _DISK:
        raise error
    where = f"{error.filename}: " if error.filename else ""
    fix = "free disk space, or fix the permissions"
    return StorageFailed(f"{where}{error.strerror}", fix=fix)


@contextmanager
def _told_usage() -> Iterator[None]:
    """A command line that cannot be is told in Chinese where that is spoken, else by typer."""
    try:
        yield
    except UsageError as error:
        if LANGUAGE.get() != "zh" or isinstance(error, NoArgsIsHelpError):
            raise
        from osler.cli.help_page import describe_usage

        sys.stderr.write(describe_usage(error))
        raise typer.Exit(USAGE) from error


def _print_error(error: OslerError, *, as_json: bool) -> None:
    from osler.text import escape_controls

    if as_json:
        body = {
            "type": type(error).__name__,
            "message": error.message,
            "fix": error.fix,
            **({"detail": error.detail} if error.detail else {}),
            "exit_code": error.exit_code,
        }
        sys.stderr.write(json.dumps({"error": body}, ensure_ascii=False) + "\n")
    else:
        told = say_all(error.message) + (f"{say('; ')}{say_all(error.fix)}" if error.fix else "")
        sys.stderr.write(f"osler: {escape_controls(' '.join(told.split()))}\n")
        sys.stderr.writelines(f"  {escape_controls(line)}\n" for line in error.detail.splitlines())
