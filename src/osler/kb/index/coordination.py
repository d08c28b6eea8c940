"""One build among others: who prepares, who shares the work, who finishes.

First the one that is alone adopts the encoder. Then any number encode together, each the
batches that it claims. The first to find nothing more to claim waits for the others to
leave, does what a dead one left behind, and finishes; the others find it finished.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import KnowledgeBaseBusy
from osler.kb.index import build as index
from osler.kb.index import leases
from osler.kb.index.build import BuildResult
from osler.kb.search import other_encoder_error
from osler.kb.store.access import LockMode, busy_error, open_for_writing
from osler.kb.store.passages import Progress, read_meta

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

_PATIENCE = 10.0
"""Seconds that a build always waits: another may be preparing or finishing."""
_AGAIN = 0.05


@dataclass(frozen=True, slots=True)
class BuildSite:
    """Where it is built, how long to wait for another writer, and whom to tell."""

    path: Path
    wait: float
    progress: Progress

    def report_waiting(self) -> None:
        self.progress("waiting", 0, None)


def build_together(
    site: BuildSite,
    finish: Callable[[sqlite3.Connection], BuildResult],
    encoder: Encoder | None,
    *,
    rebuild: bool,
    batch: int,
) -> BuildResult:
    """See `KnowledgeBase.build`. `finish` does, alone, all that is left to do."""
    start, encoded, patience = time.perf_counter(), 0, max(site.wait, _PATIENCE)
    if encoder is not None:
        _prepare_build(site, encoder, rebuild=rebuild)
        encoded = _encode_share(site, encoder, batch)
        patience = max(patience, leases.LEASE)  # others may still have a batch to end
    with open_for_writing(site.path, wait=patience, waiting=site.report_waiting) as db:
        if encoder is None and rebuild:
            index.begin_build(db, encoder, rebuild=True)
        built = finish(db)
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
    """False when somebody else is writing or building."""
    try:
        with open_for_writing(site.path) as db:
            index.begin_build(db, encoder, rebuild=rebuild)
    except KnowledgeBaseBusy:
        return False
    return True


def _can_join(site: BuildSite, encoder: Encoder) -> bool:
    """False when nobody is building with this encoder."""
    try:
        with open_for_writing(site.path, LockMode.TOGETHER) as db:
            return index.is_of(db, encoder)
    except KnowledgeBaseBusy:
        return False


def _encode_share(site: BuildSite, encoder: Encoder, batch: int) -> int:
    wait = max(site.wait, _PATIENCE)
    with open_for_writing(
        site.path, LockMode.TOGETHER, wait=wait, waiting=site.report_waiting
    ) as db:
        if not index.is_of(db, encoder):
            raise other_encoder_error(read_meta(db, "encoder"), encoder.identity)
        total = index.count_pending(db)
        return leases.encode_share(db, encoder, progress=site.progress, total=total, batch=batch)
