"""`osler train …`: what models learn from, and how they learn it."""

from __future__ import annotations

import typer

app = typer.Typer(no_args_is_help=True)
