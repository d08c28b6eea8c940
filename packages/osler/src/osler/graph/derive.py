"""The normal form of names, and arrays derived from the tables for speed.

Two names are the same when their words are: case, width, punctuation and white space do not count.
"COVID-19" and "covid 19" are one; "2型糖尿病" and "2 型糖尿病" are one.

The arrays are adjacency, words of names, and hashes of names:

* `start`, `to`, `by`: compressed rows of the graph seen from both ends. Concept `c` has
  the neighbours `to[start[c]:start[c + 1]]`; `by` is the predicate's number, negative
  where the relation is stated from the other end.
* `vocabulary`, `ends`, `first`, `holder`: the distinct words, and the concepts that have a
  name with each of them.
* `variant`, `variant_of`: a checksum of each word, and of it less any one letter, in order:
  two words that are one edit apart have a variant in common.
* `hash`, `hashed`: a 64-bit hash of each name of at most `LONGEST` units, in order, and
  its concept; `bits` excludes most other hashes cheaply.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from osler.graph.files import Array
from osler.text import is_cjk, one_line

_HAN = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002fa1f\U00030000-\U000323af"
)
_ASCII = re.compile(r"[a-z0-9]+")
_UNIT = re.compile(rf"[{_HAN}]|(?:(?![{_HAN}])[^\W_])+")
LONGEST = 16
"""Units of the longest name that is found inside a text."""


def normalize_name(text: str) -> str:
    """The units joined by a space, Chinese characters without one; idempotent, "" for "".

    A name without letters and digits ("+") stands for itself.
    """
    units = split_units(text)
    if not units:
        return one_line(text).casefold()
    if text.isascii():
        return " ".join(units)
    joined = units[0]
    for before, unit in pairwise(units):
        joined += unit if is_cjk(before[-1]) and is_cjk(unit[0]) else f" {unit}"
    return joined


def split_units(text: str) -> list[str]:
    """Lower-cased words, and Chinese characters one by one."""
    if text.isascii():
        return _ASCII.findall(text.lower())
    return _UNIT.findall(fold_text(text))


def fold_text(text: str) -> str:
    # Twice: folding the case of a compatibility character can give one that NFKC changes again.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def unit_spans(text: str) -> list[tuple[str, int, int]]:
    """The units of a text with their places in it; as `split_units`, but for one character a unit
    whose width or case changes its length, which is then left as it is."""
    if text.isascii():
        return [(match[0], *match.span()) for match in _ASCII.finditer(text.lower())]
    lowered = "".join(map(_folded_in_place, text))
    return [(match[0], *match.span()) for match in _UNIT.finditer(lowered)]


def _folded_in_place(char: str) -> str:
    other = fold_text(char)
    return other if len(other) == 1 else char


Hashes = NDArray[np.uint64]
_PRIME = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no power of it is zero
MISSPELT = (4, 30)
"""Fewest and most letters of words that are corrected; one letter of a shorter word makes
another word."""


def hash_powers(count: int) -> Hashes:
    """1, p, p², … modulo 2⁶⁴: the factor of a unit's hash at each place of a name."""
    return np.cumprod(
        np.concatenate([np.ones(1, np.uint64), np.full(count - 1, _PRIME)]), dtype=np.uint64
    )


def unit_hash(unit: str) -> int:
    return int.from_bytes(blake2b(unit.encode(), digest_size=8).digest(), "little")


def bit_of(hashes: Hashes, size: int) -> Array:
    """The place of each hash in a table of `size` bits, a power of two."""
    return ((hashes ^ (hashes >> np.uint64(31))) & np.uint64(size - 1)).astype(np.int64)


def derive_arrays(db: sqlite3.Connection) -> dict[str, Array]:
    """All arrays of the present tables; some 15 seconds for three million names."""
    (last,) = db.execute("SELECT coalesce(max(n), 0) FROM concept").fetchone()
    heads = np.arange(last + 1, dtype=np.int32)
    for member, head in db.execute("SELECT member, head FROM fused"):
        heads[member] = head
    return {"heads": heads, **_derive_adjacency(db, heads), **_derive_names(db)}


def _as_array(values: array[int]) -> NDArray[np.int32]:
    return np.frombuffer(values, np.int32) if values else np.empty(0, np.int32)


def _derive_adjacency(db: sqlite3.Connection, heads: NDArray[np.int32]) -> dict[str, Array]:
    values = array("i")  # no Python list holds them all
    for row in db.execute("SELECT DISTINCT subject, predicate, object FROM edge"):
        values.extend(row)
    rows = _as_array(values).reshape(-1, 3)
    one, by, two = heads[rows[:, 0]], rows[:, 1], heads[rows[:, 2]]
    apart = one != two
    one, by, two = one[apart], by[apart], two[apart]
    start = np.concatenate([one, two])
    to, signed = np.concatenate([two, one]), np.concatenate([by, -by])
    order = np.lexsort((signed, to, start))
    counted = np.bincount(start, minlength=len(heads))
    return {
        "start": np.concatenate([[0], np.cumsum(counted)]).astype(np.int64),
        "to": to[order],
        "by": signed[order],
    }


def _derive_names(db: sqlite3.Connection) -> dict[str, Array]:
    numbers: dict[str, int] = {}
    units, lengths, concepts = array("i"), array("i"), array("i")
    for norm, concept in db.execute("SELECT norm, concept FROM alias"):
        parts = norm.split(" ") if norm.isascii() else split_units(norm)
        units.extend([numbers.setdefault(part, len(numbers)) for part in parts])
        lengths.append(len(parts))
        concepts.append(concept)
    flat, many, of = map(_as_array, (units, lengths, concepts))
    return {
        **_derive_vocabulary(list(numbers)),
        **_derive_variants(list(numbers)),
        **_derive_postings(flat, np.repeat(of, many), len(numbers)),
        **_hash_names(flat, many, of, list(numbers)),
    }


def _derive_vocabulary(words: Sequence[str]) -> dict[str, Array]:
    encoded = [word.encode() for word in words]
    return {
        "vocabulary": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "ends": np.cumsum([len(word) for word in encoded], dtype=np.int64),
    }


def spelling_variants(word: str) -> list[int]:
    """Checksums of the word, and of it less any one letter; [] for one that is not corrected."""
    if not MISSPELT[0] <= len(word) <= MISSPELT[1] or not word.isalpha() or is_cjk(word[0]):
        return []
    less = {word[:i] + word[i + 1 :] for i in range(len(word))}
    return [crc32(text.encode()) for text in sorted({word, *less})]


def _derive_variants(words: Sequence[str]) -> dict[str, Array]:
    checksums, of = array("I"), array("i")
    for number, word in enumerate(words):
        sums = spelling_variants(word)
        checksums.extend(sums)
        of.extend([number] * len(sums))
    sums_ = np.frombuffer(checksums, np.uint32) if checksums else np.empty(0, np.uint32)
    order = np.argsort(sums_, kind="stable")
    return {"variant": sums_[order], "variant_of": _as_array(of)[order]}


def words_of(arrays: dict[str, Array]) -> list[str]:
    """The vocabulary as a list; a word's place is its number."""
    text, ends = bytes(arrays["vocabulary"]), arrays["ends"].tolist()
    return [text[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]


def _derive_postings(flat: Array, of: Array, count: int) -> dict[str, Array]:
    # Word and concept in one integer: one sort orders by both, and equal pairs stand together.
    pairs = np.sort((flat.astype(np.int64) << 32) | of)
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    word = pairs >> 32
    first = np.searchsorted(word, np.arange(count + 1))
    return {"first": first.astype(np.int64), "holder": (pairs & 0xFFFFFFFF).astype(np.int32)}


def _hash_names(flat: Array, many: Array, of: Array, words: Iterable[str]) -> dict[str, Array]:
    each = np.array([unit_hash(word) for word in words], dtype=np.uint64)
    if not len(many):
        return {name: np.empty(0, np.uint64) for name in ("hash", "hashed")} | {
            "bits": np.zeros(8, np.uint8)
        }
    begins = np.cumsum(many) - many
    place = np.arange(len(flat)) - np.repeat(begins, many)
    factor = hash_powers(int(many.max()))[place]
    hashes = np.add.reduceat(each[flat] * factor, begins)
    short = many <= LONGEST
    hashes, of = hashes[short], of[short]
    order = np.argsort(hashes, kind="stable")
    # 16 bits a name: of other hashes about one in sixteen passes and must be looked up.
    size = 1 << max(6, int(len(hashes) * 16 - 1).bit_length())
    bits = np.zeros(size, dtype=bool)
    bits[bit_of(hashes, size)] = True
    return {
        "hash": hashes[order],
        "hashed": of[order],
        "bits": np.packbits(bits, bitorder="little"),
    }
