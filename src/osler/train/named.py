"""What is chosen by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from osler.errors import BadConfig

Name = TypeVar("Name", bound=str)


def choose_named(word: str, known: Sequence[Name], what: str) -> Name:
    """The one of those that are known. Raises `BadConfig`, which lists them."""
    for name in known:
        if name == word:
            return name
    raise BadConfig(f"there is no {what} {word!r}", fix=f"choose of {', '.join(known)}")
