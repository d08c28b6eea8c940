"""Documents of files, without a knowledge base."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from osler.sources.discover import discover, read_records
from osler.sources.records import Drop, Record


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
