"""A format as GBNF and as a regular expression."""

from __future__ import annotations

import re
from typing import assert_never

from osler.llm.core.grammar.nodes import Alt, Chars, Lit, Named, Node, Repeat, Seq

_PLAIN = re.compile(r"[0-9A-Za-z]")


def gbnf(root: Node) -> str:
    """Rules for llama.cpp and vLLM; named parts are rules, in the order of their first use.

    Raises `ValueError` when two different parts have one name.
    """
    rules: dict[str, Node] = {}
    _collect(root, rules)
    lines = [f"root ::= {_gbnf(root)}"]
    lines += [f"{name} ::= {_gbnf(part)}" for name, part in rules.items()]
    return "\n".join(lines)


def regex(node: Node) -> str:
    """For `re.fullmatch`, and for engines that take a regular expression; no flags."""
    match node:
        case Lit(text):
            return re.escape(text)
        case Chars():
            return _class(node)
        case Seq(parts):
            return "".join(_atom(part) if isinstance(part, Alt) else regex(part) for part in parts)
        case Alt(arms):
            return "|".join(map(regex, arms))
        case Repeat(part, least, most):
            return _atom(part) + _times(least, most)
        case Named(_, part):
            return _atom(part)
        case _ as never:
            assert_never(never)


def _atom(node: Node) -> str:
    return regex(node) if isinstance(node, Chars) else f"(?:{regex(node)})"


def _collect(node: Node, rules: dict[str, Node]) -> None:
    match node:
        case Named(name, part):
            if rules.setdefault(name, part) != part:
                raise ValueError(f"two parts are named {name}")
            _collect(part, rules)
        case Seq(inner) | Alt(inner):
            for one in inner:
                _collect(one, rules)
        case Repeat(part):
            _collect(part, rules)
        case Lit() | Chars():
            pass
        case _ as never:
            assert_never(never)


def _gbnf(node: Node) -> str:
    match node:
        case Lit(text):
            return '"' + "".join(map(_quoted, text)) + '"'
        case Chars():
            return _class(node)
        case Seq(()):
            return '""'
        case Seq(parts):
            return " ".join(_grouped(p) if isinstance(p, Alt) else _gbnf(p) for p in parts)
        case Alt(arms):
            return " | ".join(map(_gbnf, arms))
        case Repeat(part, least, most):
            return _grouped(part) + _times(least, most)
        case Named(name, _):
            return name
        case _ as never:
            assert_never(never)


def _grouped(node: Node) -> str:
    return f"({_gbnf(node)})" if isinstance(node, Seq | Alt | Repeat) else _gbnf(node)


def _times(least: int, most: int) -> str:
    if (least, most) == (0, 1):
        return "?"
    return f"{{{least}}}" if least == most else f"{{{least},{most}}}"


def _quoted(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or _escaped(char, char.isprintable())


def _class(node: Chars) -> str:
    inner = "".join(
        _member(first) if first == last else f"{_member(first)}-{_member(last)}"
        for first, last in node.ranges
    )
    return f"[{'^' if node.negated else ''}{inner}]"


def _member(char: str) -> str:
    return _escaped(char, bool(_PLAIN.match(char)))


def _escaped(char: str, plain: bool) -> str:
    if plain:
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
