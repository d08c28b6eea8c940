"""The command line, `osler <noun|verb>`. It has no logic: it calls what the library offers.

Verbs, exit codes and the order of settings: `docs/guide/cli.md`.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from osler.cli import (
    calibrate,
    evaluate,
    fetch,
    graph,
    graph_communities,
    kb,
    kb_extract,
    kb_index,
    kb_keep,
    kb_push,
    models,
    patients,
    serve,
    setup,
    studies,
    trace,
    train,
    train_tune,
)
from osler.cli.ask import ask, replay
from osler.cli.plan import plan
from osler.cli.plans import plans
from osler.cli.session import CliSession, ProgressMode, RootGroup, complete_preset, parse_flags

app = typer.Typer(
    cls=RootGroup,
    name="osler",
    help="Answer medical questions from evidence, and know when it does not say.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(setup.init)
app.command()(setup.doctor)
app.add_typer(setup.config, name="config", help="The settings in force, and where they come from.")
for command in (*kb_keep.COMMANDS, patients.patients, fetch.fetch):
    kb.app.command()(command)
kb.app.command()(kb_push.push)
kb.app.command()(kb_extract.extract)
kb.app.command()(kb_index.index)
app.add_typer(kb.app, name="kb", help="The knowledge base: what can be found and cited.")
graph.app.command()(graph_communities.communities)
kb.app.add_typer(graph.app, name="graph", help="Concepts, and how they hang together.")
app.command()(ask)
app.add_typer(evaluate.app, name="eval", help="Strategies compared on data sets.")
app.command()(plan)
app.command()(plans)
for tuning in train_tune.COMMANDS:
    train.app.command()(tuning)
app.add_typer(train.app, name="train", help="What models learn from, and how they learn it.")
app.add_typer(trace.app, name="trace", help="Recorded runs.")
app.command()(replay)
app.command()(calibrate.calibrate)
app.command()(studies.attack)
app.command()(studies.sigma)
app.command("download-models")(models.download_models)
app.add_typer(serve.app, name="serve")
app.command()(serve.mcp)
app.command()(serve.deploy)


def main() -> None:
    """The console script. Ends the process with an exit code of `docs/guide/cli.md`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character shows its number instead of failing.
            stream.reconfigure(errors="backslashreplace")
    app()


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
    progress: Annotated[ProgressMode, typer.Option(help="How to show what takes long.")] = "auto",
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say and stop."),
    ] = False,
) -> None:
    context.obj = CliSession(
        file=file,
        preset=profile,
        flags={**parse_flags(given or ()), "kb.path": kb},
        json=as_json,
        quiet=quiet,
        no_color=no_color,
        progress=progress,
    )
