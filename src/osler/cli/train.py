"""`osler train …`: what models learn from, and how they learn it."""

from __future__ import annotations

import typer

from osler.cli import train_thinker

app = typer.Typer(no_args_is_help=True)
app.command("thinker-data")(train_thinker.thinker_data)
app.command("evaluate-data")(train_thinker.evaluate_data)
app.command()(train_thinker.recogniser)
