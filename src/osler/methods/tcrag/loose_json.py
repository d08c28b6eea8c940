"""Objects of JSON5, as models write them: bare keys, single quotes, comments, trailing commas."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable

from osler.text import join_all_surrogates

_COMMENT = r"//[^\n]*|/\*.*?\*/"
# Strings come first: what looks like a comment or a key inside one is text.
_PIECES = re.compile(
    r'(?P<double>"(?:[^"\\]|\\.)*")'
    r"|(?P<single>'(?:[^'\\]|\\.)*')"
    rf"|(?P<comment>{_COMMENT})"
    rf"|(?P<comma>,(?=(?:\s|{_COMMENT})*[}}\]]))"
    r"|(?P<key>[A-Za-z_$][\w$]*(?=\s*:))",
    re.DOTALL,
)
_ESCAPES = re.compile(r"\\(.)|\"", re.DOTALL)


def read_object(text: str) -> dict[str, object]:
    """Reads an object of JSON, JSON5 or Python's own writing; else an empty one."""
    readers: tuple[Callable[[str], object], ...] = (json.loads, _read_json5, literal_eval)
    for read in readers:
        try:
            found = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, dict):
            whole: dict[str, object] = join_all_surrogates(found)
            return whole
    return {}


def _read_json5(text: str) -> object:
    """Raises `ValueError` for numbers that JSON has not (0xff, +1), and for what is no JSON5."""
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
