"""New documents of sources that are not trusted wait, unfound, until somebody releases them.

What is held lies in a source of its own, `web.held`, which is private and which no search takes
unless it is named: it can be read before it is released.
"""

from __future__ import annotations

from osler.errors import KnowledgeBaseError
from osler.kb.base import KnowledgeBase
from osler.kb.ingest.file_table import list_roots
from osler.kb.ingest.files import IngestResult
from osler.settings import Settings
from osler.settings.access import HELD


def target_source(settings: Settings, source: str) -> str:
    """Where new documents of the source go."""
    return f"{source}{HELD}" if source in settings.access.held else source


def release(kb: KnowledgeBase, source: str) -> list[IngestResult]:
    """Adds what is held of the source to the source itself; the files are read again. Blocks.

    Raises `KnowledgeBaseError` where nothing is held.
    """
    held = f"{source}{HELD}"
    with kb.readers.borrow() as db:
        roots = list_roots(db, held)
    if not roots:
        raise KnowledgeBaseError(f"nothing of {source} is held", fix="`osler kb info` lists it")
    done = []
    for root in roots:
        how = root.how
        done.append(
            kb.add(
                [root.path],
                source=source,
                fmt=how.fmt,
                licence=how.licence,
                illustrative=how.illustrative,
                trust=how.trust,
                chunk=how.chunk,
            )
        )
    kb.remove(source=held)
    return done
