"""`osler experts`: small trained models, their cards, and which are in use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from osler.cli.session import CliSession

if TYPE_CHECKING:
    from osler.retrieve.experts.cards import ExpertCard


def experts(
    here: CliSession,
    name: Annotated[
        str | None,
        typer.Argument(
            help="judge, match or supports: show its card; without one, all are listed."
        ),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(help="An expert of your own; else the one that comes with Osler.")
    ] = None,
    used: Annotated[
        bool | None,
        typer.Option(
            "--use/--off", help="Use it, or its rule instead: written into the settings file."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write it to this new folder: card and weights, and a pair model as ONNX."
        ),
    ] = None,
) -> None:
    """List the small trained models that decide instead of a rule; show, use or write one.

    A card has the base, the data, the figures beside the rule, and what the expert is bad at.
    """
    from osler.retrieve.experts.cards import open_expert

    if name is None:
        if folder or out or used is not None:
            raise typer.BadParameter("name the expert: judge, match or supports")
        listed = _list_experts(here)
        here.show({"experts": listed}, listed)
        return
    if used is False:
        _write_choice(here, name, None, used=False)
        return
    card = open_expert(name, folder).card
    if used:
        _write_choice(here, name, folder.resolve() if folder else None, used=True)
        _name_losses(here, card)
    elif out is not None:
        from osler_lab.build.experts import export_expert

        files = export_expert(name, folder, out)
        here.report_line(f"{out}: {', '.join(files)}", {"path": str(out), "files": files})
    else:
        here.show(card.model_dump(mode="json"))


def _list_experts(here: CliSession) -> list[dict[str, Any]]:
    """Each with what it decides, its size in bytes, and whether it is in use."""
    settings = here.load_settings()
    from osler.retrieve.experts.cards import packaged_experts
    from osler_lab.build.experts import expert_in_use

    return [
        {
            "name": one.card.name,
            "question": one.card.question,
            "bytes": one.bytes,
            "use": expert_in_use(settings, one.card.name),
        }
        for one in packaged_experts()
    ]


def _name_losses(here: CliSession, card: ExpertCard) -> None:
    for figure in card.figures:
        if figure.gain is not None and figure.gain.high < 0:
            gain = f"{figure.measure} {figure.gain}, n = {figure.n}"
            here.print_line(f"the rule is better there: {figure.on}: {gain}")


def _write_choice(here: CliSession, name: str, folder: Path | None, *, used: bool) -> None:
    from osler_lab.build.experts import write_choice

    path = Path.cwd() / (here.file or "osler.toml")
    written = write_choice(path, name, folder, used=used)
    document = {"path": str(path), "expert": name, "used": used, "set": written}
    here.report_line(f"{path}: {written}", document)
