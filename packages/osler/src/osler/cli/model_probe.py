"""`osler doctor --model` and `osler init --model URL`: a server is asked what it can do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from osler.cli.progress import show_progress
from osler.cli.session import ABSTAINED, CliSession

if TYPE_CHECKING:
    from rich.console import Group

    from osler.probe import Advice
    from osler.probe.findings import Findings
    from osler.settings import ModelSettings, Settings

    Asked = list[tuple[Findings, Advice]]


def probe_configured(here: CliSession, settings: Settings, *, write: bool) -> None:
    """Asks the server of [model], and of each role that has one of its own."""
    from osler.probe import Advice, write_advice

    sections = _served_sections(settings)
    asked = _ask_models(here, settings, sections)
    path = Path.cwd() / (here.file or "osler.toml")
    ok = all(found.ok for found, _ in asked)
    if write and ok:
        write_advice(path, [advice for _, advice in asked])
    _show_asked(here, asked, path if write and ok else None)
    if not ok:
        raise typer.Exit(ABSTAINED)
    if write:
        return
    chosen = [one for _, one in sections]
    advices = [advice for _, advice in asked]
    if all(map(Advice.is_set, advices, chosen, repeat(settings.strategy))):
        here.print_line("all of it is set already")
    else:
        here.print_line("next: osler doctor --model --write, which writes these settings")


def init_with_model(here: CliSession, path: Path, url: str, name: str, *, force: bool) -> None:
    """Writes a settings file for the model of a server, with what follows from asking it."""
    from osler.errors import BadConfig
    from osler.llm.local.weights import DEFAULTS, is_present
    from osler.probe import write_advice
    from osler.settings import write_template
    from osler.settings.show import write_keys

    if path.exists() and not force:
        raise BadConfig(f"{path} already exists", fix="--force overwrites it")
    named = _name_model(url, name)
    asked = _ask_named(here, named)
    ok = all(found.ok for found, _ in asked)
    if ok:
        write_template(path, overwrite=force)
        write_keys(path, "model", named)
        write_advice(path, [advice for _, advice in asked])
    _show_asked(here, asked, path if ok else None)
    if not ok:
        raise typer.Exit(ABSTAINED)
    fetch = "" if all(map(is_present, DEFAULTS)) else "osler download-models, "
    here.print_line(f"next: {fetch}osler kb build --sample, then osler ask QUESTION")


def use_model(here: CliSession, url: str, name: str) -> None:
    """Has the rest of this call use a server's model, with what follows from asking it.

    Nothing is written. Ends the call where the model cannot be used as it is.
    """
    named = _name_model(url, name)
    asked = _ask_named(here, named)
    if not all(found.ok for found, _ in asked):
        _show_asked(here, asked, None)
        raise typer.Exit(ABSTAINED)
    ((_, advice),) = asked
    follows = {f"model.{key}": value for key, value in {**named, **advice.model}.items()}
    here.flags |= follows
    for line in advice.lines():
        here.print_line(f"set   {line}")


def _name_model(url: str, name: str) -> dict[str, str]:
    place = _complete_url(url)
    named = name or asyncio.run(_find_name(place))
    return {"kind": "openai", "url": place, "name": named}


def _ask_named(here: CliSession, named: dict[str, str]) -> Asked:
    from osler.settings import Settings

    settings = Settings.model_validate({"model": named})
    return _ask_models(here, settings, [("model", settings.model)])


def _served_sections(settings: Settings) -> list[tuple[str, ModelSettings]]:
    """Sections of the settings whose model is a server's. Raises `BadConfig` without one."""
    from osler.errors import BadConfig
    from osler.settings import ROLES

    own = [(f"roles.{role}", getattr(settings.roles, role)) for role in ROLES]
    every = [("model", settings.model), *own]
    served = [(name, one) for name, one in every if one and one.kind == "openai"]
    if not served:
        raise BadConfig(
            f'no model server is set: [model] has kind = "{settings.model.kind}"',
            fix="osler init --model URL, or set model.kind, model.url and model.name",
        )
    return served


def _ask_models(
    here: CliSession, settings: Settings, sections: Sequence[tuple[str, ModelSettings]]
) -> Asked:
    from osler.probe import advise, probe_model

    asked: Asked = []
    with show_progress(here) as report:
        for done, (section, chosen) in enumerate(sections):
            if report is not None:
                report(f"asking {chosen.name}", done, len(sections))
            found = asyncio.run(probe_model(chosen, section))
            asked.append((found, advise(settings, chosen, found)))
    return asked


def _show_asked(here: CliSession, asked: Asked, written: Path | None) -> None:
    models: list[dict[str, Any]] = [
        {
            **asdict(found),
            "ok": found.ok,
            "rows": [asdict(row) for row in found.rows()],
            "settings": {"model": advice.model, "strategy": advice.strategy},
        }
        for found, advice in asked
    ]
    path = str(written) if written else None
    here.show_result(
        _asked_page(asked, written),
        {"ok": all(found.ok for found, _ in asked), "models": models, "path": path},
    )


def _asked_page(asked: Asked, written: Path | None) -> Group:
    from rich.console import Group, RenderableType

    from osler.cli.tables import checks_page, plain_text

    parts: list[RenderableType] = []
    for found, advice in asked:
        parts.append(plain_text(f"[{found.section}] {found.calls} questions, {found.seconds} s"))
        parts.append(checks_page(found.rows()))
        parts += [plain_text(f"set   {line}") for line in advice.lines()]
    if written:
        parts.append(plain_text(f"written to {written}"))
    return Group(*parts)


def _complete_url(url: str) -> str:
    """The address with what people leave out: the scheme, and /v1 where there is no path."""
    whole = url if "://" in url else f"http://{url}"
    scheme, _, rest = whole.rstrip("/").partition("://")
    return f"{scheme}://{rest}" if "/" in rest else f"{scheme}://{rest}/v1"


async def _find_name(url: str) -> str:
    """The only model of a server. Raises `BadConfig` if there are none or several."""
    from osler.build.hub import read_server_key
    from osler.errors import BadConfig
    from osler.llm.server.connection import Endpoint, ServerBusy, ServerClient
    from osler.llm.server.probe import list_models

    key = read_server_key(None, "model")
    try:
        names = await list_models(ServerClient(Endpoint(base_url=url, model="?", api_key=key)))
    except ServerBusy as error:
        raise BadConfig(error.message, fix="--name its model, if it answers chats") from error
    if len(names) != 1:
        told = ", ".join(names[:10]) or "none"
        raise BadConfig(f"models at {url}: {told}", fix="--name one of them")
    return names[0]
