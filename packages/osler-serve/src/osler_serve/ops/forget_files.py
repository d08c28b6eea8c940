"""What `forget` takes out of files that are no databases: lines of logs, and archives."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import mmap
import os
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from osler.kb.store.durable import sync_path
from osler.runs.files import RECORDS, TRACES

_PIECE = 1 << 20
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Archives, among them what office programs write.
_ZIPPED = {".zip", ".docx", ".xlsx", ".pptx"}
UNREAD = {".zst", ".pdf", ".parquet", ".7z", ".rar"}
"""Endings of files whose compressed parts nobody looks into."""
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)


def holds(path: Path, needles: Iterable[bytes]) -> bool:
    """Whether the file, or what is packed in it, holds one of these; also where that is unknown."""
    try:
        if path.stat().st_size == 0:
            return False
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if any(data.find(needle) >= 0 for needle in needles):
                return True
        return _holds_packed(path, tuple(needles))
    except _BROKEN:
        return True  # what cannot be read cannot be said to be free of it


def _holds_packed(path: Path, needles: tuple[bytes, ...]) -> bool:
    if opener := _OPENERS.get(path.suffix):
        with opener(path, "rb") as stream:
            return _stream_holds(stream, needles)
    if path.suffix in _ZIPPED:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                with archive.open(name) as stream:
                    if _stream_holds(stream, needles):
                        return True
    return False


def _stream_holds(stream: IO[bytes], needles: tuple[bytes, ...]) -> bool:
    overlap, before = max(map(len, needles), default=1) - 1, b""
    while piece := stream.read(_PIECE):
        window = before + piece
        if any(needle in window for needle in needles):
            return True
        before = window[-overlap:] if overlap else b""
    return False


def forget_samples(log: Path, needles: Sequence[bytes]) -> int:
    """Takes the samples out of an evaluation's log whose record or events hold one of these.

    The events are overwritten in place, since records name their bytes; their records go. The
    evaluation, run again, tries those samples anew. Returns how many.
    """
    spoilt = {path.name: _matching_spans(path, needles) for path in log.glob(f"{TRACES}*.jsonl")}
    forgotten = 0
    for path in sorted(log.glob(f"{RECORDS}*.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        gone = [line for line in lines if _is_spoilt(line, needles, spoilt)]
        for line in gone:
            if span := _trace_of(line):
                name, start, length = span
                spoilt.setdefault(name, []).append((start, start + length))
        if gone:
            forgotten += len(gone)
            _replace(path, b"".join(line for line in lines if line not in gone))
    for name, spans in spoilt.items():
        _overwrite(log / name, spans)
    return forgotten


def _matching_spans(path: Path, needles: Sequence[bytes]) -> list[tuple[int, int]]:
    """Of the lines that hold one of these."""
    spans, at = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        if any(needle in line for needle in needles):
            spans.append((at, at + len(line)))
        at += len(line)
    return spans


def _is_spoilt(
    line: bytes, needles: Sequence[bytes], spoilt: dict[str, list[tuple[int, int]]]
) -> bool:
    if any(needle in line for needle in needles):
        return True
    if (span := _trace_of(line)) is None:
        return False
    name, start, length = span
    return any(start < end and first < start + length for first, end in spoilt.get(name, ()))


def _trace_of(line: bytes) -> tuple[str, int, int] | None:
    """File, start and length of the record's events; `None` of one without, or half a line."""
    try:
        trace = json.loads(line).get("trace")
        return (
            None if trace is None else (Path(trace["file"]).name, trace["start"], trace["length"])
        )
    except (ValueError, AttributeError, KeyError, TypeError):
        return None


def _overwrite(path: Path, spans: Iterable[tuple[int, int]]) -> None:
    """With spaces; ends of lines stay."""
    if not path.is_file():
        return
    with path.open("r+b") as file:
        for start, end in spans:
            file.seek(start)
            old = file.read(end - start)
            file.seek(start)
            file.write(bytes(10 if byte == 10 else 32 for byte in old))
        file.flush()
        os.fsync(file.fileno())


def _replace(path: Path, data: bytes) -> None:
    draft = path.with_name(f".{path.name}.part")
    with draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_path(path.parent)
