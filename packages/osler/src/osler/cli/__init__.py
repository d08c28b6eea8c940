"""The command line, `osler <noun|verb>`. It has no logic: it calls what the library offers.

Verbs, exit codes and the order of settings: `docs/guide/cli.md`.
"""

from __future__ import annotations

import atexit
import gc
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from osler.cli.options import LazyGroup, Verb, installed_verbs, list_under, make_verbs
from osler.cli.session import CliSession, ErrorGroup, ProgressMode, complete_preset, parse_flags

# The order of a group is that of its life: made, read, kept, extended.
_GRAPH = make_verbs("osler.cli.graph", "add", "info", "find", "fuse", "communities")
_KB = {
    **make_verbs("osler.cli.kb", "add", "build", "info"),
    **make_verbs("osler.cli.kb_search", "search", "get"),
    **make_verbs("osler.cli.kb", "rm"),
    **make_verbs("osler.cli.kb_keep", "update", "correct", "snapshot", "export", "fetch"),
    **make_verbs("osler.cli.kb_extract", "extract", "index"),
    "graph": Verb("Concepts and their relations.", verbs=_GRAPH),
}


class RootGroup(LazyGroup, ErrorGroup):
    """`osler`. The words are those of the docstrings, written again: help imports nothing."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        **list_under(
            "Ask",
            {
                **make_verbs(
                    "osler.cli.setup",
                    init="Write a commented osler.toml with every setting and its default.",
                    doctor="Check settings, knowledge base and models, and name the fix for each"
                    " fault.",
                    download_models="Fetch the models that Osler works with; what is there already"
                    " is only checked.",
                    config="Show the settings in force, once all of them are checked.",
                ),
                **make_verbs(
                    "osler.cli.ask",
                    ask="Answer a question from cited evidence, or abstain.",
                    plan="Make a plan, to be read, edited and run with `osler ask --plan FILE`.",
                ),
                **make_verbs(
                    "osler.cli.traces",
                    trace="List the recorded runs; show or export one of them, or show several side"
                    " by side.",
                    replay="Replay a recorded run without a model; fails where an event differs.",
                ),
            },
        ),
        **list_under(
            "Texts",
            {"kb": Verb("The knowledge base: what can be found and cited.", verbs=_KB)},
        ),
    }

    def __init__(self, **given: Any) -> None:
        # Not in `verbs`: this module is imported by those that hold the other packages' verbs.
        super().__init__(verbs=installed_verbs(self.verbs), **given)


app = typer.Typer(
    cls=RootGroup,
    name="osler",
    help="Answer medical questions from cited evidence, or abstain.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The console script. Ends the process with an exit code of `docs/guide/cli.md`."""
    from osler.cli.standby import ask_standby

    if (code := ask_standby(sys.argv[1:])) is not None:
        sys.exit(code)
    # What is imported stays: looking through it for garbage takes a tenth of a short command, and
    # at its end nothing is won by it.
    gc.set_threshold(300_000)
    atexit.register(gc.freeze)
    run_command(sys.argv[1:])


def run_command(args: list[str]) -> None:
    """Runs the words of a command line, and ends with `SystemExit`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows its number instead of failing.
            stream.reconfigure(errors="backslashreplace")
    app(args, prog_name="osler")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"osler {version('osler')}\n")
        raise typer.Exit


@app.callback()
def _read_globals(
    context: typer.Context,
    file: Annotated[
        Path | None, typer.Option("--config", help="Settings file, instead of ./osler.toml.")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help='Settings by name, as in "fast" or "tc-rag-uct".', autocompletion=complete_preset
        ),
    ] = None,
    kb: Annotated[Path | None, typer.Option(help="Folder of the knowledge base.")] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help='A setting, as in "roles.reader.name=m"; repeatable.'
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the result.")] = False,
    no_color: Annotated[
        bool, typer.Option("--no-color", help="No colours; NO_COLOR does the same.")
    ] = False,
    progress: Annotated[ProgressMode, typer.Option(help="How to show progress.")] = "auto",
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    context.obj = CliSession(
        file=file,
        preset=profile,
        # --kb comes last, so that it wins over a --set of the same key.
        flags={**parse_flags(given or ()), "kb.path": kb},
        json=as_json,
        quiet=quiet,
        no_color=no_color,
        progress=progress,
    )
