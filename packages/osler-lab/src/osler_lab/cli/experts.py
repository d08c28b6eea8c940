"""`osler experts …`: small trained models, their cards, and which are in use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from osler.cli.session import CliSession

ExpertName = Annotated[str, typer.Argument(help="Name of the expert: judge, match, supports.")]
ExpertFolder = Annotated[
    Path | None, typer.Option(help="An expert of your own; else the one that comes with Osler.")
]


def list_experts(here: CliSession) -> None:
    """List the experts that come with Osler: what each decides, its size, and whether it is in
    use."""
    settings = here.load_settings()
    from osler.retrieve.experts.shelf import packaged_experts
    from osler_lab.build.experts import expert_in_use
    from osler_lab.cli.expert_pages import experts_page

    rows = [(one, expert_in_use(settings, one.card.name)) for one in packaged_experts()]
    document = [
        {"name": one.card.name, "question": one.card.question, "bytes": one.bytes, "use": use}
        for one, use in rows
    ]
    here.show_result(experts_page(rows), {"experts": document})


def show(here: CliSession, name: ExpertName, folder: ExpertFolder = None) -> None:
    """Show an expert's card: base, data, figures beside the rule, and what it is bad at."""
    from osler.retrieve.experts.shelf import open_expert
    from osler_lab.cli.expert_pages import card_page

    found = open_expert(name, folder)
    here.show_result(card_page(found), found.card.model_dump(mode="json"))


def export(
    here: CliSession,
    name: ExpertName,
    out: Annotated[Path, typer.Option(help="Folder to write to; it must not exist yet.")],
    folder: ExpertFolder = None,
) -> None:
    """Write an expert to a folder of its own: card and weights, and a pair model as ONNX."""
    from osler_lab.build.experts import export_expert

    files = export_expert(name, folder, out)
    here.report_line(f"{out}: {', '.join(files)}", {"path": str(out), "files": files})


def use(here: CliSession, name: ExpertName, folder: ExpertFolder = None) -> None:
    """Use an expert instead of its rule: written into the settings file."""
    from osler.retrieve.experts.shelf import open_expert

    card = open_expert(name, folder).card
    _write_choice(here, name, folder.resolve() if folder else None, used=True)
    for figure in card.figures:
        if figure.gain is not None and figure.gain.high < 0:
            gain = f"{figure.measure} {figure.gain}, n = {figure.n}"
            here.print_line(f"the rule is better there: {figure.on}: {gain}")


def off(here: CliSession, name: ExpertName) -> None:
    """Use the rule again instead of an expert: written into the settings file."""
    _write_choice(here, name, None, used=False)


def _write_choice(here: CliSession, name: str, folder: Path | None, *, used: bool) -> None:
    from osler_lab.build.experts import write_choice

    path = Path.cwd() / (here.file or "osler.toml")
    written = write_choice(path, name, folder, used=used)
    document = {"path": str(path), "expert": name, "used": used, "set": written}
    here.report_line(f"{path}: {written}", document)
