"""A named format, and everything that is derived from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_never

from osler.llm.core.grammar import match, write
from osler.llm.core.grammar.nodes import Alt, Chars, Lit, Named, Node, Repeat, Seq

_MANY = 64
"""The longest list of choices that is handed to a server."""
_JSON_PART = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\s+')


@dataclass(frozen=True, slots=True)
class Grammar:
    """A format that replies are held to. Its parts are its identity; the name is for readers."""

    name: str
    root: Node
    schema: str = ""
    """The JSON schema it was made from, as text; empty when the format is not JSON."""

    @property
    def gbnf(self) -> str:
        return write.write_gbnf(self.root)

    @property
    def regex(self) -> str:
        """A regular expression to be matched whole, without flags."""
        return write.write_regex(self.root)

    @property
    def choices(self) -> tuple[str, ...]:
        """All texts of the format, when it has no more than 64; else empty."""
        return (
            tuple(dict.fromkeys(_list_texts(self.root))) if _count_texts(self.root) <= _MANY else ()
        )

    @property
    def json_schema(self) -> dict[str, Any] | None:
        return json.loads(self.schema) if self.schema else None

    def accepts(self, text: str) -> bool:
        """Returns whether the text is of this format; white space between JSON parts is free."""
        if self.schema:
            return _is_json(text) and match.accepts(self.root, _compact_json(text))
        return match.accepts(self.root, text)

    def accepts_prefix(self, text: str) -> bool:
        """Returns whether the text begins one of this format, such as a reply cut short."""
        return match.accepts_prefix(self.root, _compact_json(text) if self.schema else text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _compact_json(text: str) -> str:
    """Rewrites JSON as the grammar writes it: without white space, characters as they are."""
    return _JSON_PART.sub(lambda part: _rewrite_part(part.group()), text)


def _rewrite_part(part: str) -> str:
    if part[0] != '"':
        return ""
    return json.dumps(json.loads(part), ensure_ascii=False) if _is_json(part) else part


def _count_texts(node: Node) -> int:
    """Counts the part's texts, at most; more than `_MANY` is as good as infinite."""
    match node:
        case Lit():
            return 1
        case Chars(ranges, negated):
            return _MANY + 1 if negated else sum(ord(b) - ord(a) + 1 for a, b in ranges)
        case Seq(parts):
            total = 1
            for part in parts:
                total = min(total * _count_texts(part), _MANY + 1)
            return total
        case Alt(arms):
            return min(sum(map(_count_texts, arms)), _MANY + 1)
        case Repeat(part, least, most):
            one = _count_texts(part)
            powers = (int(one ** min(n, _MANY)) for n in range(least, min(most, least + _MANY) + 1))
            return min(sum(powers), _MANY + 1)
        case Named(_, part):
            return _count_texts(part)
        case _ as never:
            assert_never(never)


def _list_texts(node: Node) -> Iterator[str]:
    """Yields the part's texts, which are few."""
    match node:
        case Lit(text):
            yield text
        case Chars(ranges):
            for first, last in ranges:
                yield from map(chr, range(ord(first), ord(last) + 1))
        case Seq(parts):
            yield from _join_parts(parts)
        case Alt(arms):
            for arm in arms:
                yield from _list_texts(arm)
        case Repeat(part, least, most):
            for count in range(least, most + 1):
                yield from _join_parts((part,) * count)
        case Named(_, part):
            yield from _list_texts(part)
        case _ as never:
            assert_never(never)


def _join_parts(parts: tuple[Node, ...]) -> Iterator[str]:
    if not parts:
        yield ""
        return
    for head in _list_texts(parts[0]):
        for tail in _join_parts(parts[1:]):
            yield head + tail
