"""`osler demo`: from nothing to the page with an answered question, in one command."""

from __future__ import annotations

import asyncio
import sys
import time
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.session import CliSession, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from osler.settings import Settings

QUESTION = "What is the eGFR limit for metformin?"


def demo(
    here: CliSession,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Fetch the models, build the sample texts, and open the page on an answered question.

    All of it lies in the folder `demo` of home: your own texts are not touched. The sample texts
    are illustrative, no clinical reference. What is there already is used again. Settings are the
    defaults.
    """
    from osler.settings import Settings
    from osler_serve.cli.serve import run_server

    home = here.load_settings().home / "demo"
    # The defaults: what is configured for a user's own texts has no part in it.
    settings = Settings.model_validate({"home": str(home), "serve": {"port": port}})
    began = time.perf_counter()
    run = _prepare(here, settings)
    seconds, size = time.perf_counter() - began, measure_folder(home)

    def announce(url: str) -> None:
        from osler_serve.page import is_built

        page = f"{url}/#/runs/{run}"
        if here.json:
            write_json({"url": url, "page": page, "seconds": seconds, "bytes": size}, lines=True)
        here.print_line(f"ready in {seconds:.0f} s, {size / 2**20:.0f} MiB in {home}: {page}")
        here.print_line(
            "your own texts: osler kb add FOLDER --source book; osler kb build; osler serve"
        )
        if not is_built():
            here.print_line("the page is not built here (`make page`); the API answers")
        sys.stdout.flush()
        if browser and is_built():
            webbrowser.open(page)

    run_server(here, settings, announce)


def _prepare(here: CliSession, settings: Settings) -> str:
    """Fetches and builds what is not there; returns the id of the answered question's run."""
    from osler.build.graphs import has_graph
    from osler.build.knowledge import build_sample
    from osler.cli.graph import add_graph_files
    from osler.cli.progress import show_progress
    from osler.cli.setup import fetch_models
    from osler.runs.answering import ask
    from osler.types import Question

    steps: list[tuple[str, Callable[[], object]]] = []
    with show_progress(here) as report:
        steps.append(("models", lambda: fetch_models(report)))
        steps.append(("sample texts", lambda: build_sample(settings, report)))
        if not has_graph(settings):
            steps.append(("sample graph", lambda: add_graph_files(settings, sample=True)))
        for name, step in steps:
            here.print_line(f"{name} …")
            step()
    return asyncio.run(ask(settings, Question("demo", QUESTION))).run


def measure_folder(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
