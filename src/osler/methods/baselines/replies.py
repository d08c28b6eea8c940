"""Reads JSON and lists from replies that no grammar constrained."""

from __future__ import annotations

import json
from typing import Any

from osler.text import join_all_surrogates

_TOO_DEEP = 3
"""Values nested too deep to be read, after which the rest of a text is left: each costs
milliseconds, and an endless reply has thousands."""


def json_in(text: str, opening: str = "{") -> Any:
    """The last JSON value in the text that begins with `opening` ("{" or "["); else None.

    The last, since models write examples before answers. Values inside others are not seen.
    """
    decoder, at, found, too_deep = json.JSONDecoder(strict=False), 0, None, 0
    # After a value the search goes on behind it, so that nested values are skipped.
    while too_deep < _TOO_DEEP and (at := text.find(opening, at)) >= 0:
        try:
            found, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            at += 1
            too_deep += isinstance(error, RecursionError)
    return join_all_surrogates(found)


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
        lines = (line.strip().lstrip("-*•0123456789.、)） ").strip() for line in text.splitlines())
        found = [line for line in lines if line and not line.endswith((":", "："))]
    return list(dict.fromkeys(found))[:most]
