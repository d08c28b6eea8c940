"""Small knowledge bases for tests, and how they are damaged."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from osler.kb.base import KnowledgeBase
from osler.kb.store import access


def write_corpus(path: Path, count: int, word: str = "iron", *, more: str = "") -> Path:
    """A file of so many records about the word, as MedRAG writes them; `more`: text of each."""
    rows = [
        {
            "id": f"{word}{i}",
            "title": f"Title {i}",
            "content": f"Text {i} on {word}.{more}",
            "contents": "",
        }
        for i in range(count)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def damage_database(kb: KnowledgeBase, sql: str) -> None:
    """Damage from outside."""
    with sqlite3.connect(kb.path / access.FILE) as db:
        db.execute(sql)
    db.close()
