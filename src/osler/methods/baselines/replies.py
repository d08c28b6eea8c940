"""Reads lists from replies that no grammar constrained."""

from __future__ import annotations

from typing import Any

from osler.llm.reading.debris import without_debris
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
        plain = without_debris(text).splitlines()
        lines = (line.strip().lstrip("-*•0123456789.、)） ").strip() for line in plain)
        found = [line for line in lines if line and not line.endswith((":", "："))]
    return list(dict.fromkeys(found))[:most]
