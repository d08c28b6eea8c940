"""The command line, `osler <noun|verb>`. It has no logic: it calls what the library offers.

Verbs, exit codes and the order of settings: `docs/guide/cli.md`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from osler.cli.lazy import LazyGroup, Verb, make_verbs
from osler.cli.session import CliSession, ErrorGroup, ProgressMode, complete_preset, parse_flags

# The order of a group is that of its life: made, read, kept, extended.
_GRAPH = make_verbs(
    "graph", "add", "info", "find", "paths", "fuse", "describe", "communities", "vectors"
)
_KB = {
    **make_verbs("kb", "add", "build", "info", "verify"),
    **make_verbs("kb_search", "search", "get"),
    **make_verbs("kb", "rm"),
    **make_verbs("kb_keep", "update", "correct", "snapshot", "rollback", "export"),
    **make_verbs("kb_keep", "release"),
    **make_verbs("kb_search", "patients"),
    **make_verbs("fhir", "record"),
    **make_verbs("kb_keep", "fetch", "push"),
    **make_verbs("kb_extract", "extract", "index"),
    "graph": Verb("Concepts and their relations.", verbs=_GRAPH),
}
_EVAL = {
    **make_verbs("evaluate_results", "judge", "agree", "ratings"),
    **make_verbs("evaluate", "run", "tasks"),
    **make_verbs("evaluate_natural", "natural"),
    **make_verbs("evaluate_results", "report", "compare", "merge", "show"),
}
_TRAIN = {
    **make_verbs("train_make", "make", "card", "agree"),
    **make_verbs("train_thinker", "thinker_data", "evaluate_data"),
    **make_verbs("train", "explore", "judge"),
    **make_verbs("train_tune", "sft", "alora", "dpo", "thinker", "pretrain", "merge", "gguf"),
}
_EXPERTS = {
    **make_verbs("experts", "show", "export", "use", "off"),
    "list": Verb(place="experts:list_experts"),
}


# The headings of `osler --help`, in the order of a reader's way through them.
_PARTS = {
    "Ask": "init doctor download-models config ask plan kag trace thread replay export feedback",
    "Texts": "kb watch forget",
    "Serve": "serve mcp deploy audit backup restore",
    "Measure": "eval scoreboard calibrate attack sigma plans",
    "Research": "train experts",
}


# The words are those of the docstrings, written again so that help imports nothing.
_VERBS = {
    "init": Verb("Write a commented osler.toml with every setting and its default.", "setup:init"),
    "doctor": Verb(
        "Check settings, knowledge base and models, and name the fix for each fault.",
        "setup:doctor",
    ),
    "ask": Verb(
        "Answer a question from cited evidence, or say that the evidence does not.", "ask:ask"
    ),
    "plan": Verb(
        "Make a source plan, to be read, edited and run with `osler ask --plan FILE`.",
        "ask:plan",
    ),
    "kag": Verb(
        "Take a question apart as KAG-Thinker does: the plan, each step with its set, the answer.",
        "kag:kag",
    ),
    "plans": Verb(
        "Measure source plans: accuracy without each source in turn, queries, words,"
        " diversity, cost.",
        "studies:plans",
    ),
    "replay": Verb(
        "Replay a recorded run without a model; fails where an event differs.", "ask:replay"
    ),
    "export": Verb(
        "Write a recorded answer with its references for other programs.", "export:export"
    ),
    "calibrate": Verb(
        "Fit the least sureness of an answer, TC-RAG's sigma, or KAG-Thinker's tau.",
        "calibrate:calibrate",
    ),
    "attack": Verb(
        "Attack TC-RAG's first tool call with noise, in six ways (TC-RAG App. 8.6).",
        "studies:attack",
    ),
    "poison": Verb(
        "Plant wrong passages in a copy of the knowledge base, and count who cites them.",
        "studies:poison",
    ),
    "inject": Verb(
        "Hide orders in documents, and count the answers that obey them.", "studies:inject"
    ),
    "sigma": Verb(
        "Measure the effect of TC-RAG's threshold: halts, steps, tokens and EM over sigma (§6.5).",
        "studies:sigma",
    ),
    "download-models": Verb(
        "Fetch the models that Osler works with; what is there already is only checked.",
        "setup:download_models",
    ),
    "backup": Verb(
        "Write all that home holds, but caches, and the settings into one file.",
        "backup:backup",
    ),
    "restore": Verb(
        "Put a backup where the settings say that each part lies; nothing may lie there yet.",
        "backup:restore",
    ),
    "mcp": Verb(
        "Speak the Model Context Protocol on standard input and output: read-only tools.",
        "serve:mcp",
    ),
    "deploy": Verb(
        "Write files to run Osler as a service (container, systemd, compose, Kubernetes), or"
        " make one journey through a running server: `osler deploy check URL`.",
        "serve:deploy",
    ),
    "config": Verb("Show the settings in force, once all of them are checked.", "setup:config"),
    "watch": Verb(
        "Take in what comes, changes or goes in a folder, and build, until it is stopped.",
        "kb_keep:watch",
    ),
    "kb": Verb("The knowledge base: what can be found and cited.", verbs=_KB),
    "eval": Verb("Compare strategies on data sets.", verbs=_EVAL),
    "scoreboard": Verb(
        "Every strategy on the same questions, and the page of it.",
        verbs=make_verbs("scoreboard", "run", "report"),
    ),
    "train": Verb("Make training data, and train models.", verbs=_TRAIN),
    "experts": Verb("Small trained parts that decide instead of a rule.", verbs=_EXPERTS),
    "forget": Verb(
        "Take a text, a document or a patient out of the knowledge base, its indexes and"
        " snapshots, of recorded runs, tapes, conversations, evaluations and caches."
        " Stop the server first.",
        "forget:forget",
    ),
    "audit": Verb(
        "The audit log: who asked what, and what was shown.",
        verbs=make_verbs("audit", "verify", "show", "prove"),
    ),
    "thread": Verb(
        "Conversations: questions that belong together.",
        verbs=make_verbs("threads", "show", "again", "rm"),
    ),
    "feedback": Verb(
        "List what was said of answers and cards, newest first; or make questions of it.",
        "feedback:feedback",
    ),
    "trace": Verb(
        "List the recorded runs; show one of them, or several side by side.", "traces:trace"
    ),
    "serve": Verb(
        "Answer over HTTP: the native API, the OpenAI-compatible endpoint, and MCP.",
        "serve:app",
    ),
}


class RootGroup(LazyGroup, ErrorGroup):
    """`osler`."""

    verbs: ClassVar[Mapping[str, Verb]] = {
        name: replace(_VERBS[name], part=part)
        for part, names in _PARTS.items()
        for name in names.split()
    }


app = typer.Typer(
    cls=RootGroup,
    name="osler",
    help="Answer medical questions from evidence, and know when it does not say.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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
