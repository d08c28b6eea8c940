"""`osler thread …`: conversations, listed, shown, repeated, exported and deleted."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession

if TYPE_CHECKING:
    from osler.answer.export import ExportedAnswer
    from osler.runs.threads import Thread
    from osler.settings import Settings


def show(
    here: JsonSession,
    name: Annotated[
        str | None, typer.Argument(help="Name of the thread; without one, all are listed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write it with its references to this file instead.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="With --out: a format of `osler export`.")] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Replay its runs without a model; fails where an event differs."
        ),
    ] = False,
) -> None:
    """Show a thread: each question, how it was searched for, and its answer; or list all."""
    from osler.answer.export.texts import write_markdown
    from osler.runs.threads import ThreadStore

    settings = here.load_settings()
    if name is None:
        every = ThreadStore(settings.home).list_threads()
        page = {one.id: one.turns[0].question if one.turns else "no questions yet" for one in every}
        here.show({"threads": [asdict(one) for one in every]}, page)
        return
    thread = _read_thread(settings, name)
    if replay:
        _replay_turns(here, settings, thread)
        return
    if out is not None:
        from osler.cli.export import format_of, write_out

        write_out(here, _exported_turns(settings, thread), format_of(to, out), out)
        return
    if here.json:
        here.show(asdict(thread))
        return
    from osler.text import escape_controls

    text = write_markdown(_exported_turns(settings, thread)).decode()
    # As it is: a console would break a heading in two.
    sys.stdout.write(f"{escape_controls(text)}\n")


def _replay_turns(here: JsonSession, settings: Settings, thread: Thread) -> None:
    from osler.runs.answering import replay

    for turn in thread.turns:
        asyncio.run(replay(settings.runs.path / turn.run))
    document = {"thread": thread.id, "turns": len(thread.turns)}
    here.report_line(f"replayed {len(thread.turns)} turns; all identical", document)


def again(
    here: JsonSession,
    names: Annotated[list[str], typer.Argument(help="Names of threads.")],
    every: Annotated[
        float | None,
        typer.Option(min=0.01, help="Hours between checks, until stopped.", show_default=False),
    ] = None,
    looks: Annotated[
        int | None, typer.Option(min=1, help="With --every: stop after N checks.")
    ] = None,
) -> None:
    """Ask the last question of threads again where the knowledge base changed since.

    Each new answer is the thread's next turn; statements and evidence that are new or gone are
    listed.
    """
    from itertools import islice

    from osler.kb.upkeep import tick_every

    settings = here.load_settings()
    times = islice(tick_every(3600 * (every or 1)), looks if every else 1)
    for _ in times:
        threads = [_read_thread(settings, name) for name in names]
        if not asyncio.run(_show_changes(here, settings, threads)) and not every:
            here.report_line("nothing is asked: the knowledge base is as it was", {"changes": []})


async def _show_changes(here: JsonSession, settings: Settings, threads: list[Thread]) -> int:
    """Shows what changed in each answer; returns how many questions were asked."""
    from osler.build.resource_cache import ResourceCache
    from osler_serve.ops.asked_again import ask_again

    cache, asked = ResourceCache(settings), 0
    try:
        async for change in ask_again(settings, threads, cache):
            asked += 1
            here.report_line("\n".join(change.lines()), asdict(change))
    finally:
        cache.close()
    return asked


def rm(here: JsonSession, name: Annotated[str, typer.Argument(help="Name of the thread.")]) -> None:
    """Delete a thread. Its runs stay: `osler trace` lists them."""
    from osler.runs.threads import ThreadStore

    ThreadStore(here.load_settings().home).delete_thread(name)
    here.report_line(f"thread {name} is deleted", {"removed": name})


def _read_thread(settings: Settings, name: str) -> Thread:
    from osler.runs.threads import ThreadStore

    return ThreadStore(settings.home).read_thread(name)


def _exported_turns(settings: Settings, thread: Thread) -> list[ExportedAnswer]:
    from osler.answer.export import ExportedAnswer
    from osler.cli.runs import find_run, read_report

    turns = []
    for turn in thread.turns:
        found = read_report(find_run(turn.run, settings.runs.path))
        if found.solution is not None:
            asked = replace(found.question, text=turn.question)
            turns.append(
                ExportedAnswer(
                    asked,
                    found.solution,
                    turn.run,
                    found.strategy,
                    found.snapshot,
                    turn.created,
                    turn.standalone,
                )
            )
    return turns
