"""Building: a vector for every passage whose language the encoder knows, then the snapshot.

Each batch is committed, so that a build that was killed goes on where it stopped.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from osler.errors import KnowledgeBaseUnbuilt
from osler.kb.index.leases import clear_leases, encode_batch
from osler.kb.search import other_encoder_error
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import Progress, index_words, read_meta, read_numbered, set_meta
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

NO_ENCODER = ""
"""Identity stored for a knowledge base that is searched by words alone."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build did."""

    passages: int
    """All that the knowledge base holds."""
    encoded: int
    """Those that got their vector in this build."""
    seconds: float
    snapshot: str


def build_index(
    db: sqlite3.Connection,
    encoder: Encoder | None,
    *,
    rebuild: bool,
    progress: Progress,
    batch: int,
    beside: Callable[[str], None],
) -> BuildResult:
    """See `KnowledgeBase.build`.

    `beside` brings whatever lies beside the file up to this build, whose number it is given;
    only then is the build declared done. It is called for a finished build too.
    """
    start = time.perf_counter()
    begin_build(db, encoder, rebuild=rebuild)
    # What other builds left behind when they died; see `building`.
    encoded = _encode_missing(db, encoder, progress, batch) if encoder and count_pending(db) else 0
    passages = count_passages(db)
    if is_built(db):
        beside(read_meta(db, "builds"))
    else:
        _delete_foreign_vectors(db)
        number = str(int(read_meta(db, "builds") or 0) + 1)
        beside(number)
        _finish_build(db, number)
    return BuildResult(passages, encoded, time.perf_counter() - start, read_meta(db, "snapshot"))


def begin_build(db: sqlite3.Connection, encoder: Encoder | None, *, rebuild: bool) -> None:
    """What must be done before the first passage is encoded, by one process alone."""
    _adopt_encoder(db, encoder, rebuild)
    _mend_lexical(db, afresh=rebuild)
    clear_leases(db)


def is_of(db: sqlite3.Connection, encoder: Encoder) -> bool:
    """Whether the vectors that are made now are this encoder's."""
    return (read_meta(db, "encoder"), read_meta(db, "dimension"), read_meta(db, "languages")) == (
        encoder.identity,
        str(encoder.dimension),
        " ".join(sorted(encoder.languages)),
    )


def _adopt_encoder(db: sqlite3.Connection, encoder: Encoder | None, rebuild: bool) -> None:
    """Writes down who encodes before the first vector is written."""
    identity = encoder.identity if encoder else NO_ENCODER
    dimension = str(encoder.dimension if encoder else 0)
    languages = " ".join(sorted(encoder.languages)) if encoder else ""
    stored = read_meta(db, "encoder")
    wanted = {"encoder": identity, "dimension": dimension, "languages": languages}
    if not rebuild and {key: read_meta(db, key) for key in wanted} == wanted:
        return
    other = stored != NO_ENCODER and (stored, read_meta(db, "dimension")) != (identity, dimension)
    if other and not rebuild:
        raise other_encoder_error(stored, identity)
    with write_transaction(db):
        if other or rebuild:
            db.execute("DELETE FROM vector")
        set_meta(db, built="", **wanted)


def _mend_lexical(db: sqlite3.Connection, *, afresh: bool) -> None:
    """Fills the full-text index anew where it does not hold just what the store holds.

    `add` and `remove` keep the two equal; only damage from outside can part them.
    """
    if not afresh and not lexical_differs(db):
        return
    with write_transaction(db):
        db.execute("INSERT INTO lexical(lexical) VALUES ('delete-all')")
        index_words(db, read_numbered(db, "SELECT * FROM passage ORDER BY number"))


def lexical_differs(db: sqlite3.Connection) -> int:
    """How many passages are in one of store and full-text index but not in both."""
    lost = "SELECT count(*) FROM (SELECT number FROM passage EXCEPT SELECT rowid FROM lexical)"
    stray = "SELECT count(*) FROM (SELECT rowid FROM lexical EXCEPT SELECT number FROM passage)"
    return sum(int(db.execute(sql).fetchone()[0]) for sql in (lost, stray))


def _encode_missing(
    db: sqlite3.Connection, encoder: Encoder, progress: Progress, batch: int
) -> int:
    total, done = count_pending(db), 0
    progress("encode", 0, total)
    for rows in _missing_batches(db, batch):
        vectors = encode_batch(encoder, [passage for _, passage in rows])
        with write_transaction(db):
            db.executemany(
                "INSERT INTO vector VALUES (?, ?)",
                [
                    (number, vector.tobytes())
                    for (number, _), vector in zip(rows, vectors, strict=True)
                ],
            )
        done += len(rows)
        progress("encode", done, total)
    return done


def _missing_batches(db: sqlite3.Connection, size: int) -> Iterator[list[tuple[int, Passage]]]:
    """Passages that want a vector, `size` at a time, in order of row number."""
    last = 0
    missing = (
        "SELECT * FROM passage WHERE number > ? AND language IN (SELECT value FROM json_each(?))"
        " AND number NOT IN (SELECT passage FROM vector) ORDER BY number LIMIT ?"
    )
    while rows := list(read_numbered(db, missing, (last, _encoder_languages(db), size))):
        yield rows
        last = rows[-1][0]


def _encoder_languages(db: sqlite3.Connection) -> str:
    """Those of the encoder, as a JSON list."""
    return json.dumps(read_meta(db, "languages").split())


def _delete_foreign_vectors(db: sqlite3.Connection) -> None:
    """Takes out vectors of languages that the encoder does not know."""
    with write_transaction(db):
        db.execute(
            "DELETE FROM vector WHERE passage NOT IN (SELECT number FROM passage"
            " WHERE language IN (SELECT value FROM json_each(?)))",
            (_encoder_languages(db),),
        )


def _finish_build(db: sqlite3.Connection, number: str) -> None:
    """Joins the full-text index into one piece, and declares the whole built."""
    with write_transaction(db):
        db.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")
        set_meta(db, snapshot=snapshot_of(db), builds=number, built="yes")


def snapshot_of(db: sqlite3.Connection) -> str:
    """16 hexadecimal digits that are equal for equal passages and an equal encoder.

    The order and the day of adding do not matter.
    """
    digest = sha256(read_meta(db, "encoder").encode() + b"\n")
    for id, text in db.execute("SELECT id, text FROM passage ORDER BY id"):
        digest.update(id.encode() + b"\n" + sha256(text.encode()).digest())
    return digest.hexdigest()[:16]


def count_passages(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM passage").fetchone()[0])


def count_pending(db: sqlite3.Connection) -> int:
    """Passages that should have a vector and have none."""
    (missing,) = db.execute(
        "SELECT count(*) FROM passage WHERE language IN (SELECT value FROM json_each(?))"
        " AND number NOT IN (SELECT passage FROM vector)",
        (_encoder_languages(db),),
    ).fetchone()
    return int(missing)


def is_built(db: sqlite3.Connection) -> bool:
    return read_meta(db, "built") == "yes"


def require_built(db: sqlite3.Connection, encoder: str | None) -> None:
    """See `KnowledgeBase.require_built`."""
    if db.execute("SELECT 1 FROM passage LIMIT 1").fetchone() is None:
        raise KnowledgeBaseUnbuilt(
            "the knowledge base holds no passages",
            fix="run `osler kb build --sample` or `osler kb add PATH --source SOURCE`",
        )
    stored = read_meta(db, "encoder")
    if encoder is not None and encoder != stored and (is_built(db) or stored != NO_ENCODER):
        raise other_encoder_error(stored, encoder)
    if not is_built(db):
        # Before the first build nobody has said which languages get vectors: all are missing.
        total = count_passages(db)
        missing = count_pending(db) if is_begun(db) else total
        what = (
            f"{missing:,} of {total:,} passages are not indexed"
            if missing
            else "passages were added or removed since the last build"
        )
        raise KnowledgeBaseUnbuilt(what, fix="run `osler kb build`")


def is_begun(db: sqlite3.Connection) -> bool:
    """Whether a build has ever said which languages get vectors."""
    return db.execute("SELECT 1 FROM meta WHERE key = 'encoder'").fetchone() is not None
