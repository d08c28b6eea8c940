"""The command line, `osler <noun|verb>`. It has no logic: it calls what the library offers.

Verbs, exit codes and the order of settings: `docs/guide/cli.md`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from osler.cli import (
    ask,
    evaluate,
    experts,
    graph,
    kb,
    kb_extract,
    kb_keep,
    kb_search,
    serve,
    setup,
    studies,
    traces,
    train,
    train_make,
    train_thinker,
    train_tune,
)
from osler.cli.options import CommandGroup
from osler.cli.session import CliSession, ProgressMode, RootGroup, complete_preset, parse_flags


def _group(*verbs: Callable[..., None]) -> CommandGroup:
    """A group of verbs, in the order of its `--help`; _ in a function's name is - in the verb."""
    group = CommandGroup(no_args_is_help=True)
    for verb in verbs:
        group.command()(verb)
    return group


app = CommandGroup(
    cls=RootGroup,
    name="osler",
    help="Answer medical questions from evidence, and know when it does not say.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# The order of `--help`: set up, ask, study, serve.
for _verb in (
    setup.init,
    setup.doctor,
    ask.ask,
    ask.plan,
    studies.plans,
    ask.replay,
    setup.calibrate,
    studies.attack,
    studies.sigma,
    setup.download_models,
    serve.mcp,
    serve.deploy,
):
    app.command()(_verb)

# The order of a group is that of its life: made, read, kept, extended.
_KB = _group(
    kb.add,
    kb.build,
    kb.info,
    kb.verify,
    kb_search.search,
    kb_search.get,
    kb.rm,
    kb_keep.update,
    kb_keep.snapshot,
    kb_keep.snapshots,
    kb_keep.rollback,
    kb_keep.export,
    kb_keep.dead,
    kb_search.patients,
    kb_keep.fetch,
    kb_keep.push,
    kb_extract.extract,
    kb_extract.index,
)
_GRAPH = _group(
    graph.add,
    graph.info,
    graph.find,
    graph.paths,
    graph.fuse,
    graph.describe,
    graph.communities,
)
_TRAIN = _group(
    train_make.make_sft,
    train_make.make_dpo,
    train_make.card,
    train_make.agree,
    train_thinker.thinker_data,
    train_thinker.evaluate_data,
    train_thinker.recogniser,
    train.explore,
    train.judge,
    train_tune.sft,
    train_tune.dpo,
    train_tune.thinker,
    train_tune.pretrain,
    train_tune.merge,
    train_tune.gguf,
)
_EXPERTS = _group(
    experts.show,
    experts.train,
    experts.evaluate,
    experts.export,
    experts.use,
    experts.off,
)
# Not in the group above: a function named `list` would hide the built-in one.
_EXPERTS.command("list")(experts.list_experts)
app.add_typer(setup.config, name="config", help="Show and check settings.")
app.add_typer(_KB, name="kb", help="The knowledge base: what can be found and cited.")
_KB.add_typer(_GRAPH, name="graph", help="Concepts and their relations.")
app.add_typer(evaluate.app, name="eval", help="Compare strategies on data sets.")
app.add_typer(_TRAIN, name="train", help="Make training data, and train models.")
app.add_typer(_EXPERTS, name="experts", help="Small trained parts that decide instead of a rule.")
app.add_typer(traces.trace_app, name="trace", help="Show recorded runs.")
app.add_typer(serve.app, name="serve")


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
