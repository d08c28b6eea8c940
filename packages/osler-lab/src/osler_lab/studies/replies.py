"""Replies that several runs share, in one file.

The rows of an ablation ask a model what other rows asked it. A request is the same where its model,
its messages and all of its decoding (seed, temperature, grammar, tokens) are; so with the embedded
engines nothing but time changes. A server that ignores the seed would have spoken otherwise the
second time: here it is asked once. A reply brings its own cost with it, as it was when the model
gave it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from osler.build import Parts
from osler.build.models import model_identity
from osler.errors import BadRun
from osler.llm.recording import wrap_model
from osler.llm.recording.tape import Kind, dump_reply, key_of, load_reply
from osler.settings import Settings

_T = TypeVar("_T")
_SCHEMA = 1
_WAIT = 60.0
"""Seconds that one process waits for another's write."""


class ResponseCache:
    """A file of replies (SQLite); several processes may use it at once.

    Looked into and written to where it is asked, in no thread: a call of a model takes a
    thousand times as long.

    Raises `BadRun` for a file that is something else, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._osler = version("osler")
        with self._translate_errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                path, timeout=_WAIT, isolation_level=None, check_same_thread=False
            )
        try:
            with self._translate_errors():
                self._prepare_file()
        except BadRun:
            self._db.close()
            raise

    def _prepare_file(self) -> None:
        schema, tables = self._db.execute(  # in one statement: another may be making the file
            "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version"
        ).fetchone()
        if schema != _SCHEMA and (schema or tables):
            raise BadRun(f"{self._path} is not a file of replies", fix="name another file")
        with self._db:  # whoever else opens it now sees table and version, or neither
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"
                " WITHOUT ROWID"
            )
            self._db.execute(f"PRAGMA user_version={_SCHEMA}")

    def find_reply(self, kind: Kind, asked: Sequence[Any]) -> Any:
        """Returns the reply to the same request, or `None`."""
        with self._translate_errors():
            row = self._db.execute(
                "SELECT reply FROM replies WHERE key = ?", (self._reply_key(kind, asked),)
            ).fetchone()
        return None if row is None else load_reply(kind, json.loads(row[0]))

    async def call(self, kind: Kind, asked: Sequence[Any], work: Callable[[], Awaitable[_T]]) -> _T:
        """Returns the reply to the same request, else that of `work`, which is kept."""
        known: _T | None = self.find_reply(kind, asked)
        if known is not None:
            return known
        reply = await work()
        self.keep_reply(kind, asked, reply)
        return reply

    async def call_all(
        self,
        kind: Kind,
        asked: Sequence[tuple[Any, ...]],
        work: Callable[[Sequence[int]], Awaitable[Sequence[_T]]],
    ) -> tuple[_T, ...]:
        """Asks together for the replies that are not known, each once."""
        replies: dict[tuple[Any, ...], _T] = {one: self.find_reply(kind, one) for one in asked}
        missing = [one for one, reply in replies.items() if reply is None]
        if missing:
            fresh = await work([asked.index(one) for one in missing])
            for one, reply in zip(missing, fresh, strict=True):
                self.keep_reply(kind, one, reply)
                replies[one] = reply
        return tuple(replies[one] for one in asked)

    def keep_reply(self, kind: Kind, asked: Sequence[Any], reply: Any) -> None:
        """Stores a reply; where two processes asked at once, the first one stays."""
        with self._translate_errors():
            self._db.execute(
                "INSERT OR IGNORE INTO replies VALUES (?, ?)",
                (
                    self._reply_key(kind, asked),
                    json.dumps(dump_reply(kind, reply), ensure_ascii=False),
                ),
            )

    def __len__(self) -> int:
        with self._translate_errors():
            (count,) = self._db.execute("SELECT count(*) FROM replies").fetchone()
        return int(count)

    def close(self) -> None:
        self._db.close()

    def _reply_key(self, kind: Kind, asked: Sequence[Any]) -> str:
        """Hashes the request with Osler's version, which may word requests differently."""
        return key_of(kind, (self._osler, *asked))

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise BadRun(
                f"{self._path} cannot be used for replies: {error}", fix="name another file"
            ) from error


def remember_replies(settings: Settings, parts: Parts, replies: ResponseCache) -> Parts:
    """The same parts, whose models are not asked again what `replies` knows."""
    models = {
        role: replace(
            ready, model=wrap_model(ready.model, replies, model_identity(settings.model_for(role)))
        )
        for role, ready in parts.models.items()
    }
    return replace(parts, models=models)
