"""The full-text index: BM25 (k1 = 1.2, b = 0.75) over stemmed English words and Chinese n-grams."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from math import log

from osler.kb.store.passages import Scope, source_token
from osler.sources.catalogue import EMR

MOST_TERMS = 64
"""A query of more terms keeps its rarest.

FTS5 looks at every passage that holds any term, so that long questions cost the
most. On 11,000 passages of MedQuAD a clinical vignette (68 terms) took 15.5 ms
(median), with 64 terms 10 ms and with 32 terms 3 ms; but with 32 the right
answer stood in the ten best for 9 % of the questions instead of 15 %.
"""


_MOST_NEAR = 4_000
"""Terms that a misspelt word is compared with."""


def search_words(
    db: sqlite3.Connection, terms: Sequence[str], *, k: int, scope: Scope
) -> list[tuple[int, float]]:
    """Ranks the `k` best passages with any of `terms`: numbers and BM25 (higher is better)."""
    kept = rarest_terms(db, terms) if len(terms) > MOST_TERMS else list(terms)
    if not kept or scope == ():
        return []
    # Weight 0 for the column `source`: its token selects passages and must not rank them.
    rows = db.execute(
        "SELECT rowid, bm25(lexical, 1.0, 0.0) AS score FROM lexical WHERE lexical MATCH ?"
        " ORDER BY score, rowid LIMIT ?",
        (match_expression(kept, scope), k),
    )
    return [(number, -score) for number, score in rows]


def match_expression(terms: Sequence[str], scope: Scope) -> str:
    """Writes the FTS5 condition on the columns `words` and `source`."""
    body = f"words : ({_any_of(terms)})"
    if scope is None:
        return f"({body}) NOT (source : {_quote_term(source_token(EMR))})"
    return f"({body}) AND (source : ({_any_of([source_token(source) for source in scope])}))"


def _any_of(terms: Sequence[str]) -> str:
    return " OR ".join(map(_quote_term, terms))


def _quote_term(term: str) -> str:
    doubled = term.replace('"', '""')
    return f'"{doubled}"'


def term_rarity(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, float]:
    """Computes the inverse document frequency of each term as BM25 does, at least 0.

    A term that no passage holds tells most.
    """
    count: int = db.execute("SELECT count(*) FROM passage").fetchone()[0]
    counts = _term_frequencies(db, terms)
    return {t: log(1 + (count - counts[t] + 0.5) / (counts[t] + 0.5)) for t in terms}


def near_terms(db: sqlite3.Connection, word: str) -> list[str]:
    """The index's terms that begin with a word's first two letters and are about as long, the
    commonest first: what a misspelt word may have meant."""
    start, length = word[:2].casefold(), len(word)
    rows = db.execute(
        "SELECT term FROM term WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"
        " ORDER BY doc DESC, term LIMIT ?",
        (start, start + "\uffff", length - 2, length + 2, _MOST_NEAR),
    )
    return [term for (term,) in rows]


def _term_frequencies(db: sqlite3.Connection, terms: Sequence[str]) -> dict[str, int]:
    """Counts the passages that hold each term's stem."""
    stems = stem_terms(terms)
    counts = dict.fromkeys(stems.values(), 0)
    for stem in counts:
        row = db.execute("SELECT doc FROM term WHERE term = ?", (stem,)).fetchone()
        counts[stem] = row[0] if row else 0
    return {term: counts.get(stems.get(term, ""), 0) for term in terms}


def rarest_terms(db: sqlite3.Connection, terms: Sequence[str]) -> list[str]:
    """Selects the `MOST_TERMS` terms that the fewest passages hold, of those that any passage
    holds.
    """
    counts = _term_frequencies(db, terms)
    known = [term for term in terms if counts[term]]
    return sorted(known, key=lambda term: counts[term])[:MOST_TERMS]


_MOST_STEMS = 100_000
_stems: dict[str, str] = {}
"""Stems of terms seen before: a question's passages share most words with the last question's."""


def stem_terms(terms: Sequence[str]) -> dict[str, str]:
    """Stems each term with the index's own tokenizer.

    Of a term in several tokens ("1.5") it is the last.
    """
    found = {term: _stems.get(term) for term in terms}
    if new := [term for term, stem in found.items() if stem is None]:
        stems = _stem_anew(new)
        found |= stems
        if len(_stems) + len(stems) > _MOST_STEMS:
            _stems.clear()
        _stems.update(stems)
    return {term: stem for term, stem in found.items() if stem is not None}


def _stem_anew(terms: Sequence[str]) -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE lexical USING fts5(words, tokenize='porter unicode61')")
        db.execute("CREATE VIRTUAL TABLE term USING fts5vocab(lexical, 'instance')")
        db.executemany("INSERT INTO lexical(rowid, words) VALUES (?, ?)", enumerate(terms))
        return {terms[row]: term for term, row in db.execute("SELECT term, doc FROM term")}
