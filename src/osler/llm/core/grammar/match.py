"""Matching of texts against a format, by sets of places: linear in every format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from osler.llm.core.grammar.nodes import Alt, Chars, Lit, Named, Node, Repeat, Seq

Places = frozenset[int]
_NOWHERE: Places = frozenset()


def accepts(node: Node, text: str) -> bool:
    return len(text) in _Matcher(text).end_places(node, frozenset({0}))


def accepts_prefix(node: Node, text: str) -> bool:
    """Returns whether some text of the format begins with this one."""
    matcher = _Matcher(text)
    return len(text) in matcher.end_places(node, frozenset({0})) or matcher.starved


@dataclass
class _Matcher:
    text: str
    starved: bool = False
    """Set when a part needed more text than there is."""

    def end_places(self, node: Node, starts: Places) -> Places:
        """Returns where the part can end when it begins at one of `starts`."""
        match node:
            case Lit(text):
                return self._match_literal(text, starts)
            case Chars():
                self.starved |= len(self.text) in starts
                return frozenset(
                    s + 1 for s in starts if s < len(self.text) and node.contains_char(self.text[s])
                )
            case Seq(parts):
                for part in parts:
                    starts = self.end_places(part, starts) if starts else _NOWHERE
                return starts
            case Alt(arms):
                return frozenset[int]().union(*(self.end_places(arm, starts) for arm in arms))
            case Repeat(part, least, most):
                return self._match_repeat(part, least, most, starts)
            case Named(_, part):
                return self.end_places(part, starts)
            case _ as never:
                assert_never(never)

    def _match_literal(self, literal: str, starts: Places) -> Places:
        rest = {s: self.text[s : s + len(literal)] for s in starts}
        self.starved |= any(
            len(actual) < len(literal) and literal.startswith(actual) for actual in rest.values()
        )
        return frozenset(s + len(literal) for s, actual in rest.items() if actual == literal)

    def _match_repeat(self, part: Node, least: int, most: int, starts: Places) -> Places:
        ends = starts if least == 0 else _NOWHERE
        for count in range(1, most + 1):
            starts = self.end_places(part, starts)
            # What was found at a smaller count had more repetitions left than now.
            if not starts or (count >= least and starts <= ends):
                break
            ends = ends | starts if count >= least else ends
        return ends
