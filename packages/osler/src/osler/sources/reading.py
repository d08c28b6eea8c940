"""Documents of files, without a knowledge base."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from osler.errors import MalformedSource
from osler.sources.discover import Found, FoundFolder, discover, without_doubles
from osler.sources.formats.containers import Unreadable
from osler.sources.formats.reading import TooLarge, first_words
from osler.sources.records import Document, Drop, Record

_UNTITLED = frozenset({"medrag-jsonl"})
"""Formats of search benchmarks, whose texts may have no title."""


def read(path: Path | str, *, fmt: str | None = None) -> Iterator[Record]:
    r"""Yields the documents of a file, folder or archive, as `kb add` reads them, one by one.

    What became no document is yielded too: a `Drop` with its place and reason, and a `Deleted`
    where a publisher takes a document back. `fmt` names the format of all files instead of having
    each told by its contents. Raises at once: `MissingPath`, `MalformedSource` for a path that is
    not of the format, and `BadConfig` for an unknown format.

        >>> import osler
        >>> from pathlib import Path
        >>> Path("ward").mkdir()
        >>> notes = "# Anaemia\n\nOral iron treats iron deficiency anaemia.\n"
        >>> written = Path("ward/anaemia.md").write_text(notes)
        >>> written = Path("ward/empty.md").write_text("")
        >>> for record in osler.read("ward"):
        ...     match record:
        ...         case osler.Document():
        ...             print(record.title, "|", record.sections[0].text)
        ...         case osler.Drop():
        ...             print(record.where, "|", record.reason)
        Anaemia | Oral iron treats iron deficiency anaemia.
        ward/empty.md | empty file
    """
    found = discover([Path(path)], fmt=fmt)
    return chain.from_iterable(
        (one,) if isinstance(one, Drop) else read_records(one) for one in found
    )


def read_records(entry: Found) -> Iterator[Record]:
    """The records; a file that breaks off, or cannot be read at all, ends in a drop.

    A document with the title and text of an earlier one of the file is a drop, too
    (Omni-RAG §3.1), unless it is a patient: two may well have the same history.
    """
    is_empty = True
    try:
        for record in without_doubles(_with_titles(entry), entry.name):
            is_empty = False
            yield record
    except Unreadable as error:
        yield Drop(entry.name, error.reason)
    except TooLarge as error:
        yield Drop(f"{entry.name}: {error.message}", "too large for one document")
    except MemoryError:
        yield Drop(
            f"{entry.name}: it takes more memory than there is", "too large for one document"
        )
    except MalformedSource as error:
        yield Drop(f"{entry.name}: {error.message}", "malformed file")
    except Exception as error:
        # Readers of others raise what they like (zlib.error, XMLSyntaxError, IndexError): a file
        # that one of them breaks on must not stop the thousand after it.
        yield Drop(f"{entry.name}: {type(error).__name__}: {error}", "malformed file")
    else:
        if is_empty:
            yield Drop(entry.name, "no record")


def _with_titles(entry: Found) -> Iterator[Record]:
    """The records; a document that should have a title and has none is called by its first
    words."""
    may_lack = entry.parser.name in _UNTITLED
    for record in _parse_records(entry):
        if may_lack or not isinstance(record, Document) or record.title or not record.sections:
            yield record
        else:
            yield replace(record, title=first_words(record.sections[0].text))


def _parse_records(entry: Found) -> Iterator[Record]:
    if isinstance(entry, FoundFolder):
        yield from entry.parser.parse_folder(entry.file.path)
    else:
        with entry.open() as stream:
            yield from entry.parser.parse(stream, entry.name)
