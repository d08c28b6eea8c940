"""`osler demo`: from nothing to the page with an answered question, in one command."""

from __future__ import annotations

import asyncio
import json
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
UPLOADS = "own"
"""The source of files that are dragged onto the page."""


def demo(
    here: CliSession,
    port: Annotated[
        int,
        typer.Option(min=0, max=65_535, help="Port to listen on; 0 = the last one, if it is free."),
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
    last, note = _read_last(home / "demo.json"), home / "demo.json"
    # The defaults: what is configured for a user's own texts has no part in it.
    serve = {"port": port or _free_port(last), "uploads": [UPLOADS]}
    settings = Settings.model_validate({"home": str(home), "serve": serve})
    began = time.perf_counter()
    run = _prepare(here, settings, str(last.get("run", "")))
    seconds, size = time.perf_counter() - began, measure_folder(home)

    def announce(url: str) -> None:
        from osler_serve.page import is_built

        note.write_text(json.dumps({"run": run, "port": int(url.rpartition(":")[2])}))
        page = f"{url}/#/runs/{run}"
        if here.json:
            write_json({"url": url, "page": page, "seconds": seconds, "bytes": size}, lines=True)
        here.print_line(f"ready in {seconds:.0f} s, {size / 2**20:.0f} MiB in {home}: {page}")
        here.print_line(
            "your own texts: drag them onto the page; without the sample: osler kb add FOLDER"
            " --source book; osler kb build; osler serve"
        )
        if not is_built():
            here.print_line("the page is not built here (`make page`); the API answers")
        sys.stdout.flush()
        if browser and is_built():
            webbrowser.open(page)

    run_server(here, settings, announce)


def _read_last(note: Path) -> dict[str, object]:
    """The run and the port of the last start; empty without one."""
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _free_port(last: dict[str, object]) -> int:
    """The last start's port where it is free, so that a tab that is still open finds the page."""
    from osler_serve.transport import open_sockets

    port = last.get("port")
    if not isinstance(port, int) or not 0 < port < 65_536:
        return 0
    try:
        open_sockets("127.0.0.1", port).close()
    except OSError:
        return 0
    return port


def _prepare(here: CliSession, settings: Settings, last: str) -> str:
    """Fetches and builds what is not there; returns the id of the answered question's run, the
    `last` one's if it is still there."""
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
    if last and (settings.runs.path / last).is_dir():
        return last
    return asyncio.run(ask(settings, Question("demo", QUESTION))).run


def measure_folder(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
