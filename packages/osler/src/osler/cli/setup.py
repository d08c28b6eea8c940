"""`osler init`, `doctor`, `config`, `download-models`: before a question."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession, refuse_options
from osler.cli.progress import show_progress
from osler.cli.session import ABSTAINED, CliSession, write_json

if TYPE_CHECKING:
    from rich.console import Group

    from osler.doctor import DoctorReport
    from osler.kb.store.passages import Progress


def init(
    here: CliSession,
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("osler.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Probe this model server, and set what it supports."),
    ] = None,
    name: Annotated[
        str, typer.Option(help="The model's name on that server, if it has several.")
    ] = "",
) -> None:
    """Write a commented osler.toml with every setting and its default.

    With --model it names that server's model, and has the settings that suit it. Exit code 1: the
    server or its model cannot be used as it is; nothing is written then.
    """
    if model is not None:
        from osler.cli.model_probe import init_with_model

        init_with_model(here, path, model, name, force=force)
        return
    from osler.settings import write_template

    write_template(path, overwrite=force)
    here.report_line(f"{path} written; next: osler doctor", {"path": str(path)})


def doctor(
    here: CliSession,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also passed checks, and each model's capabilities."),
    ] = False,
    model: Annotated[
        bool,
        typer.Option("--model", help="Only probe the model's server, with ten requests."),
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="With --model: write the resulting settings.")
    ] = False,
    install: Annotated[
        bool,
        typer.Option("--install", help="Only hold the installed files against their records."),
    ] = False,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --install: the release's list of hashes."),
    ] = None,
) -> None:
    """Check settings, knowledge base and models, and name the fix for each fault.

    Each model is really asked. What is wrong comes first, then one line on the rest. With --model,
    a server's model is asked what it can do, in under a minute, and the settings that follow are
    shown. With --install, changed, missing and extra files of the installation are named. Exit
    code 1: a check failed.
    """
    if not model:
        refuse_options("it goes with --model", write=write)
    if not install:
        refuse_options("it goes with --install", against=against)
    if model:
        from osler.cli.model_probe import probe_configured

        probe_configured(here, here.load_settings(), write=write)
        return
    from osler.doctor import DoctorReport, run_doctor
    from osler.doctor.install import check_install

    if install:
        report = DoctorReport(tuple(check_install(against)), ())
    else:
        report = run_doctor(here.load_settings())
    page = doctor_page(report, short=here.quiet, everything=everything)
    here.show_result(page, {"ok": report.ok, **asdict(report)})
    if not report.ok:
        raise typer.Exit(ABSTAINED)


def doctor_page(report: DoctorReport, *, short: bool = False, everything: bool = False) -> Group:
    """What is wrong and its fix; then a line on the rest, or with `everything` all of it.

    `short`: only what is wrong.
    """
    from rich.console import Group, RenderableType

    from osler.cli.tables import checks_page, document_page, plain_text
    from osler.cli.words import say

    wrong = [check for check in report.checks if check.status != "pass"]
    wrong.sort(key=lambda check: check.status != "fail")
    parts: list[RenderableType] = [checks_page(wrong)] if wrong else []
    if everything:
        parts.append(checks_page([check for check in report.checks if check.status == "pass"]))
        parts.append(document_page({"models": asdict(report)["models"]}))
    elif not short:
        parts.append(plain_text(say(_rest_line(report, len(wrong)))))
    return Group(*parts)


def _rest_line(report: DoctorReport, wrong: int) -> str:
    right = f"{len(report.checks) - wrong} of {len(report.checks)} checks are right"
    return f"{right} (osler doctor --all)"


def config(
    here: JsonSession,
    origin: Annotated[
        bool, typer.Option("--origin", help="Show where each value comes from.")
    ] = False,
) -> None:
    """Show the settings in force, once all of them are checked.

    Exit code 3: something in them is wrong.
    """
    from osler.settings import flatten_settings, render_settings

    loaded = here.load_layers()
    if not here.json:
        sys.stdout.write(render_settings(loaded, origin=origin))
        return
    values = flatten_settings(loaded.settings)
    if origin:
        write_json({k: {"value": v, "origin": loaded.origins[k]} for k, v in values.items()})
    else:
        write_json(values)


def download_models(here: CliSession) -> None:
    """Fetch the models that Osler works with; what is there already is only checked.

    Without a network, PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER takes the wheels from a folder.
    """
    with show_progress(here) as report:
        paths, notes = fetch_models(report)
    if here.json:
        write_json({"files": [str(path) for path in paths], "notes": notes})
    for line in (*map(str, paths), *notes):
        here.print_line(line)


def fetch_models(report: Progress | None) -> tuple[list[Path], list[str]]:
    """The files of the models, fetched where they lack; and what goes without one."""
    from osler.errors import ModelMissing
    from osler.kb.encoders.base import MiniLMEncoder
    from osler.kb.encoders.e5 import E5Encoder
    from osler.llm.local.gguf_files import default_gguf
    from osler.llm.local.weights import E5, fetch_weights

    notes = []
    paths = fetch_weights(progress=report)
    # What is made from them once, so that the first question need not wait for it.
    paths.append(default_gguf())
    MiniLMEncoder()
    try:
        paths += fetch_weights([E5], progress=report)
        E5Encoder()
    except ModelMissing as error:
        notes.append(f"Chinese is searched by words alone: {error}")
    return paths, notes
