"""Cache on disk: replies until they expire, passages as long as there is room."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from osler.errors import SourceUnavailable
from osler.types import Locator, Passage

FILE = "web.db"
_TABLES = """
CREATE TABLE IF NOT EXISTS reply(
  key TEXT PRIMARY KEY, url TEXT NOT NULL, type TEXT NOT NULL, body BLOB NOT NULL,
  at REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS passage(
  id TEXT PRIMARY KEY, told TEXT NOT NULL, used REAL NOT NULL) WITHOUT ROWID;
"""
_SIZE = "SELECT coalesce(sum(length(body)), 0) FROM reply"
_OLDEST = "SELECT key, length(body) FROM reply ORDER BY used, key"
# SQLite has no DELETE … LIMIT by default: the passages beyond the limit are selected.
_TOO_MANY = """
DELETE FROM passage WHERE id IN (
  SELECT id FROM passage ORDER BY used DESC, id LIMIT -1 OFFSET ?)
"""


@dataclass(frozen=True, slots=True)
class CachedReply:
    """The body of a server's reply, with the time of fetching."""

    url: str
    """The final address, after redirects."""
    type: str
    """Media type, without parameters."""
    body: bytes
    at: float
    """Seconds since 1970, when it was fetched."""


@dataclass(frozen=True)
class ReplyCache:
    """Replies and passages in one SQLite file in `folder`. Every method blocks; processes may
    share it.

    Every method raises `SourceUnavailable` when the file cannot be read or written.
    """

    folder: Path
    largest: int = 256 * 2**20
    """Bytes of replies that are kept; the longest unused go first."""
    passages: int = 100_000
    """Passages that are kept, so that a citation opens; the longest unused go first."""

    def get_reply(self, key: str, *, now: float, days: float | None) -> CachedReply | None:
        """The reply, unless it is older than `days` (`None` = however old), or so far ahead: the
        clock was set back since, and nobody knows how old it is."""
        with self._connect_file() as db:
            row = db.execute(
                "SELECT url, type, body, at FROM reply WHERE key = ?", (key,)
            ).fetchone()
            if row is None or (days is not None and abs(now - row[3]) > days * 86_400):
                return None
            db.execute("UPDATE reply SET used = ? WHERE key = ?", (now, key))
        return CachedReply(*row)

    def put_reply(self, key: str, reply: CachedReply) -> None:
        """Stores the reply; the longest unused ones make room for it."""
        if len(reply.body) > self.largest:
            return
        with self._connect_file() as db:
            row = (key, reply.url, reply.type, reply.body, reply.at, reply.at)
            db.execute("INSERT OR REPLACE INTO reply VALUES (?, ?, ?, ?, ?, ?)", row)
            over = db.execute(_SIZE).fetchone()[0] - self.largest
            for old, size in db.execute(_OLDEST).fetchall() if over > 0 else ():
                if over <= 0:
                    break
                if old != key:
                    db.execute("DELETE FROM reply WHERE key = ?", (old,))
                    over -= size

    def drop_reply(self, key: str) -> None:
        """Forgets a reply, if it is there."""
        with self._connect_file() as db:
            db.execute("DELETE FROM reply WHERE key = ?", (key,))

    def keep_passages(self, passages: Iterable[Passage], *, now: float) -> None:
        """Keeps passages so that `passage` finds them when their replies are long gone."""
        rows = [(each.id, json.dumps(asdict(each), ensure_ascii=False), now) for each in passages]
        with self._connect_file() as db:
            db.executemany("INSERT OR REPLACE INTO passage VALUES (?, ?, ?)", rows)
            db.execute(_TOO_MANY, (self.passages,))

    def find_passage(self, id: str) -> Passage | None:
        """The passage as it was when it was last stored, if it is still there."""
        if not (self.folder / FILE).is_file():
            return None
        with self._connect_file() as db:
            row = db.execute("SELECT told FROM passage WHERE id = ?", (id,)).fetchone()
        if row is None:
            return None
        fields = json.loads(row[0])
        place = fields.pop("locator")
        authors = tuple(place.pop("authors", ()))
        return Passage(**fields, locator=Locator(**place, authors=authors))

    @contextmanager
    def _connect_file(self) -> Iterator[sqlite3.Connection]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.folder / FILE, timeout=10)) as db, db:
                db.executescript(_TABLES)
                yield db
        except (sqlite3.Error, OSError) as error:
            raise SourceUnavailable(
                f"the cache of fetched pages in {self.folder} failed: {error}",
                fix=f"check the folder's permissions, or delete {FILE} in it",
            ) from error
