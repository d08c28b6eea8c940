"""The full-text index holds the words of `split_words`, by whichever way they came in."""

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from osler.kb.store.passages import tokens_of
from osler.text import split_words

PIECES = st.sampled_from(
    [
        "1.5mg",
        "3.5 mg",
        "IL-6",
        "a_b",
        "x1.5T",
        "2.",
        ".5",
        "CD4+",
        "naïve",
        "糖尿病",
        "β",
        "\n",
        "(",
    ]
)
TEXTS = st.lists(PIECES | st.text(st.characters(max_codepoint=0x7F), max_size=8)).map("".join)


def tokens(text: str) -> list[tuple[str, int]]:
    """Stems and their places, as the index keeps them."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE lexical USING fts5(words, tokenize='porter unicode61')")
        db.execute("CREATE VIRTUAL TABLE term USING fts5vocab(lexical, 'instance')")
        db.execute("INSERT INTO lexical(words) VALUES (?)", (text,))
        return db.execute("SELECT term, offset FROM term ORDER BY offset").fetchall()


@given(TEXTS)
def test_the_text_itself_gives_the_index_the_same_words(text: str) -> None:
    assert tokens(tokens_of(text)) == tokens(" ".join(split_words(text)))
