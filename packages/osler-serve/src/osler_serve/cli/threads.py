"""`osler thread`: conversations, listed, shown, repeated, exported and deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from osler.cli.options import JsonSession

if TYPE_CHECKING:
    from rich.text import Text

    from osler.answer.export import ExportedAnswer
    from osler.runs.threads import Thread
    from osler.settings import Settings


@dataclass(frozen=True)
class AgainOptions:
    """Whether the last question is asked again, and how often."""

    again: Annotated[
        bool,
        typer.Option(
            "--again",
            help="Ask the last question of one or several again where the knowledge base changed"
            " since: its next turn; what is new or gone is listed.",
        ),
    ] = False
    every: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="With --again: hours between checks, until stopped.", show_default=False
        ),
    ] = None
    looks: Annotated[int | None, typer.Option(min=1, help="With --every: stop after N checks.")] = (
        None
    )


def thread(
    here: JsonSession,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Name of the conversation; without one, all are listed."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write it with its references to this file instead.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="With --out: a format, as of `osler trace --to`.")
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay", help="Replay its runs without a model; fails where an event differs."
        ),
    ] = False,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete it. Its runs stay: `osler trace` lists them.")
    ] = False,
    *,
    repeated: AgainOptions,
) -> None:
    """Show a conversation: each question, how it was searched for, and its answer; or list all."""
    from osler.runs.threads import ThreadStore

    settings = here.load_settings()
    store = ThreadStore(settings.home)
    if not names:
        every_one = store.list_threads()
        page = {o.id: o.turns[0].question if o.turns else "no questions yet" for o in every_one}
        here.show({"threads": [asdict(one) for one in every_one]}, page)
        return
    if repeated.again:
        _ask_again(here, settings, names, repeated)
        return
    if len(names) > 1:
        raise typer.BadParameter("name one conversation; only --again takes several")
    if delete:
        store.delete_thread(names[0])
        here.report_line(f"thread {names[0]} is deleted", {"removed": names[0]})
        return
    found = store.read_thread(names[0])
    if replay:
        _replay_turns(here, settings, found)
    elif out is not None:
        from osler.cli.traces import format_of, write_out

        write_out(here, _exported_turns(settings, found), format_of(to, out), out)
    else:
        _show_thread(here, settings, found)


def _show_thread(here: JsonSession, settings: Settings, thread: Thread) -> None:
    if here.json:
        here.show(asdict(thread))
        return
    from rich.console import Group

    lines = _thread_lines(_exported_turns(settings, thread))
    here.make_console().print(Group(*islice(lines, 1, None)))


_STYLES = {"title": "bold", "heading": "bold underline", "danger": "bold red", "note": "italic"}


def _thread_lines(turns: Iterable[ExportedAnswer]) -> Iterator[Text]:
    """The blocks of each turn, each behind an empty line but the items of a list."""
    from osler.answer.export.layout import lay_out
    from osler.cli.tables import plain_text

    for block in chain.from_iterable(map(lay_out, turns)):
        if block.kind != "item":
            yield plain_text("")
        mark = {"item": "- ", "danger": "! "}.get(block.kind, "")
        link = f" <{block.url}>" if block.url else ""
        yield plain_text(f"{mark}{block.text}{link}", _STYLES.get(block.kind, ""))


def _replay_turns(here: JsonSession, settings: Settings, thread: Thread) -> None:
    from osler.runs.answering import replay

    for turn in thread.turns:
        asyncio.run(replay(settings.runs.path / turn.run))
    document = {"thread": thread.id, "turns": len(thread.turns)}
    here.report_line(f"replayed {len(thread.turns)} turns; all identical", document)


def _ask_again(
    here: JsonSession,
    settings: Settings,
    names: list[str],
    repeated: AgainOptions,
) -> None:
    from osler.kb.upkeep import tick_every
    from osler.runs.threads import ThreadStore

    store, every = ThreadStore(settings.home), repeated.every
    for _ in islice(tick_every(3600 * (every or 1)), repeated.looks if every else 1):
        threads = [store.read_thread(name) for name in names]
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


def _exported_turns(settings: Settings, thread: Thread) -> list[ExportedAnswer]:
    from osler.answer.export import ExportedAnswer
    from osler.cli.traces import find_run, read_report

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
