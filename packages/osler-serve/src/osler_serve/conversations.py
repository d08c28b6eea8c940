"""One list of all that was asked, `/api/v1/conversations`: threads, and questions that stand alone.

Of the server, of its interfaces and of the command line; it can be searched, renamed and deleted.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path as Folder
from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import Field

from osler.errors import UnknownPassage
from osler.runs.feedback import FeedbackStore
from osler.runs.files import find_answer
from osler.runs.threads import Thread, ThreadStore, UnknownThread
from osler.sources.catalogue import is_patients
from osler.trace import Retrieved, from_line
from osler.types import Passage
from osler_serve import replies, schemas
from osler_serve.api import At, RunId, Who
from osler_serve.keys import Caller
from osler_serve.ledger import LedgerEntry
from osler_serve.problems import RefusedRequest
from osler_serve.run_views import load_run, sees_run, stop_run, walk_entries
from osler_serve.state import ServerState
from osler_serve.suggested import suggest_questions

router = APIRouter(prefix="/api/v1", tags=["threads"], responses=schemas.PROBLEMS)
ConversationId = Annotated[
    str,
    Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Of a thread, or of a run."),
]


class ConversationRequest(schemas.RequestModel):
    """What is left out stays as it is."""

    title: Annotated[replies.Words | None, Field(max_length=200)] = None
    """Empty = the first question again."""
    pinned: bool | None = None


@router.get("/conversations")
async def list_conversations(
    site: At,
    caller: Who,
    find: Annotated[replies.Words, Query(max_length=200)] = "",
    before: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> replies.ConversationList:
    """The caller's workspace's, those last asked in first; `find`: with these words in a question,
    in an answer or in the title."""

    words = find.casefold().split()

    def read_page(*, pinned: bool, most: int) -> list[replies.ConversationView]:
        every = _walk_matching(site, caller, words, before)
        return list(islice((one for one in every if one.pinned is pinned), most))

    pins = len(await asyncio.to_thread(ThreadStore(site.settings.home).read_pins, caller.workspace))
    kept = await asyncio.to_thread(read_page, pinned=True, most=0 if before else pins)
    shown = await asyncio.to_thread(read_page, pinned=False, most=limit)
    more = shown[-1].last_run if len(shown) == limit else None
    return replies.ConversationList(conversations=kept + shown, next=more)


@router.put("/conversations/{id}", status_code=204)
async def change_conversation(
    id: ConversationId, asked: ConversationRequest, site: At, caller: Who
) -> None:
    """Give it a title, or pin it."""
    await asyncio.to_thread(_find_runs, site, caller, id)
    store = ThreadStore(site.settings.home)
    if asked.title is not None:
        await asyncio.to_thread(store.write_title, id, asked.title.strip(), caller.workspace)
    if asked.pinned is not None:
        await asyncio.to_thread(store.write_pin, id, asked.pinned, caller.workspace)


@router.delete("/conversations/{id}", status_code=204)
async def delete_conversation(id: ConversationId, site: At, caller: Who) -> None:
    """Delete it with its runs and what was said of them; one that is not finished is stopped.
    The audit log stays."""
    runs = await asyncio.to_thread(_find_runs, site, caller, id)
    store = ThreadStore(site.settings.home)
    await asyncio.to_thread(store.write_pin, id, False, caller.workspace)
    if [id] != runs:
        await asyncio.to_thread(store.delete_thread, id, caller.workspace)
    for run in runs:
        await stop_run(site.desk, caller, run)
        await asyncio.to_thread(store.write_title, run, "", caller.workspace)
        await asyncio.to_thread(_delete_run, site, run)


@router.get("/runs/{id}/follow_ups")
async def list_follow_ups(id: RunId, site: At, caller: Who) -> replies.FollowUpList:
    """Questions to ask next, which name sections that the run found and does not cite."""
    view = await load_run(site.desk, caller, id)
    if view.question is None or view.solution is None:
        return replies.FollowUpList(questions=[])
    found = await _open_passages(site, caller, view.lines)
    cited = [one.passage for one in view.solution.answer.evidence]
    return replies.FollowUpList(questions=suggest_questions(view.question, found, cited))


async def _open_passages(site: ServerState, caller: Caller, lines: Iterable[str]) -> list[Passage]:
    """What a run's searches found, as far as the caller may open it; of no patient."""
    events = [from_line(line) for line in lines if _RETRIEVED in line]
    ids = [hit.passage for one in events if isinstance(one, Retrieved) for hit in one.hits]
    kb = (await site.shelf.open_knowledge()).kb
    access = caller.scope.narrow_settings(site.settings).access

    def read_passages() -> Iterator[Passage]:
        for id in islice(dict.fromkeys(ids), _MOST_READ):
            if not access.may_search(id.partition(":")[0]):
                continue
            with suppress(UnknownPassage):  # gone since, or not the knowledge base's
                if not is_patients((found := kb.get(id)).source, found.locator.kind):
                    yield found

    return await asyncio.to_thread(lambda: [*read_passages()])


_RETRIEVED = '"type":"retrieval.done"'
_MOST_READ = 30


def _delete_run(site: ServerState, id: str) -> None:
    FeedbackStore(site.settings.home).delete_run(id)
    site.desk.drop_ended(id)
    shutil.rmtree(site.settings.runs.path / id, ignore_errors=True)
    site.ledger.delete_run(id)


def _find_runs(site: ServerState, caller: Caller, id: str) -> list[str]:
    """The runs of a conversation that the caller may see.

    Raises `RefusedRequest` (404). Blocks.
    """
    try:
        thread = ThreadStore(site.settings.home).read_thread(id, caller.workspace)
    except UnknownThread:
        runs = [id]
    else:
        runs = [turn.run for turn in thread.turns]
    if not all(sees_run(site.desk, caller, run) for run in runs):
        raise RefusedRequest(404, "unknown_thread", f"there is no conversation {id!r}")
    return runs


def _walk_matching(
    site: ServerState, caller: Caller, words: Sequence[str], before: str
) -> Iterator[replies.ConversationView]:
    """Blocks."""
    store = ThreadStore(site.settings.home)
    titles, pins = store.read_titles(caller.workspace), store.read_pins(caller.workspace)
    threads = {one.turns[-1].run: one for one in store.read_threads(caller.workspace)}
    inside = {turn.run for one in threads.values() for turn in one.turns}
    for entry in walk_entries(site.desk, caller, before):
        thread = threads.get(entry.id)
        if thread is None and entry.id in inside:
            continue
        view = _view(site, caller, entry, thread, titles, pins)
        asked = [turn.question for turn in thread.turns] if thread else [entry.question]
        text = " ".join((view.title, *asked)).casefold()
        further = [word for word in words if word not in text]
        # Whoever may not see one run of a thread does not see it.
        if thread and not all(sees_run(site.desk, caller, one.run) for one in thread.turns):
            continue
        if further:
            runs = [turn.run for turn in thread.turns] if thread else [entry.id]
            folders = (site.settings.runs.path / run for run in runs)
            text = " ".join(_answer_text(one) for one in folders if one.is_dir())
        if all(word in text for word in further):
            yield view


@lru_cache(maxsize=32_768)  # the folder of a run appears whole, and stays as it is
def _answer_text(folder: Folder) -> str:
    answer = find_answer(folder)
    return answer.text.casefold() if answer else ""


def _view(
    site: ServerState,
    caller: Caller,
    entry: LedgerEntry,
    thread: Thread | None,
    titles: dict[str, str],
    pins: set[str],
) -> replies.ConversationView:
    live = site.desk.find_run(entry.id, caller.workspace)
    id = thread.id if thread else entry.id
    return replies.ConversationView(
        id=id,
        kind="thread" if thread else "run",
        title=titles.get(id) or (thread.turns[0].question if thread else entry.question),
        created=entry.created,
        status=live.status if live else entry.status,
        strategy=entry.strategy,
        turns=len(thread.turns) if thread else 1,
        last_run=entry.id,
        pinned=id in pins,
    )
