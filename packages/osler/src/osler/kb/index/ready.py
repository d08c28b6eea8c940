"""Ready-made vectors of documents, as MedCPT's are published: arrays beside the ids of their rows.

A folder holds `embeds_chunk_N.npy` (rows by dimension, floats) and `pmids_chunk_N.json` (a list of
as many ids), and a `vectors.json` that says whose they are, which the files themselves do not:

    {"encoder": "IDENTITY", "sha256": {"embeds_chunk_0.npy": "…", "pmids_chunk_0.json": "…"}}

Each passage of a document gets the document's vector, scaled to length 1. Nothing is written before
every file was checked.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from osler.errors import MalformedSource, translate_os_errors
from osler.kb.encoders.base import scale_to_unit
from osler.kb.index import begin_build
from osler.kb.index.leases import PENDING, encoder_languages
from osler.kb.search.base import Floats
from osler.kb.store.access import open_for_writing, write_transaction
from osler.llm.core.cache import hash_file
from osler.text import make_slug

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

MANIFEST = "vectors.json"
_CHUNK = re.compile(r"embeds_chunk_(\d+)\.npy")
_ROWS = 10_000
"""Rows that are read at a time: 30 MB of MedCPT's."""


@dataclass(frozen=True, slots=True)
class ReadyResult:
    """What ready-made vectors gave."""

    passages: int
    """Those that got their vector."""
    unknown: int
    """Vectors of documents that are not there, or have theirs already."""

    @property
    def line(self) -> str:
        return f"vectors of {self.passages:,} passages taken; {self.unknown:,} of none"


def take_vectors(
    kb: Path,
    encoder: Encoder,
    folder: Path,
    *,
    source: str,
    wait: float = 0.0,
) -> ReadyResult:
    """Gives passages of a source that wait for a vector that of their document; `kb` is the folder
    of the knowledge base. The next build need not make them.

    Raises `MalformedSource` for vectors of another encoder or dimension, a checksum that is not
    that of the file, and files that do not fit together; `KnowledgeBaseMismatch` where the
    knowledge base was built by another encoder.
    """
    with open_for_writing(kb, wait=wait) as db:
        begin_build(db, encoder, rebuild=False)
        return _insert_ready(db, encoder, source, folder)


def _insert_ready(
    db: sqlite3.Connection, encoder: Encoder, source: str, folder: Path
) -> ReadyResult:
    with translate_os_errors(f"{folder} cannot be read", MalformedSource, "name its folder"):
        chunks = _check_files(folder, encoder)
        passages = unknown = 0
        for vectors, ids in chunks:
            for start in range(0, len(ids), _ROWS):
                end = start + _ROWS
                scaled = _scale(vectors[start:end], folder)
                pairs = list(_pair_rows(db, source, ids[start:end], scaled))
                with write_transaction(db):
                    db.executemany("INSERT OR IGNORE INTO vector VALUES (?, ?)", pairs)
                known = {vector for _, vector in pairs}
                passages += len(pairs)
                unknown += len(ids[start:end]) - len(known)
    return ReadyResult(passages, unknown)


def _pair_rows(
    db: sqlite3.Connection, source: str, ids: list[str], vectors: Floats
) -> Iterator[tuple[int, bytes]]:
    """Numbers of the passages that wait, with the vector of their document."""
    at = {make_slug(id): row for row, id in enumerate(ids)}
    waiting = (
        "SELECT number, (SELECT id FROM document WHERE document.number = passage.document)"  # noqa: S608
        " FROM passage WHERE document IN (SELECT number FROM document WHERE source = ? AND id IN"
        f" (SELECT value FROM json_each(?))) AND {PENDING}"
    )
    values = (source, json.dumps([*at]), encoder_languages(db))
    for number, document in db.execute(waiting, values).fetchall():
        yield number, vectors[at[document]].tobytes()


def _check_files(folder: Path, encoder: Encoder) -> list[tuple[Any, list[str]]]:
    """The arrays, which stay on the disk, with the ids of their rows."""
    manifest = _read_manifest(folder, encoder)
    arrays = sorted(name for name in manifest["sha256"] if _CHUNK.fullmatch(name))
    if not arrays:
        raise MalformedSource(f"{folder / MANIFEST} names no embeds_chunk_N.npy")
    chunks = []
    for name in arrays:
        ids_name = f"pmids_chunk_{name.removeprefix('embeds_chunk_').removesuffix('.npy')}.json"
        for one in (name, ids_name):
            _check_sum(folder / one, manifest["sha256"].get(one, ""))
        chunks.append(_read_chunk(folder / name, folder / ids_name, encoder))
    return chunks


def _read_manifest(folder: Path, encoder: Encoder) -> dict[str, Any]:
    wanted = json.dumps({"encoder": encoder.identity, "sha256": {"embeds_chunk_0.npy": "…"}})
    fix = f"write {MANIFEST} into it, as in {wanted.encode().decode('unicode_escape')}"
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found, sums = manifest["encoder"], dict(manifest["sha256"])
    except (FileNotFoundError, ValueError, TypeError, KeyError) as error:
        raise MalformedSource(f"{folder} does not say whose vectors it has", fix=fix) from error
    if found != encoder.identity:
        raise MalformedSource(
            f"the vectors in {folder} are of encoder {found}, not of {encoder.identity}",
            fix="set that encoder under [embedder], or leave --vectors out",
        )
    return {"encoder": found, "sha256": sums}


def _check_sum(file: Path, wanted: str) -> None:
    if (found := hash_file(file)) != wanted.lower():
        raise MalformedSource(
            f"{file} has the SHA-256 {found}, {MANIFEST} says {wanted or 'nothing'}",
            fix="download it again",
        )


def _read_chunk(array: Path, ids: Path, encoder: Encoder) -> tuple[Any, list[str]]:
    try:
        vectors = np.load(array, mmap_mode="r", allow_pickle=False)
        named = [str(id) for id in json.loads(ids.read_text(encoding="utf-8"))]
    except (ValueError, TypeError) as error:
        raise MalformedSource(f"{array.name} and {ids.name} cannot be read: {error}") from error
    if vectors.ndim != 2 or vectors.shape[1] != encoder.dimension or vectors.dtype.kind != "f":
        raise MalformedSource(
            f"{array} has the shape {vectors.shape} of {vectors.dtype}; {encoder.identity} makes"
            f" {encoder.dimension} floats a row"
        )
    if len(named) != len(vectors):
        raise MalformedSource(f"{array} has {len(vectors):,} rows, {ids.name} {len(named):,} ids")
    return vectors, named


def _scale(vectors: Any, folder: Path) -> Floats:
    try:
        return np.asarray(scale_to_unit(np.asarray(vectors, np.float32)), np.float32)
    except ValueError as error:
        raise MalformedSource(f"{folder}: {error}") from error
