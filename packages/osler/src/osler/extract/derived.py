"""Data derived from the passages of a knowledge base: extracted items, indexes, graph facts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from osler.kb.base import KnowledgeBase

if TYPE_CHECKING:
    from osler.extract.store import AnchoredItem


class ExtractedFacts:
    """Keeps extracted items, their indexes and the concept graph in step with the passages.

    A `KnowledgeBase` opened with it calls it after each write, under the writer's lock.
    """

    def bring_in_step(self, folder: Path, db: sqlite3.Connection) -> None:
        """Takes out of the concept graph what rested on passages that are gone."""
        from osler.extract import publish

        publish.withdraw_items(folder, db)

    def find_problems(self, folder: Path, db: sqlite3.Connection) -> Iterator[str]:
        """Items, index entries and graph facts that rest on no passage; reads everything."""
        from osler.extract import publish, store
        from osler.extract.indexes import store as indexes

        yield from store.find_problems(db)
        yield from indexes.find_problems(db)
        yield from publish.find_problems(folder, db)


EXTRACTED_FACTS = ExtractedFacts()


class Extractions:
    """Reads what was extracted from an open knowledge base, and searches the indexes over it.

    Any number of threads may ask. Use `Extractions.of(kb)`: vectors and the graph of names are
    read once for each open knowledge base.
    """

    def __init__(self, kb: KnowledgeBase) -> None:
        from osler.extract.indexes.entity_graph import EntityGraphs
        from osler.extract.indexes.search import IndexEntries

        self._kb = kb
        self.entries = IndexEntries(kb.readers)
        """The indexes over extracted items."""
        self.webs = EntityGraphs(kb.path, kb.readers)
        """The graph of names and chunks."""

    @classmethod
    def of(cls, kb: KnowledgeBase) -> Extractions:
        """The one that belongs to an open knowledge base, and is closed with it."""
        return kb.attach(cls, lambda: cls(kb))

    def close(self) -> None:
        self.webs.close()

    def items_of(self, passage: str) -> list[AnchoredItem]:
        """The items of a passage in the order of the runs that extracted them.

        Raises `UnknownPassage` for an id that does not exist.
        """
        from osler.extract import store

        self._kb.get(passage)
        with self._kb.readers.borrow() as db:
            return store.of_passage(db, passage)
