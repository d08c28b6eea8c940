"""`osler feedback ls|export`: what readers said of answers, and questions made of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from osler.cli.options import JsonSession


def ls(here: JsonSession) -> None:
    """List what was said of answers and cards, newest first."""
    from osler.app.feedback import FeedbackStore

    found = FeedbackStore(here.load_settings().home).read_all()
    here.show({"feedback": [asdict(one) for one in found]})


def export(
    here: JsonSession,
    out: Annotated[Path, typer.Option(help="The file to write, as JSON Lines.")],
) -> None:
    """Write the questions whose answers were called helpful, to measure other settings on.

    Each has the answer that was given and the passages that it cites. Measured with
    `osler eval run --tasks sample-open=FILE`, questions with options as sample=FILE.
    `osler calibrate --risk` reads the verdicts themselves and needs no file.
    """
    from osler.app.feedback import helpful_questions
    from osler.errors import BadArgument, translate_os_errors

    rows = list(helpful_questions(here.load_settings()))
    if not rows:
        raise BadArgument("no answer was called helpful", fix="judge answers on the page")
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    with translate_os_errors(f"{out} cannot be written", BadArgument):
        out.write_text(text, encoding="utf-8")
    line = f"{len(rows)} questions in {out}"
    here.report_line(line, {"path": str(out), "questions": len(rows)})
