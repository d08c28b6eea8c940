"""The parts of a format, and short ways to write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"[a-z][a-z0-9-]*")

_CONTROL = (("\x00", "\x1f"), ("\x7f", "\x9f"), ("\u2028", "\u2029"))
"""Characters that end a line, or show nothing."""
_SPACES = (
    *((" ", " "), ("\u00a0", "\u00a0"), ("\u1680", "\u1680"), ("\u2000", "\u200a")),
    *(("\u202f", "\u202f"), ("\u205f", "\u205f"), ("\u3000", "\u3000")),
)
_HIDDEN = (
    *(("\u00ad", "\u00ad"), ("\u061c", "\u061c"), ("\u180e", "\u180e"), ("\u200b", "\u200f")),
    *(("\u202a", "\u202e"), ("\u2060", "\u206f"), ("\ufe00", "\ufe0f"), ("\ufeff", "\ufeff")),
    ("\U000e0000", "\U000e01ef"),
)
"""Characters without a glyph: no text of ours has them (`osler.text.clean_text`)."""


@dataclass(frozen=True, slots=True)
class Lit:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Chars:
    """One character inside (`negated`: outside) of the ranges, ends included."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def __post_init__(self) -> None:
        if not self.ranges or any(first > last for first, last in self.ranges):
            raise ValueError(f"empty character ranges: {self.ranges}")

    def contains_char(self, char: str) -> bool:
        return any(a <= char <= b for a, b in self.ranges) is not self.negated


@dataclass(frozen=True, slots=True)
class Seq:
    """The parts, one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of the arms."""

    arms: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.arms:
            raise ValueError("a choice needs at least one arm")


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part, from `least` to `most` times."""

    part: Node
    least: int
    most: int

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most or self.most < 1:
            raise ValueError(f"impossible repetition: {{{self.least},{self.most}}}")


@dataclass(frozen=True, slots=True)
class Named:
    """A part with a name: a rule of its own in GBNF, written once however often it is used."""

    name: str
    part: Node

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name == "root":
            raise ValueError(f"invalid rule name: {self.name!r}")


Node = Lit | Chars | Seq | Alt | Repeat | Named


def lit(text: str) -> Lit:
    return Lit(text)


def seq(*parts: Node | str) -> Seq:
    return Seq(tuple(map(_as_node, parts)))


def alt(*arms: Node | str) -> Node:
    """Makes a choice of the arms; a single arm is itself."""
    return Alt(tuple(map(_as_node, arms))) if len(arms) != 1 else _as_node(arms[0])


def repeat(part: Node | str, least: int, most: int) -> Repeat:
    return Repeat(_as_node(part), least, most)


def maybe(*parts: Node | str) -> Repeat:
    return Repeat(seq(*parts) if len(parts) != 1 else _as_node(parts[0]), 0, 1)


def named_rule(name: str, part: Node | str) -> Named:
    return Named(name, _as_node(part))


def chars(members: str, *ranges: tuple[str, str]) -> Chars:
    """Makes a node of any of these characters or ranges."""
    return Chars((*((c, c) for c in members), *ranges))


def free_text(longest: int, *, without: str = "") -> Node:
    """Makes one line of free text of 1 to `longest` characters, `without` some characters.

    It does not begin with a space, so that a reader who strips it finds something.
    """
    first = visible_char(without, spaces=False)
    return Seq((first, Repeat(visible_char(without), 0, longest - 1))) if longest > 1 else first


def visible_char(without: str = "", *, spaces: bool = True) -> Chars:
    """Makes one character of a line, with or without spaces, but none of `without`."""
    barred = (*_CONTROL, *_HIDDEN, *(() if spaces else _SPACES), *((c, c) for c in without))
    return Chars(barred, negated=True)


def _as_node(part: Node | str) -> Node:
    return Lit(part) if isinstance(part, str) else part
