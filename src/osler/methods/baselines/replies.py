"""Reads lists from replies that no grammar constrained."""

from __future__ import annotations

from typing import Any

from osler.llm.reading.debris import is_debris
from osler.llm.reading.json_replies import json_in

__all__ = ["clean_strings", "json_in", "read_list"]


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
        found = [line for line in lines if not line.endswith((":", "：")) and not is_debris(line)]
    return list(dict.fromkeys(found))[:most]
