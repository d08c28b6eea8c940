"""What the terminal says in Chinese.

Commands, errors and help are worded in English where they arise. What goes to a terminal passes
`say` on its way out, which looks it up in `zh.tsv`: an English line, a tab, the Chinese one. `{}`
stands for what differs from case to case, a name or a number; `{0}` and `{1}` in the Chinese line
where the order is another. What the list lacks is shown as it is.
"""

from __future__ import annotations

import locale
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from osler.types import Halt, Language

LANGUAGE: ContextVar[Language] = ContextVar("language", default="en")
"""The language of this command line."""

_HOLE = re.compile(r"\{(\d?)\}")
_HAN = re.compile(r"[\u3400-\u9fff]")


def choose_language(environment: Mapping[str, str], args: Sequence[str]) -> Language:
    """Chinese where the system is set to it, or a word of the command line is in it."""
    given = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    # Windows sets none of these.
    system = next(filter(None, given), "") or locale.getlocale()[0] or ""
    is_set = system.lower().startswith(("zh", "chinese"))
    return "zh" if is_set or any(map(_HAN.search, args)) else "en"


def say(words: str, language: Language | None = None) -> str:
    """The line in the language, by default that of the command line; as it is where it has no
    Chinese form."""
    if (language or LANGUAGE.get()) != "zh" or not words:
        return words
    lines, templates = _read_words()
    if words in lines:
        return lines[words]
    for pieces, chinese in templates:
        if (held := _find_holes(pieces, words)) is not None:
            # A name is left alone; a hole of several words is itself a line, such as a reason.
            told = [_say_lines(one) if " " in one else one for one in held]
            order = iter(range(len(told)))
            return _HOLE.sub(lambda hole: told[int(hole[1] or next(order))], chinese)  # noqa: B023
    return words


def _say_lines(words: str) -> str:
    """One line, or several that each have their Chinese: "since 2018; of kind rct"."""
    parts = words.split("; ")
    told = [say(part, "zh") for part in parts]
    is_told = all(one != part for one, part in zip(told, parts, strict=True))
    return say("; ", "zh").join(told) if is_told else say(words, "zh")


def say_all(words: str) -> str:
    """Several lines of the list that stand in one: an error and its remedy, a name and what is
    said of it."""
    if LANGUAGE.get() != "zh":
        return words
    told = say(words)
    for mark in ("; ", ": "):
        if told == words and mark in words:
            told = say(mark).join(map(say_all, words.split(mark)))
    return told


def _find_holes(pieces: Sequence[str], words: str) -> list[str] | None:
    """What stands between the pieces; `None` where they are not the line's."""
    first, *rest = pieces
    if not words.startswith(first) or not words.endswith(pieces[-1]):
        return None
    held, at = [], len(first)
    for number, piece in enumerate(rest, 1):
        found = words.find(piece, at) if number < len(rest) else len(words) - len(piece)
        if found < at:
            return None
        held.append(words[at:found])
        at = found + len(piece)
    return held


@cache
def _read_words() -> tuple[dict[str, str], list[tuple[tuple[str, ...], str]]]:
    """The lines, and those with holes, of which the one with the most words is tried first."""
    text = Path(__file__).with_name("zh.tsv").read_text(encoding="utf-8")
    held = dict(row.split("\t") for row in text.splitlines())
    templates = [(tuple(line.split("{}")), told) for line, told in held.items() if "{}" in line]
    return held, sorted(templates, key=lambda one: -sum(map(len, one[0])))


def say_end(halt: Halt, why: str, language: Language) -> str:
    """Why a run ended early. In Chinese the kind alone: `osler trace` has the method's words."""
    return say(halt.value, language) if language == "zh" else f"{halt.value}: {why}"


def say_read(count: int, sources: Sequence[str], language: Language) -> str:
    """How many passages were read, and of which sources."""
    if language == "zh":
        return f"读了 {'、'.join(sources)} 的 {count:,} 段"
    return f"{count:,} passage{'s' * (count != 1)} of {', '.join(sources)} read"
