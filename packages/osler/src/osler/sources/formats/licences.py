"""Licences in one spelling, from the addresses and words that publishers write."""

from __future__ import annotations

import re

from osler.text import one_line

_CC_ADDRESS = re.compile(
    r"creativecommons\.org/(?:licenses/(?P<kind>by(?:-nc)?(?:-nd|-sa)?)(?:/(?P<version>\d\.\d))?"
    r"|publicdomain/(?P<public>zero|mark)(?:/(?P<level>\d\.\d))?)",
    re.IGNORECASE,
)
# In this order: "Attribution" alone is a part of the longer names.
_CC_WORDS = (
    (re.compile(r"public\s+domain\s+dedication|\bCC0\b", re.IGNORECASE), "CC0"),
    (re.compile(r"Attribution[- ]Non-?Commercial[- ]No-?Deriv", re.IGNORECASE), "CC BY-NC-ND"),
    (re.compile(r"Attribution[- ]Non-?Commercial[- ]Share", re.IGNORECASE), "CC BY-NC-SA"),
    (re.compile(r"Attribution[- ]Non-?Commercial", re.IGNORECASE), "CC BY-NC"),
    (re.compile(r"Attribution[- ]Share-?Alike", re.IGNORECASE), "CC BY-SA"),
    (re.compile(r"Creative\s+Commons\s+Attribution", re.IGNORECASE), "CC BY"),
    (re.compile(r"public\s+domain", re.IGNORECASE), "public domain"),
)
_LONGEST = 160


def licence_of(*statements: str) -> str:
    """A short name ("CC BY 4.0") of what the statements say, else their first words.

    An address is more exact than words, so one anywhere goes before them. "" for nothing.
    """
    for statement in statements:
        if match := _CC_ADDRESS.search(statement):
            return _short_name(match)
    text = one_line(" ".join(statements))
    for pattern, name in _CC_WORDS:
        if pattern.search(text):
            return name
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}…"


def _short_name(match: re.Match[str]) -> str:
    if match["public"]:
        name = "CC0" if match["public"].lower() == "zero" else "public domain"
        return f"{name} {match['level'] or ''}".strip() if name == "CC0" else name
    return f"CC {match['kind'].upper()} {match['version'] or ''}".strip()
