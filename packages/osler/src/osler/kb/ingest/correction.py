"""Gives one passage another text."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

from osler.errors import KnowledgeBaseError, UnknownPassage
from osler.kb.index import Correction, leases
from osler.kb.store.passages import (
    columns_of,
    delete_words,
    index_words,
    read_meta,
    read_numbered,
    size_of,
)
from osler.sources.patients.identifiers.removal import remove_identifiers
from osler.sources.patients.secret import is_deidentified
from osler.text import language_of

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder


def replace_text(db: sqlite3.Connection, id: str, text: str, encoder: Encoder | None) -> Correction:
    """Replaces the text of a passage, within the caller's transaction.

    The passage keeps its id and gets a new row number, since a reader may hold the old one's
    vector; an equal text changes nothing. Raises `UnknownPassage`, and `KnowledgeBaseError` for
    a text of blanks.
    """
    rows = list(read_numbered(db, "SELECT * FROM passage WHERE id = ?", (id,)))
    if not rows:
        raise UnknownPassage(f"there is no passage {id!r}", fix="`osler kb search` lists their ids")
    ((number, old),) = rows
    if not text.strip():
        raise KnowledgeBaseError("the text is empty", fix="`osler kb rm` takes a document out")
    if is_deidentified(old.source):
        text = remove_identifiers(text)
    if text == old.text:
        return Correction(old, old, (number, number), has_vector=True)
    new = replace(old, text=text, language=language_of(text))
    place = db.execute("SELECT document, n FROM passage WHERE number = ?", (number,)).fetchone()
    delete_words(db, rows)
    db.execute("DELETE FROM passage WHERE number = ?", (number,))
    added = db.execute(
        "INSERT INTO passage VALUES (NULL, ?,?,?,?, ?,?,?,?,?,?, ?,?,?, ?,?,?)",
        (*columns_of(new), *place, size_of(text, new.language)),
    ).lastrowid
    batch = [(added or 0, new)]
    index_words(db, batch)
    known = {*encoder.languages} & {*read_meta(db, "languages").split()} if encoder else set()
    is_encoded = new.language in known
    if encoder is not None and is_encoded:
        leases.insert_vectors(db, batch, leases.encode_batch(encoder, [new]))
    return Correction(old, new, (number, added or 0), is_encoded)
