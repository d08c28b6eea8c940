"""`osler serve …`, `osler mcp` and `osler deploy`: the interfaces for other programs."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import CommandGroup, JsonSession
from osler.cli.session import CliSession, Json, Quiet, open_session, write_json
from osler.errors import BadArgument, BadConfig, translate_os_errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket as Socket  # noqa: N812  a class

    from osler.settings import Settings
    from osler_serve.ledger import Ledger
    from osler_serve.state import ServerState

app = CommandGroup(invoke_without_command=True)
key = CommandGroup(no_args_is_help=True)
app.add_typer(key, name="key", help="Manage API keys, which every address but loopback requires.")


@app.callback()
def serve(
    context: typer.Context,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; loopback by default.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free one.")
    ] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Answer `osler ask` of this home too, loaded before.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, max=256, help="Processes that answer; 1 by default.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer over HTTP: the native API, the OpenAI-compatible endpoint, and MCP.

    A SIGTERM lets running questions end first. Exit code 3: the address is taken, or others
    reach it and there is no key.
    """
    # `osler serve key …` passes through here as well, and starts no server.
    if context.invoked_subcommand is not None:
        return
    here = open_session(context, as_json=as_json, quiet=quiet)
    settings = here.load_settings(
        {"serve.host": host, "serve.port": port, "serve.workers": workers}
    )

    def announce(url: str) -> None:
        if here.json:
            name, _, number = url.removeprefix("http://").rpartition(":")
            write_json({"url": url, "host": name.strip("[]"), "port": int(number)}, lines=True)
        here.print_line(f"{url}  (stop: Ctrl-C)")
        sys.stdout.flush()

    if not warm:
        run_server(here, settings, announce)
        return
    from osler_serve.cli.standby import start_standby

    with start_standby(settings.home):
        run_server(here, settings, announce)


def run_server(here: CliSession, settings: Settings, announce: Callable[[str], None]) -> None:
    """Listens, announces the address, and serves until it is stopped."""
    from osler_serve.app import build_state
    from osler_serve.transport import open_sockets
    from osler_serve.workers import check_workers, run_workers

    level = _set_up_log(here)
    check_workers(settings)
    made = build_state(settings, report_page)
    place, fix = f"{settings.serve.host}:{settings.serve.port}", "choose another with --port"
    with translate_os_errors(f"{place} cannot be listened on", BadConfig, fix):
        socket = open_sockets(settings.serve.host, settings.serve.port)
    # Announced once the socket listens: a program that waits for it may connect at once.
    host = settings.serve.host
    name = f"[{host}]" if ":" in host else host
    announce(f"http://{name}:{socket.getsockname()[1]}")
    if settings.serve.workers == 1:
        _serve_state(made, socket)
        return
    made.shelf.close()  # each worker opens its own
    run_workers(made, socket, level, serve_worker)


def serve_worker(settings: Settings, socket: Socket, level: int) -> None:
    """One process of several: serves at the socket until it is stopped."""
    from osler_serve.app import build_state
    from osler_serve.server_log import set_up_log

    set_up_log(level)
    _serve_state(build_state(settings, report_page), socket)


def _serve_state(site: ServerState, socket: Socket) -> None:
    from osler_serve.app import create_app
    from osler_serve.transport import build_server

    build_server(create_app(site, owns_process=True), site).run([socket])


def report_page(log: Path) -> str:
    """The report of a recorded run; the server has it told, since pages are the terminal's."""
    from osler.cli.page import render_page
    from osler.cli.traces import read_report

    return render_page(read_report(log))


def mcp(here: CliSession) -> None:
    """Speak the Model Context Protocol on standard input and output: read-only tools.

    Over HTTP the same tools are at `/mcp` of `osler serve`. Standard output belongs to the
    protocol, so --json changes nothing.
    """
    settings = here.load_settings()
    _set_up_log(here)
    asyncio.run(_serve_stdio(settings))


async def _serve_stdio(settings: Settings) -> None:
    from osler_serve.app import build_state
    from osler_serve.tools import build_mcp_server

    made = build_state(settings, report_page)
    try:
        with made.ledger.hold_open(made.desk.is_kept):
            await build_mcp_server(
                lambda _: (made, None), patients=settings.serve.patients
            ).run_stdio_async()
    finally:
        await made.desk.drain(0.0)
        made.shelf.close()
        made.ledger.close()


@key.command()
def add(
    here: CliSession,
    name: Annotated[str, typer.Argument(help="Name of the owner.")],
    workspace: Annotated[
        str,
        typer.Option(help="Workspace of the key; runs are visible in their own workspace only."),
    ] = "default",
    runs: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Most unfinished runs at a time.")
    ] = None,
    minute: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Most requests per minute.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help='A source that it finds, "public" (all that are not private, the default) or'
            ' "all"; repeatable.'
        ),
    ] = None,
    verb: Annotated[
        list[str] | None,
        typer.Option(
            help="What it may do: ask, plan, search, read, runs, evaluations, calculate, patients,"
            " hooks, upload, operate; repeatable; without one, everything."
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option(help="A strategy that it may run; repeatable.")
    ] = None,
    patient: Annotated[
        list[str] | None,
        typer.Option(help="A record of emr that it finds, by document id; repeatable."),
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="Most model tokens in a day (UTC).")
    ] = None,
) -> None:
    """Create a key. It is shown once; only its hash is stored."""
    from osler_serve.keys import new_key
    from osler_serve.scopes import make_scope

    scope = make_scope(
        sources=tuple(source or ()),
        verbs=tuple(verb or ()),
        strategies=tuple(strategy or ()),
        patients=tuple(patient or ()),
        tokens=tokens,
    )
    made = new_key(
        _open_ledger(here), name, workspace=workspace, runs=runs, minute=minute, scope=scope
    )
    if here.json:
        write_json({"name": name, "workspace": workspace, "key": made})
    else:
        sys.stdout.write(f"{made}\n")


@key.command()
def ls(here: JsonSession) -> None:
    """List the keys, without their secrets."""
    from osler_serve.scopes import read_scope

    known: list[dict[str, object]] = [
        {"name": k.name, "id": k.id, "workspace": k.workspace, "created": k.created}
        | {"runs": k.runs, "minute": k.minute}
        | {"scope": asdict(scope := read_scope(k.scope)), "limits": scope.describe_limits()}
        for k in _open_ledger(here).list_keys()
    ]
    here.show({"keys": known}, [{**one, "scope": ""} for one in known])


@key.command()
def rm(
    here: CliSession,
    name: Annotated[str, typer.Argument(help="Name or id of the key.")],
) -> None:
    """Revoke a key; a running server refuses it from now on."""
    if not _open_ledger(here).drop_key(name):
        raise BadArgument(f"there is no key {name!r}", fix="`osler serve key ls` lists them")
    here.report_line(f"{name} opens nothing any more", {"removed": name})


def deploy(
    here: CliSession,
    folder: Annotated[
        Path, typer.Argument(help='Where the files go; or "check", to try a server.')
    ] = Path("deploy"),
    url: Annotated[
        str | None, typer.Argument(help='After "check": the address, as in http://127.0.0.1:8642.')
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    key_file: Annotated[
        Path | None, typer.Option(help="For check: a file that holds the server's key.")
    ] = None,
    question: Annotated[
        str | None, typer.Option(help="For check: what is searched for and asked.")
    ] = None,
) -> None:
    """Write files to run Osler as a service (container, systemd, compose, Kubernetes), or make one
    journey through a running server: `osler deploy check URL`.

    Exit code 1: a step of the journey failed.
    """
    if url is not None:
        if folder != Path("check"):
            raise BadArgument(f"{str(folder)!r} takes no address", fix="osler deploy check URL")
        _check_server(here, url, key_file, question)
        return
    from osler_serve.deploy import write_files

    written = write_files(folder, overwrite=force)
    if here.json:
        write_json({"files": [str(path) for path in written]})
    for path in written:
        here.print_line(str(path))


def _check_server(here: CliSession, url: str, key_file: Path | None, question: str | None) -> None:
    from osler_serve.client.health import QUESTION, HealthJourney
    from osler_serve.client.http_client import Client

    with translate_os_errors(f"cannot read {key_file}", BadConfig, "name a file"):
        key = key_file.read_text(encoding="utf-8").strip() if key_file else ""
    steps = []
    with Client(url, key=key, timeout=30) as client:
        for step in HealthJourney(client, question or QUESTION).steps():
            steps.append(step)
            mark = "ok" if step.ok else "FAILED"
            here.print_line(f"{step.name:8} {mark:6} {step.seconds:6.2f} s  {step.said}")
    failed = [step.name for step in steps if not step.ok]
    if here.json:
        write_json({"url": url, "ok": not failed, "steps": [asdict(step) for step in steps]})
    if failed:
        raise typer.Exit(1)


def _open_ledger(here: CliSession) -> Ledger:
    from osler_serve.app import FOLDER
    from osler_serve.ledger import Ledger

    return Ledger(here.load_settings().home / FOLDER)


def _set_up_log(here: CliSession) -> int:
    """The level of what is logged."""
    import logging

    from osler_serve.server_log import set_up_log

    level = logging.ERROR if here.quiet else logging.WARNING
    set_up_log(level)
    return level
