"""Duplicates: documents that are twice in one file, word for word (Omni-RAG §3.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from osler.sources.records import Document, Drop, Record

_PATIENTS = frozenset({"Patient", "Synthetic patient"})
# Documents of one file that are compared with each other; their keys take about 100 MB.
_REMEMBERED = 1_000_000


def without_doubles(records: Iterator[Record], name: str) -> Iterator[Record]:
    """The records, without documents that repeat an earlier one of the file `name`: each is a
    drop instead.

    Patients are not compared: two may well have the same history.
    """
    seen: set[bytes] = set()
    for record in records:
        if isinstance(record, Document) and record.kind not in _PATIENTS:
            key = _document_key(record)
            if key in seen:
                yield Drop(f"{name}: {record.id}", "double in the file")
                continue
            if len(seen) < _REMEMBERED:
                seen.add(key)
        yield record


def _document_key(document: Document) -> bytes:
    """Equal for equal words under the same identity: two articles may both say "Reply."."""
    # A later version of a record replaces the earlier one, even where it says the same.
    parts = [document.title, document.code, document.url, str(document.version)]
    parts += ["\n".join((*section.path, section.text)) for section in document.sections]
    whole = "\0".join(parts).encode(errors="surrogatepass")
    return hashlib.blake2b(whole, digest_size=8).digest()
