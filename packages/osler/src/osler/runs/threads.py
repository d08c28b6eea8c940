"""Conversations: which questions belong together, and how each was made to stand alone.

One SQLite file in home. A thread holds the reader's words and the names of the runs that
answered them; answers and evidence stay in the runs, so that each turn replays by itself.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from osler.answer.follow_up import RewriteOrigin, Standalone, rewrite_follow_up
from osler.build import graphs
from osler.errors import BadArgument, BadRun, OslerError
from osler.kb.store.durable import HomeStore
from osler.runs.files import read_record
from osler.settings import Settings

FILE = "threads.sqlite"
WORKSPACE = "default"
MOST_TURNS = 500
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TABLES = """
CREATE TABLE IF NOT EXISTS thread(
  workspace TEXT, id TEXT, created TEXT NOT NULL, PRIMARY KEY(workspace, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS turn(
  workspace TEXT, thread TEXT, n INTEGER, run TEXT NOT NULL, question TEXT NOT NULL,
  standalone TEXT NOT NULL, origin TEXT NOT NULL, created TEXT NOT NULL,
  PRIMARY KEY(workspace, thread, n)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS title(
  workspace TEXT, id TEXT, title TEXT NOT NULL, PRIMARY KEY(workspace, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pin(
  workspace TEXT, id TEXT, PRIMARY KEY(workspace, id)) WITHOUT ROWID;
"""


class UnknownThread(OslerError):
    """No thread of this name in the workspace."""

    exit_code = 2


class ThreadMoved(OslerError):
    """Somebody else asked in the thread meanwhile."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of a thread."""

    n: int
    """From 1."""
    run: str
    question: str
    """As the reader wrote it."""
    standalone: str
    """As it was searched for."""
    origin: RewriteOrigin
    """Who rewrote it; empty where it stood alone."""
    created: str
    """ISO 8601, UTC."""


@dataclass(frozen=True, slots=True)
class Thread:
    id: str
    created: str
    turns: tuple[Turn, ...] = ()

    @property
    def asked(self) -> list[str]:
        """Its questions as they were searched for."""
        return [turn.standalone for turn in self.turns]


class ThreadStore:
    """The threads of one home. Safe for several processes; every method blocks."""

    def __init__(self, home: Path) -> None:
        self._file = HomeStore(home / FILE, _TABLES)

    def create_thread(self, id: str = "", workspace: str = WORKSPACE) -> Thread:
        """A new one, or the one of this name. Raises `BadArgument` for an impossible name."""
        id = id or f"thread-{secrets.token_hex(6)}"
        if not _NAME.fullmatch(id):
            raise BadArgument(
                f"{id[:80]!r} is not a valid thread name",
                fix="use letters, digits, dots, hyphens and underscores, 64 at most",
            )
        with self._file.open_to_write() as db:
            db.execute("INSERT OR IGNORE INTO thread VALUES (?, ?, ?)", (workspace, id, _now()))
        return self.read_thread(id, workspace)

    def list_threads(self, workspace: str = WORKSPACE, limit: int = 100) -> list[Thread]:
        """The newest first, without their turns but the first."""
        select = (
            "SELECT id, created FROM thread WHERE workspace = ? ORDER BY created DESC, id LIMIT ?"
        )
        with self._file.open_to_read() as db:
            rows = db.execute(select, (workspace, limit)).fetchall()
            return [Thread(id, made, _read_turns(db, workspace, id, 1)) for id, made in rows]

    def read_threads(self, workspace: str = WORKSPACE) -> list[Thread]:
        """All of them with all their turns; those without a turn are left out."""
        turns: dict[str, list[Turn]] = {}
        known = "SELECT id, created FROM thread WHERE workspace = ?"
        select = (
            "SELECT thread, n, run, question, standalone, origin, created FROM turn"
            " WHERE workspace = ? ORDER BY thread, n"
        )
        with self._file.open_to_read() as db:
            made: dict[str, str] = dict(db.execute(known, (workspace,)))
            for thread, *turn in db.execute(select, (workspace,)):
                turns.setdefault(thread, []).append(Turn(*turn))
        return [Thread(id, made[id], tuple(asked)) for id, asked in turns.items() if id in made]

    def read_titles(self, workspace: str = WORKSPACE) -> dict[str, str]:
        """Name of a thread, or of a run that stands alone → the title that a reader gave it."""
        with self._file.open_to_read() as db:
            select = "SELECT id, title FROM title WHERE workspace = ?"
            return dict(db.execute(select, (workspace,)).fetchall())

    def write_title(self, id: str, title: str, workspace: str = WORKSPACE) -> None:
        """Gives a thread or a run a title; an empty one is taken away."""
        with self._file.open_to_write() as db:
            db.execute("DELETE FROM title WHERE workspace = ? AND id = ?", (workspace, id))
            if title:
                db.execute("INSERT INTO title VALUES (?, ?, ?)", (workspace, id, title))

    def read_pins(self, workspace: str = WORKSPACE) -> set[str]:
        """Names of the threads, and of the runs that stand alone, that stay on top."""
        with self._file.open_to_read() as db:
            select = "SELECT id FROM pin WHERE workspace = ?"
            return {id for (id,) in db.execute(select, (workspace,))}

    def write_pin(self, id: str, pinned: bool, workspace: str = WORKSPACE) -> None:
        """Pins a thread or a run, or takes its pin away."""
        with self._file.open_to_write() as db:
            db.execute("DELETE FROM pin WHERE workspace = ? AND id = ?", (workspace, id))
            if pinned:
                db.execute("INSERT INTO pin VALUES (?, ?)", (workspace, id))

    def last_runs(self, workspace: str = WORKSPACE) -> dict[str, str]:
        """Thread → the run of its last turn."""
        select = (  # SQLite takes `run` from the row of the greatest `n`
            "SELECT thread, run, max(n) FROM turn WHERE workspace = ? GROUP BY thread"
        )
        with self._file.open_to_read() as db:
            return {thread: run for thread, run, _ in db.execute(select, (workspace,))}

    def read_thread(self, id: str, workspace: str = WORKSPACE) -> Thread:
        """Raises `UnknownThread`."""
        select = "SELECT created FROM thread WHERE workspace = ? AND id = ?"
        with self._file.open_to_read() as db:
            row = db.execute(select, (workspace, id)).fetchone()
            if row is None:
                raise UnknownThread(
                    f"there is no thread {id[:80]!r}", fix="`osler thread` lists them"
                )
            return Thread(id, row[0], _read_turns(db, workspace, id, MOST_TURNS))

    @staticmethod
    def require_room(thread: Thread) -> None:
        """Raises `BadArgument` where the thread takes no more turns."""
        if len(thread.turns) >= MOST_TURNS:
            raise BadArgument(f"the thread has {MOST_TURNS} turns", fix="begin another")

    def add_turn(
        self,
        thread: Thread,
        run: str,
        question: str,
        alone: Standalone,
        workspace: str = WORKSPACE,
    ) -> Turn:
        """Adds a turn after those of `thread`.

        Raises `ThreadMoved` where another was added since, `UnknownThread` where it was deleted,
        and `BadArgument` where it is full.
        """
        self.require_room(thread)
        n = len(thread.turns) + 1
        turn = Turn(n, run, question, alone.text, alone.by, _now())
        with self._file.open_to_write() as db:
            held = "SELECT count(*) FROM thread WHERE workspace = ? AND id = ?"
            if not db.execute(held, (workspace, thread.id)).fetchone()[0]:
                raise UnknownThread(f"there is no thread {thread.id!r}", fix="begin another")
            try:
                db.execute(
                    "INSERT INTO turn VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (workspace, thread.id, n, run, question, alone.text, alone.by, turn.created),
                )
            except sqlite3.IntegrityError as error:
                raise ThreadMoved(
                    f"thread {thread.id} has a turn {n} by now", fix="read it and ask again"
                ) from error
        return turn

    def delete_thread(self, id: str, workspace: str = WORKSPACE) -> None:
        """Deletes a thread with its questions; the runs stay. Raises `UnknownThread`."""
        self.read_thread(id, workspace)
        with self._file.open_to_write() as db:
            db.execute("DELETE FROM turn WHERE workspace = ? AND thread = ?", (workspace, id))
            for table in ("thread", "title", "pin"):
                db.execute(f"DELETE FROM {table} WHERE workspace = ? AND id = ?", (workspace, id))  # noqa: S608


def _read_turns(
    db: sqlite3.Connection, workspace: str, thread: str, limit: int
) -> tuple[Turn, ...]:
    select = (
        "SELECT n, run, question, standalone, origin, created FROM turn"
        " WHERE workspace = ? AND thread = ? ORDER BY n LIMIT ?"
    )
    return tuple(Turn(*row) for row in db.execute(select, (workspace, thread, limit)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def keep_filters(settings: Settings, run: str) -> Settings:
    """The settings with what an earlier run was filtered by: sources, years, kinds and day. As
    they are where that run was not kept, or is not over."""
    try:
        earlier = read_record(settings.runs.path / run).settings
    except BadRun:
        return settings
    tree = settings.model_dump()
    tree["kb"]["sources"] = earlier["kb"]["sources"]
    names = {"since", "until", "kinds", "as_of"} & earlier["retrieve"].keys()
    tree["retrieve"] |= {name: earlier["retrieve"][name] for name in names}
    return Settings.model_validate(tree)


async def make_standalone(settings: Settings, question: str, earlier: Sequence[str]) -> Standalone:
    """The question as it is searched for, by the packaged names and those of the concept graph.

    `earlier`: the questions before it as they were searched for.
    """
    tables = await asyncio.to_thread(graphs.graph_names, settings)
    return await asyncio.to_thread(rewrite_follow_up, question, earlier, tables)


async def standalone_of(settings: Settings, questions: Sequence[str]) -> Standalone:
    """The last of a conversation's questions, each of which may rest on those before it."""
    tables = await asyncio.to_thread(graphs.graph_names, settings)

    def rewrite_all() -> Standalone:
        asked = list[str]()
        for question in questions[:-1]:
            asked.append(rewrite_follow_up(question, asked, tables).text)
        return rewrite_follow_up(questions[-1], asked, tables)

    return await asyncio.to_thread(rewrite_all)
