"""`osler feedback`: what readers said of answers, and questions made of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import JsonSession


def feedback(
    here: JsonSession,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the questions of helpful answers to this file, as JSON Lines."),
    ] = None,
) -> None:
    """List feedback on answers and cards, newest first; or export questions from it.

    With --out, the questions whose answers were called helpful, to measure other settings on:
    each has the answer that was given and the passages that it cites. Measured with
    `osler eval run --tasks sample-open=FILE`, questions with options as sample=FILE.
    `osler calibrate --risk` reads the verdicts themselves and needs no file.
    """
    from osler.errors import BadArgument, translate_os_errors
    from osler.runs.feedback import FeedbackStore, helpful_questions

    if out is None:
        found = FeedbackStore(here.load_settings().home).read_all()
        here.show({"feedback": [asdict(one) for one in found]})
        return
    rows = list(helpful_questions(here.load_settings()))
    if not rows:
        raise BadArgument("no answer was called helpful", fix="judge answers on the page")
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    with translate_os_errors(f"{out} cannot be written", BadArgument):
        out.write_text(text, encoding="utf-8")
    line = f"{len(rows)} questions in {out}"
    here.report_line(line, {"path": str(out), "questions": len(rows)})
