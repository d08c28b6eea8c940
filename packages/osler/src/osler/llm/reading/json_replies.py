"""Finds JSON anywhere in a reply, as models write it.

Before and after it there may be prose and Markdown fences; inside it comments, trailing commas,
single quotes and bare keys (JSON5), or Python's `True` and `None`.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from typing import Any

from osler.llm.reading.answers import is_debris
from osler.text import join_all_surrogates

_TOO_DEEP = 3
"""Values nested too deep to be read, after which the rest of a text is left: each costs
milliseconds, and an endless reply has thousands."""
_LOOSE = 200_000
"""Characters of one text that are read as JSON5, since each opening may be read to the end."""
_COMMENT = r"//[^\n]*|/\*.*?\*/"
# Strings come first: what looks like a comment or a key inside one is text. A quote that opens
# nothing ("it's") is none.
_STRINGS = (
    r'(?P<double>"(?:[^"\\]|\\.)*")'
    r"|(?P<single>(?<![\w'])'(?:[^'\\]|\\.|'(?=\w))*')"
)
_PIECES = re.compile(
    rf"{_STRINGS}|(?P<comment>{_COMMENT})"
    rf"|(?P<comma>,(?=(?:\s|{_COMMENT})*[}}\]]))"
    r"|(?P<key>[A-Za-z_$][\w$]*(?=\s*:))",
    re.DOTALL,
)
_ESCAPES = re.compile(r"\\(.)|\"", re.DOTALL)
# "5-HT3" and "1.5 mg" begin with a number of their own.
_BULLETS = re.compile(r"^\s*(?:[-*•]+\s*|\d{1,2}[.、)）](?!\d)\s*)+")
_SKELETON = re.compile(rf"{_STRINGS}|(?P<comment>{_COMMENT})|(?P<bracket>[{{}}\[\]])", re.DOTALL)


def json_in(text: str, opening: str = "{") -> Any:
    """The last JSON value in the text that begins with `opening` ("{" or "["); else None.

    The last, since models write examples before answers. Values inside others are not seen.
    """
    *_, last = None, *json_values(text, opening)
    return last


def json_values(text: str, opening: str = "{") -> Iterator[Any]:
    """The JSON values in the text that begin with `opening`, as they begin."""
    decoder, at, too_deep, loose = json.JSONDecoder(strict=False), 0, 0, 0
    # After a value the search goes on behind it, so that nested values are skipped.
    while too_deep < _TOO_DEEP and (at := text.find(opening, at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except RecursionError:
            at, too_deep = at + 1, too_deep + 1
            continue
        except ValueError:
            end = _closing_place(text, at) if loose < _LOOSE else None
            loose += (end or len(text)) - at
            try:
                found = None if end is None else read_json(text[at:end])
            except ValueError:
                found = None
            if found is None:
                at += 1
                continue
            at = end or at + 1
        yield join_all_surrogates(found)


def read_json(text: str) -> Any:
    """Reads a text that is one value of JSON, JSON5 or Python's own writing.

    Raises `ValueError` for another, and for numbers that JSON has not (0xff, +1).
    """
    readers: tuple[Callable[[str], object], ...] = (json.loads, _read_json5, literal_eval)
    for read in readers:
        try:
            return join_all_surrogates(read(text))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    raise ValueError("no JSON")


def _closing_place(text: str, start: int) -> int | None:
    """The place behind the bracket that closes the one at `start`; `None` where none does."""
    depth = 0
    for piece in _SKELETON.finditer(text, start):
        if piece["bracket"]:
            depth += 1 if piece["bracket"] in "{[" else -1
            if depth == 0:
                return piece.end()
    return None


def _read_json5(text: str) -> object:
    return json.loads(_PIECES.sub(_to_json, text), strict=False)


def _to_json(piece: re.Match[str]) -> str:
    match piece.lastgroup:
        case "single":
            return f'"{_ESCAPES.sub(_to_double_quoted, piece.group()[1:-1])}"'
        case "key":
            return f'"{piece.group()}"'
        case "double":
            return piece.group()
        case _:
            return ""


def _to_double_quoted(escape: re.Match[str]) -> str:
    # A backslash at the end of a line only joins it with the next.
    plain = {"'": "'", "\n": ""}
    return plain.get(escape.group(1) or "", escape.group()) if escape.group(1) else '\\"'


def clean_strings(value: Any) -> list[str]:
    """The strings of a list, trimmed, without empty ones; [] for anything else."""
    if not isinstance(value, list):
        return []
    return [" ".join(one.split()) for one in value if isinstance(one, str) and one.strip()]


def read_list(text: str, most: int) -> list[str]:
    """At most `most` items of a list that a model wrote: a JSON list, else one per line without
    bullets."""
    value = json_in(text, "[")
    found = clean_strings(value)
    if value != [] and not found:
        lines = (_BULLETS.sub("", line, count=1).strip() for line in text.splitlines())
        found = [line for line in lines if not line.endswith((":", "：")) and not is_debris(line)]
    return list(dict.fromkeys(found))[:most]
