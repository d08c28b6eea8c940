"""Keeps a knowledge base up to date: a folder or a publisher's list that is watched, and documents
that are held until somebody releases them.

Each look compares sizes and times of the files with those at which they were read, and each file
is taken in one transaction; so a watch that is killed at any moment has lost nothing when it is
started again, and a file that was still being written is read again at the next look.

"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple, dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import KnowledgeBaseBusy, KnowledgeBaseError, KnowledgeBaseUnbuilt
from osler.kb.base import KnowledgeBase
from osler.kb.ingest.file_table import FileStamp, IngestRoot, list_held, list_roots, stamp_of
from osler.kb.ingest.files import IngestResult
from osler.sources.catalogue import HELD
from osler.sources.download.transfer import FetchFailed

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder
    from osler.sources.download.job import DownloadJob
# Passages whose encoding is timed: with MiniLM about a second.
_TIMED = 32


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at the folder brought."""

    documents: int
    gone: int
    failed: int
    encoded: int
    vanished: int = 0
    """Files that are no longer there, and whose documents stay."""

    @property
    def is_change(self) -> bool:
        return any(astuple(self))


def tick_every(seconds: float) -> Iterator[int]:
    """Yields the numbers of checks, at the given interval in seconds, the first at once;
    endless."""
    for number in count():
        if number:
            time.sleep(seconds)
        yield number


def watch_folder(
    kb: KnowledgeBase,
    folder: Path,
    source: str,
    encoder: Encoder | None,
    ticks: Iterable[object],
    **terms: Any,
) -> Iterator[Seen]:
    """Looks at the folder once for each tick, and yields what each look brought. Blocks.

    `terms` are those of `KnowledgeBase.add`; for an empty one, a folder that was added before keeps
    its own. While another process writes, a look brings nothing and the next one tries again.
    Documents of files that are gone go, but not where the folder itself is gone or empty: a share
    that is not mounted looks so. What could not be read or is gone is told once. Raises what
    `KnowledgeBase.add`, `update` and `build` raise.
    """
    folder = Path(os.path.abspath(folder))
    with kb.readers.borrow() as db:
        roots = [root for root in list_roots(db, source) if root.path == folder]
    known = _terms_of(roots[0]) if roots else {}
    wanted = known | {name: value for name, value in terms.items() if value}
    is_known = bool(roots) and known == wanted
    failed, vanished = set[str](), set[str]()
    for _ in ticks:
        added = 0
        try:
            if not is_known:
                added = kb.add([folder], source=source, **wanted).documents
                is_known = True
            is_there = folder.is_dir() and any(folder.iterdir())
            seen = kb.update(source=source, prune=folder if is_there else False)
            encoded = _build_where_needed(kb, encoder)
        except KnowledgeBaseBusy:
            continue
        news = len({*seen.failed} - failed), encoded, len({*seen.vanished} - vanished)
        yield Seen(added + seen.documents, seen.gone, *news)
        failed, vanished = {*seen.failed}, {*seen.vanished}


def _terms_of(root: IngestRoot) -> dict[str, Any]:
    """With which it was added, as `KnowledgeBase.add` takes them."""
    terms = asdict(root.how)
    return {name: terms[name] for name in ("fmt", "licence", "illustrative", "trust", "chunk")}


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a look at a publisher's list brought."""

    files: int
    """Those that are there whole by now, of all looks."""
    problem: str
    """Why the download broke off; "" where it did not. The next look goes on with it."""
    seen: Seen


def fetch_on_schedule(
    kb: KnowledgeBase,
    job: DownloadJob,
    encoder: Encoder | None,
    ticks: Iterable[object],
    *,
    accepted: bool,
) -> Iterator[Fetched]:
    """Fetches what is new, takes it in and builds, once for each tick. Blocks.

    A download that breaks off keeps the files that came, which are taken in. While another process
    writes, or where it cannot be written, what came waits for the next tick. Raises
    `LicenceNotAccepted` and `BadConfig` as `DownloadJob.run`, and `ModelError` as `build`.
    """
    taken: dict[Path, FileStamp] = {}
    for _ in ticks:
        problem = ""
        try:
            job.run(accepted=accepted)
        except FetchFailed as error:
            problem = str(error)
        whole = (path for path in job.folder.glob("*") if ".part" not in path.suffixes)
        there = {path: stamp_of(path) for path in whole}
        seen = Seen(0, 0, 0, 0)
        if new := sorted(path for path, stamp in there.items() if taken.get(path) != stamp):
            try:
                recipe = job.recipe
                added = kb.add(new, source=recipe.source, fmt=recipe.format or None)
                encoded = _build_where_needed(kb, encoder)
                seen = Seen(added.documents, added.gone, len(added.failed), encoded)
                unread = " ".join(added.failed)  # tried again at the next look
                taken |= {path: there[path] for path in new if path.name not in unread}
            except KnowledgeBaseBusy:
                problem = problem or "the knowledge base is being written"
            except KnowledgeBaseError as error:  # a full disk, which may have room at the next
                problem = problem or str(error)
        yield Fetched(len(there), problem, seen)


def _build_where_needed(kb: KnowledgeBase, encoder: Encoder | None) -> int:
    try:
        kb.require_built(encoder.identity if encoder else None)
    except KnowledgeBaseUnbuilt:
        if not kb.sources:
            return 0
        return kb.build(encoder).encoded
    return 0


def release(kb: KnowledgeBase, source: str) -> list[IngestResult]:
    """Adds what is held of the source to the source itself; the files are read again. Blocks.

    Raises `KnowledgeBaseError` where nothing is held, and, with the others let in, for documents
    that stay held because their files are gone or cannot be read.
    """
    held = f"{source}{HELD}"
    with kb.readers.borrow() as db:
        roots = list_roots(db, held)
    if not roots:
        raise KnowledgeBaseError(f"nothing of {source} is held", fix="`osler kb info` lists it")
    there = [root for root in roots if root.path.exists()]
    done = [kb.add([root.path], source=source, **_terms_of(root)) for root in there]
    with kb.readers.borrow() as db:
        known = list_held(db, held, source)
    if all(known.values()):
        kb.remove(source=held)
        return done
    for document in (id for id, is_in in known.items() if is_in):
        kb.remove(source=held, document=document)
    raise KnowledgeBaseError(
        f"{list(known.values()).count(False):,} documents of {source} stay held:"
        " their files are gone or cannot be read",
        fix=f"put the files back and release again, or `osler kb rm --source {held}`",
    )


def estimate_seconds(kb: KnowledgeBase, encoder: Encoder, source: str, count: int) -> float:
    """Seconds that this machine needs for `count` vectors, by timing some of `source`."""
    passages = islice(chain.from_iterable(kb.read_documents(source)), _TIMED)
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    encoder.encode(texts[:1], kind="passage")  # what is loaded at the first call is no part of it
    began = time.perf_counter()
    encoder.encode(texts, kind="passage")
    return (time.perf_counter() - began) * count / max(1, len(texts))
