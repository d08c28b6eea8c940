"""Serialisation of formats as GBNF and as regular expressions."""

from __future__ import annotations

import re
from typing import assert_never

from osler.llm.core.grammar.nodes import Alt, Chars, Lit, Named, Node, Repeat, Seq

_PLAIN = re.compile(r"[0-9A-Za-z]")


def write_gbnf(root: Node) -> str:
    """Writes rules for llama.cpp and vLLM; named parts are rules, in the order of first use.

    Raises `ValueError` when two different parts have one name.
    """
    rules: dict[str, Node] = {}
    _collect_rules(root, rules)
    lines = [f"root ::= {_gbnf_node(root)}"]
    lines += [f"{name} ::= {_gbnf_node(part)}" for name, part in rules.items()]
    return "\n".join(lines)


def write_regex(node: Node) -> str:
    """Writes a regular expression for `re.fullmatch` and for engines that take one; no flags."""
    match node:
        case Lit(text):
            return re.escape(text)
        case Chars():
            return _char_class(node)
        case Seq(parts):
            return "".join(
                _regex_atom(part) if isinstance(part, Alt) else write_regex(part) for part in parts
            )
        case Alt(arms):
            return "|".join(map(write_regex, arms))
        case Repeat(part, least, most):
            return _regex_atom(part) + _repeat_suffix(least, most)
        case Named(_, part):
            return _regex_atom(part)
        case _ as never:
            assert_never(never)


def _regex_atom(node: Node) -> str:
    return write_regex(node) if isinstance(node, Chars) else f"(?:{write_regex(node)})"


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
    # \\x, \\u and \\U mean the same to llama.cpp's GBNF reader and to Python's `re`.
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
