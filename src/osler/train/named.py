"""Choice of an option by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from osler.errors import BadConfig

Name = TypeVar("Name", bound=str)


def choose_named(word: str, known: Sequence[Name], what: str) -> Name:
    """Returns the known name equal to `word`. Raises `BadConfig`, which lists them."""
    for name in known:
        if name == word:
            return name
    raise BadConfig(f"there is no {what} {word!r}", fix=f"choose one of {', '.join(known)}")
