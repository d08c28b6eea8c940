"""Building the index: a vector for every passage whose language the encoder knows.

Any number of builds share the work. The first that is alone adopts the encoder; then all
encode, each the batches that it leases (`leases.py`). The first to find nothing more to
lease waits for the others to leave, does what a dead one left behind, and finishes; the
others find it finished. Each batch is committed, so that a killed build goes on where it
stopped.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import KnowledgeBaseBusy, KnowledgeBaseUnbuilt
from osler.kb.encoders.base import name_spaces, read_spaces
from osler.kb.index import leases
from osler.kb.index.sums import (
    CONTENTS,
    hash_passage,
    name_contents,
    sum_around,
    sum_beside,
    sum_contents,
)
from osler.kb.search.backends import other_encoder_error
from osler.kb.store.access import LockMode, busy_error, open_for_writing, write_transaction
from osler.kb.store.passages import (
    Progress,
    add_correction,
    index_words,
    read_corrections,
    read_meta,
    read_numbered,
    seal_old_passages,
    set_meta,
)
from osler.types import Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

NO_ENCODER = ""
"""Identity of the encoder in a knowledge base that is searched by words alone."""
_PATIENCE = 10.0
"""Seconds that a build always waits: another may be preparing or finishing."""
_AGAIN = 0.05
_MOST_CORRECTIONS = 1000
"""Each costs every search of the embedded engine a little."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """Counts and duration of a build."""

    passages: int
    """All that the knowledge base holds."""
    encoded: int
    """Those that got their vector in this build."""
    seconds: float
    snapshot: str


@dataclass(frozen=True, slots=True)
class Correction:
    """A passage before and after, with its row numbers."""

    old: Passage
    new: Passage
    numbers: tuple[int, int]
    has_vector: bool

    @property
    def is_change(self) -> bool:
        return self.new != self.old


@dataclass(frozen=True, slots=True)
class BuildSite:
    """Folder of a build, the wait for another writer in seconds, and the progress callback."""

    path: Path
    wait: float
    progress: Progress

    def report_waiting(self) -> None:
        self.progress("waiting", 0, None)


def build_together(
    site: BuildSite,
    encoder: Encoder | None,
    *,
    rebuild: bool,
    batch: int,
    follow: Callable[[sqlite3.Connection, str], None],
) -> BuildResult:
    """Implements `KnowledgeBase.build`; `follow` is that of `build_index`."""
    start, encoded, patience = time.perf_counter(), 0, max(site.wait, _PATIENCE)
    if encoder is not None:
        _prepare_build(site, encoder, rebuild=rebuild)
        encoded = _encode_share(site, encoder, batch)
        patience = max(patience, leases.LEASE)  # others may still have a batch to end
        rebuild = False  # done by now, and others have added vectors since
    with open_for_writing(site.path, wait=patience, waiting=site.report_waiting) as db:
        built = build_index(db, encoder, site.progress, rebuild=rebuild, batch=batch, follow=follow)
    seconds = time.perf_counter() - start
    return replace(built, encoded=built.encoded + encoded, seconds=seconds)


def _prepare_build(site: BuildSite, encoder: Encoder, *, rebuild: bool) -> None:
    """Adopts the encoder alone, or joins those who build with it already."""
    until = time.monotonic() + max(site.wait, _PATIENCE)
    while not (_try_adopt(site, encoder, rebuild) or (not rebuild and _can_join(site, encoder))):
        if time.monotonic() >= until:
            raise busy_error(site.path)
        time.sleep(_AGAIN)


def _try_adopt(site: BuildSite, encoder: Encoder, rebuild: bool) -> bool:
    """Adopts the encoder; returns False while another process writes or builds."""
    try:
        with open_for_writing(site.path) as db:
            begin_build(db, encoder, rebuild=rebuild)
    except KnowledgeBaseBusy:
        return False
    return True


def _can_join(site: BuildSite, encoder: Encoder) -> bool:
    """Returns whether others are building with this encoder right now."""
    try:
        with open_for_writing(site.path, LockMode.TOGETHER) as db:
            return is_of(db, encoder)
    except KnowledgeBaseBusy:
        return False


def _encode_share(site: BuildSite, encoder: Encoder, batch: int) -> int:
    wait = max(site.wait, _PATIENCE)
    with open_for_writing(
        site.path, LockMode.TOGETHER, wait=wait, waiting=site.report_waiting
    ) as db:
        # Between adoption and this lock another build may have adopted another encoder.
        if not is_of(db, encoder):
            raise other_encoder_error(read_meta(db, "encoder"), encoder.identity)
        total = leases.count_pending(db)
        return leases.encode_share(db, encoder, progress=site.progress, total=total, batch=batch)


def build_index(
    db: sqlite3.Connection,
    encoder: Encoder | None,
    progress: Progress,
    *,
    rebuild: bool,
    batch: int,
    follow: Callable[[sqlite3.Connection, str], None],
) -> BuildResult:
    """Finishes a build, under the exclusive lock.

    `follow` brings whatever lies beside the file up to this build, whose number it is given;
    only then is the build declared done. It is called for a finished build too.
    """
    start, encoded = time.perf_counter(), 0
    begin_build(db, encoder, rebuild=rebuild)
    if encoder and (total := leases.count_pending(db)):
        encoded = leases.encode_share(db, encoder, progress=progress, total=total, batch=batch)
    passages = count_passages(db)
    if is_built(db) and not read_corrections(db):
        follow(db, read_meta(db, "builds"))
    else:
        _delete_foreign_vectors(db)
        number = str(int(read_meta(db, "builds") or 0) + 1)
        follow(db, number)
        _finish_build(db, number)
    return BuildResult(passages, encoded, time.perf_counter() - start, read_meta(db, "snapshot"))


def begin_build(db: sqlite3.Connection, encoder: Encoder | None, *, rebuild: bool) -> None:
    """Prepares the tables before the first passage is encoded; run by one process alone."""
    _adopt_encoder(db, encoder, rebuild)
    _mend_lexical(db, afresh=rebuild)
    with write_transaction(db):
        seal_old_passages(db)
    # The caller is alone, so a lease that is left belongs to a process that died.
    leases.clear_leases(db)


def encode_some(db: sqlite3.Connection, encoder: Encoder, most: int) -> int:
    """Implements `KnowledgeBase.encode_some`, under the exclusive lock."""
    if not is_of(db, encoder):
        begin_build(db, encoder, rebuild=False)
    if rows := next(leases.pending_batches(db, most), None):
        vectors = leases.encode_batch(encoder, [passage for _, passage in rows])
        with write_transaction(db):
            leases.insert_vectors(db, rows, vectors)
    return leases.count_pending(db)


def is_of(db: sqlite3.Connection, encoder: Encoder) -> bool:
    """Returns whether the vectors that are being made are this encoder's."""
    return _stored_encoder(db) == _describe_encoder(encoder)


def _describe_encoder(encoder: Encoder | None) -> dict[str, str]:
    """Returns the values of `meta` for vectors of this encoder."""
    if encoder is None:
        return {"encoder": NO_ENCODER, "dimension": "0", "languages": "", "spaces": ""}
    return {
        "encoder": encoder.identity,
        "dimension": str(encoder.dimension),
        "languages": " ".join(sorted(encoder.languages)),
        "spaces": name_spaces(encoder),
    }


def _stored_encoder(db: sqlite3.Connection) -> dict[str, str]:
    return {key: read_meta(db, key) for key in ("encoder", "dimension", "languages", "spaces")}


def _adopt_encoder(db: sqlite3.Connection, encoder: Encoder | None, rebuild: bool) -> None:
    """Records the encoder before the first vector is written."""
    stored, wanted = _stored_encoder(db), _describe_encoder(encoder)
    if not rebuild and stored == wanted:
        return
    # A language that joins or leaves does not change the vectors that are there.
    kept = {"encoder", "dimension"}
    other = stored["encoder"] != NO_ENCODER and any(stored[key] != wanted[key] for key in kept)
    if other and not rebuild:
        raise other_encoder_error(stored["encoder"], wanted["encoder"])
    with write_transaction(db):
        if other or rebuild:
            db.execute("DELETE FROM vector")
        else:
            _delete_other_spaces(db, read_spaces(stored["spaces"]), read_spaces(wanted["spaces"]))
        set_meta(db, built="", **wanted)


def _delete_other_spaces(
    db: sqlite3.Connection, stored: Mapping[str, str], wanted: Mapping[str, str]
) -> None:
    """Deletes the vectors of languages that have another encoder now."""
    changed = [one for one in {*stored, *wanted} if stored.get(one) != wanted.get(one)]
    db.execute(
        "DELETE FROM vector WHERE passage IN (SELECT number FROM passage"
        " WHERE language IN (SELECT value FROM json_each(?)))",
        (json.dumps(changed),),
    )


def _mend_lexical(db: sqlite3.Connection, *, afresh: bool) -> None:
    """Refills the full-text index where it does not hold exactly what the store holds.

    `add` and `remove` keep the two equal; only damage from outside can part them.
    """
    if not afresh and not lexical_differs(db):
        return
    with write_transaction(db):
        db.execute("INSERT INTO lexical(lexical) VALUES ('delete-all')")
        index_words(db, read_numbered(db, "SELECT * FROM passage ORDER BY number"))


def lexical_differs(db: sqlite3.Connection) -> int:
    """Counts the passages that are in only one of store and full-text index."""
    lost = "SELECT count(*) FROM (SELECT number FROM passage EXCEPT SELECT rowid FROM lexical)"
    stray = "SELECT count(*) FROM (SELECT rowid FROM lexical EXCEPT SELECT number FROM passage)"
    return sum(int(db.execute(sql).fetchone()[0]) for sql in (lost, stray))


def _delete_foreign_vectors(db: sqlite3.Connection) -> None:
    """Deletes vectors of languages that the encoder does not know."""
    with write_transaction(db):
        db.execute(
            "DELETE FROM vector WHERE passage NOT IN (SELECT number FROM passage"
            " WHERE language IN (SELECT value FROM json_each(?)))",
            (leases.encoder_languages(db),),
        )


def _finish_build(db: sqlite3.Connection, number: str) -> None:
    """Merges the full-text index into one segment, and declares the knowledge base built."""
    with write_transaction(db):
        db.execute("INSERT INTO lexical(lexical) VALUES ('optimize')")
        contents = sum_contents(db)
        set_meta(
            db,
            contents=f"{contents:x}",
            snapshot=name_contents(db, contents),
            corrections="",
            builds=number,
            built="yes",
        )
        set_meta(db, beside=f"{sum_beside(db)} {sum_around(db)}")


def declare_corrected(db: sqlite3.Connection, made: Correction) -> None:
    """Declares a knowledge base built of which one passage was corrected, within the caller's
    transaction. Nothing is read but that passage, however large the knowledge base is.

    It is left unbuilt where the passage has no vector and wants one, and after `_MOST_CORRECTIONS`:
    the next build makes one index of all.
    """
    stored = read_meta(db, "contents")
    contents = int(stored, 16) if stored else sum_contents(db)
    if stored:
        contents += hash_passage(made.new.id, made.new.text)
        contents = (contents - hash_passage(made.old.id, made.old.text)) % CONTENTS
    add_correction(db, *made.numbers)
    is_whole = made.has_vector or made.new.language not in read_meta(db, "languages").split()
    is_room = len(read_corrections(db)) < _MOST_CORRECTIONS
    set_meta(
        db,
        contents=f"{contents:x}",
        beside="",  # to be summed by the next build: it would be read as a whole
        snapshot=name_contents(db, contents),
        built="yes" if is_whole and is_room else "",
    )


def count_passages(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM passage").fetchone()[0])


def is_built(db: sqlite3.Connection) -> bool:
    return read_meta(db, "built") == "yes"


def require_built(db: sqlite3.Connection, encoder: str | None) -> None:
    """Implements `KnowledgeBase.require_built`."""
    missing = count_unindexed(db, encoder)
    if not is_built(db):
        what = (
            f"{missing:,} of {count_passages(db):,} passages are not indexed"
            if missing
            else "passages were added or removed since the last build"
        )
        raise KnowledgeBaseUnbuilt(what, fix="run `osler kb build`")


def count_unindexed(db: sqlite3.Connection, encoder: str | None) -> int:
    """Implements `KnowledgeBase.count_unindexed`."""
    if db.execute("SELECT 1 FROM passage LIMIT 1").fetchone() is None:
        raise KnowledgeBaseUnbuilt(
            "the knowledge base holds no passages",
            fix="run `osler kb build --sample` or `osler kb add PATH --source SOURCE`",
        )
    stored = read_meta(db, "encoder")
    if encoder is not None and encoder != stored and (is_built(db) or stored != NO_ENCODER):
        raise other_encoder_error(stored, encoder)
    return 0 if is_built(db) else count_waiting(db)


def count_waiting(db: sqlite3.Connection) -> int:
    """Counts the passages that want a vector: all before the first build, since nobody has said
    which languages get vectors."""
    return leases.count_pending(db) if is_begun(db) else count_passages(db)


def is_begun(db: sqlite3.Connection) -> bool:
    """Returns whether any build has recorded an encoder, and so its languages."""
    return db.execute("SELECT 1 FROM meta WHERE key = 'encoder'").fetchone() is not None
