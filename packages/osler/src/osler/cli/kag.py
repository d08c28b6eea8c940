"""`osler kag`: the plan of a question, what each of its steps came to, and a plan run as edited."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.ask import read_question
from osler.cli.options import Asked, Choices, Trace
from osler.cli.run_output import first_step, make_report, show_result, watch_events
from osler.cli.session import CliSession
from osler.errors import BadConfig, BadRun, read_text_file, translate_os_errors


def kag(
    here: CliSession,
    question: Asked = None,
    option: Choices = None,
    forms: Annotated[
        Path | None,
        typer.Option(help="Run the plan of this file as it stands: one of --out, edited or not."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan here.")] = None,
    trace: Trace = None,
) -> None:
    """Take a question apart as KAG-Thinker does: the plan, each step with its set, the answer.

    Exit codes as those of `osler ask`.
    """
    flags: dict[str, object] = {"strategy.kind": "kag-thinker"}
    if forms is not None:
        flags["strategy.forms"] = read_text_file(forms, BadConfig)
    settings, asked = here.load_settings(flags), read_question(question, tuple(option or ()))
    from osler.cli.render import plan_block
    from osler.runs.answering import ask as solve
    from osler.trace import proof_steps

    with watch_events(here, trace, first=first_step(settings), film=False) as sink:
        report = make_report(asyncio.run(solve(settings, asked, sink=sink)), asked)
    steps = proof_steps(report.events)
    if out is not None:
        with translate_os_errors(f"{out} cannot be written", BadRun):
            out.write_text("".join(f"{step.wire}\n" for step in steps), encoding="utf-8")
    if not (here.json or here.quiet):
        here.make_console().print(*plan_block(steps), sep="\n", end="\n\n")
    show_result(here, report, film=False)
