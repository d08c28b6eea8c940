"""The formats that a reply can be held to.

A format is written once, from six parts (`lit`, `chars`, `seq`, `alt`, `repeat`,
`named_rule`), and what an engine or a reader needs is derived from that: GBNF for
llama.cpp and vLLM, a JSON schema where it was made from one, and a matcher in plain Python for
replies of servers that ignore what they were asked for.

Parts do not refer to themselves and every repetition is bounded: a small model
held to an open repetition never stops. So each format is a regular language.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, assert_never

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
        """Rules for llama.cpp and vLLM; named parts are rules, in the order of first use.

        Raises `ValueError` when two different parts have one name.
        """
        rules: dict[str, Node] = {}
        _collect_rules(self.root, rules)
        parts = {"root": self.root, **rules}
        return "\n".join(f"{name} ::= {_gbnf_node(part)}" for name, part in parts.items())

    @property
    def json_schema(self) -> dict[str, Any] | None:
        return json.loads(self.schema) if self.schema else None

    def accepts(self, text: str) -> bool:
        """Returns whether the text is of this format; white space between JSON parts is free."""
        if self.schema:
            return _is_json(text) and accepts(self.root, _compact_json(text))
        return accepts(self.root, text)

    def accepts_prefix(self, text: str) -> bool:
        """Returns whether the text begins one of this format, such as a reply cut short."""
        return accepts_prefix(self.root, _compact_json(text) if self.schema else text)


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


_PLAIN = re.compile(r"[0-9A-Za-z]")


def _collect_rules(node: Node, rules: dict[str, Node]) -> None:
    match node:
        case Named(name, part):
            if rules.setdefault(name, part) != part:
                raise ValueError(f"two parts are named {name}")
            _collect_rules(part, rules)
        case Seq(inner) | Alt(inner):
            for one in inner:
                _collect_rules(one, rules)
        case Repeat(part):
            _collect_rules(part, rules)
        case Lit() | Chars():
            pass
        case _ as never:
            assert_never(never)


def _gbnf_node(node: Node) -> str:
    match node:
        case Lit(text):
            return '"' + "".join(map(_quote_char, text)) + '"'
        case Chars():
            return _char_class(node)
        case Seq(()):
            return '""'
        case Seq(parts):
            return " ".join(_gbnf_group(p) if isinstance(p, Alt) else _gbnf_node(p) for p in parts)
        case Alt(arms):
            return " | ".join(map(_gbnf_node, arms))
        case Repeat(part, least, most):
            return _gbnf_group(part) + _repeat_suffix(least, most)
        case Named(name, _):
            return name
        case _ as never:
            assert_never(never)


def _gbnf_group(node: Node) -> str:
    return f"({_gbnf_node(node)})" if isinstance(node, Seq | Alt | Repeat) else _gbnf_node(node)


def _repeat_suffix(least: int, most: int) -> str:
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _quote_char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or _escape_char(
        char, char.isprintable()
    )


def _char_class(node: Chars) -> str:
    inner = "".join(
        _class_member(first) if first == last else f"{_class_member(first)}-{_class_member(last)}"
        for first, last in node.ranges
    )
    return f"[{'^' if node.negated else ''}{inner}]"


def _class_member(char: str) -> str:
    return _escape_char(char, bool(_PLAIN.match(char)))


def _escape_char(char: str, plain: bool) -> str:
    if plain:
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
