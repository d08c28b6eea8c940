"""Common words, by which a name or a misspelling is told from them.

`words.txt.xz` holds words, not sentences: English ones that stand twice in lower case, or three
times with a capital in medical texts, and pairs of Chinese characters that stand twice. The texts
have open licences (docs/guide/security.md). Rare names are in none of them.
"""

from __future__ import annotations

import lzma
import tomllib
from functools import cache
from importlib.resources import files

_FOLDER = files("osler.sources")


@cache
def _read_lists() -> dict[str, frozenset[str]]:
    lists = tomllib.loads((_FOLDER / "lists.toml").read_text(encoding="utf-8"))
    return {name: frozenset(words.split()) for name, words in lists.items()}


@cache
def read_words() -> frozenset[str]:
    """English words in lower case, and pairs of Chinese characters."""
    packed = (_FOLDER / "words.txt.xz").read_bytes()
    return frozenset(lzma.decompress(packed).decode().split())


def is_listed(word: str, *lists: str) -> bool:
    """Whether the word, in any case, stands in one of the lists of `lists.toml`."""
    return any(word.casefold() in _read_lists()[name] for name in lists)


def is_common(word: str) -> bool:
    """Whether a word of ordinary or medical texts, of a brand, or all its hyphenated parts are."""
    lower = word.casefold().replace("’", "'").removesuffix("'s")
    parts = [part for part in lower.split("-") if part]
    return all(
        part in read_words()
        or len(part) <= 2 < len(word)
        or is_listed(part, "eponyms", "brands")
        or part.removesuffix("s") in read_words()
        for part in parts
    )
