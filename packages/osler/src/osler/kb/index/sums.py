"""Sums of what a knowledge base holds, by which a build is named and damage is seen."""

from __future__ import annotations

import sqlite3
from hashlib import blake2b, sha256

from osler.kb.store.passages import COLUMNS, read_meta
from osler.kb.store.works import has_dates

CONTENTS = 2**256
"""Sums of hashes are taken modulo this."""


def snapshot_of(db: sqlite3.Connection) -> str:
    """Hashes passages and encoder to 16 hexadecimal digits, equal for equal contents.

    The order and the day of adding do not matter. Reads all texts.
    """
    return name_contents(db, sum_contents(db))


def sum_contents(db: sqlite3.Connection) -> int:
    """The sum of all passages' hashes, which one passage is taken from and added to."""
    rows = db.execute("SELECT id, text FROM passage")
    return sum(hash_passage(id, text) for id, text in rows) % CONTENTS


def sum_beside(db: sqlite3.Connection) -> str:
    """The sum of the hashes of all that stands beside the texts: columns and vectors."""
    total = 0
    rows = db.execute(
        "SELECT passage.*, value FROM passage LEFT JOIN vector ON vector.passage = number"
    )
    for *columns, vector in rows:
        hashed = blake2b(repr(columns[:COLUMNS]).encode(errors="surrogatepass"), digest_size=16)
        hashed.update(vector or b"")
        total += int.from_bytes(hashed.digest())
    return f"{total % CONTENTS:x}"


_AROUND = (
    "SELECT number, source, id, title, year, lang, kinds, retracted, trust FROM document"
    " ORDER BY number",
    "SELECT * FROM lexical_data ORDER BY id",
    "SELECT * FROM lexical_idx ORDER BY segid, term",
    "SELECT * FROM lexical_docsize ORDER BY id",
    # A snapshot has its time and name, and restored another number of builds.
    "SELECT * FROM meta WHERE key NOT IN ('beside', 'builds', 'taken', 'name', 'retractions')"
    " ORDER BY key",
)


def sum_around(db: sqlite3.Connection) -> str:
    """A sum of what searches go by besides passages and vectors: documents, full-text index,
    encoder. It is the same as long as the knowledge base is as it was built."""
    hashed = blake2b(digest_size=16)
    for select in _AROUND:
        for row in db.execute(select):
            hashed.update(repr(row).encode(errors="surrogatepass"))
    if has_dates(db):
        dated = "SELECT number, date FROM document WHERE date != '' ORDER BY number"
        for row in db.execute(dated):
            hashed.update(repr(row).encode())
    return hashed.hexdigest()


def hash_passage(id: str, text: str) -> int:
    digest = sha256(id.encode() + b"\n" + sha256(text.encode()).digest()).digest()
    return int.from_bytes(digest)


def name_contents(db: sqlite3.Connection, contents: int) -> str:
    encoders = f"{read_meta(db, 'encoder')} {read_meta(db, 'spaces')}".rstrip()
    return sha256(f"{encoders}\n{contents:x}".encode()).hexdigest()[:16]
