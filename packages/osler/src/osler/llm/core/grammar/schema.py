"""Grammars of JSON schemas: compact JSON, keys in the order of the schema.

What is supported is what pydantic writes for models of texts, numbers, truth values,
choices, lists and other such models. Anything else is refused: a rule that the
grammar does not hold would be taken for one that it does. Two things are tighter
than the schema asks, so that a small model stops: every key is written, required or
not, and a text or list without a bound gets one.

A choice of many texts is written as a tree of their common beginnings. An engine that holds a reply
to a plain list of a thousand texts keeps a thousand open ends, and tests every token of its
vocabulary against each. In the tree no two branches begin with the same character, so that an
engine has few open ends wherever the reply stands.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from osler.errors import OslerError
from osler.llm.core.grammar import (
    Alt,
    Chars,
    Grammar,
    Lit,
    Node,
    Seq,
    alt,
    chars,
    lit,
    maybe,
    named_rule,
    repeat,
    seq,
)
from osler.llm.core.spans import shared_prefix


def one_of(texts: Iterable[str]) -> Node:
    """Makes a node of exactly one of the texts. Raises `ValueError` when there is none."""
    distinct = sorted(set(texts))
    if not distinct:
        raise ValueError("a choice needs at least one text")
    return _choice_tree(distinct)


def _choice_tree(texts: list[str]) -> Node:
    """Makes the tree of sorted, distinct texts."""
    ends, rest = texts[0] == "", [text for text in texts if text]
    arms = [_branch_node(list(branch)) for _, branch in groupby(rest, key=itemgetter(0))]
    if not arms:
        return Lit("")
    return maybe(alt(*arms)) if ends else alt(*arms)


def _branch_node(texts: list[str]) -> Node:
    """Makes the node of texts with a common beginning."""
    size = shared_prefix(texts[0], texts[-1])  # of sorted texts the outermost differ first
    head, tails = Lit(texts[0][:size]), [text[size:] for text in texts]
    return head if tails == [""] else seq(head, _choice_tree(tails))


DIGITS = 9
"""Digits of a whole number without a bound."""
DECIMALS = 4

_DIGIT = chars("", ("0", "9"))


def integer_range(least: int | None, most: int | None) -> Node:
    """Makes whole numbers from `least` to `most`, both included, without leading zeros.

    An open end is at nine digits. Raises `ValueError` when there are none.
    """
    huge = 10**DIGITS - 1
    low = -huge if least is None else _whole_bound(least)
    high = huge if most is None else _whole_bound(most)
    if low > high:
        raise ValueError(f"no whole number lies between {low} and {high}")
    arms: list[Node] = []
    if low < 0:
        arms.append(seq("-", _from_to(max(1, -high), -low)))
    if high >= 0:
        arms.append(_from_to(max(0, low), high))
    return alt(*arms)


def real_range(least: float | None, most: float | None) -> Node:
    """Makes numbers from `least` to `most` with at most four decimals; bounds whole, not below 0.

    Without bounds negative ones too. Raises `ValueError` for other bounds.
    """
    fraction = maybe(".", repeat(_DIGIT, 1, DECIMALS))
    huge = 10**DIGITS
    low, high = (
        (-huge if least is None else _whole_bound(least)),
        _whole_bound(huge if most is None else most),
    )
    if least is None and most is None:
        return seq(maybe("-"), _from_to(0, huge - 1), fraction)
    if low < 0 or low > high:
        raise ValueError(f"bounds of a number must be whole and not below 0: {least}, {most}")
    zeros = maybe(".", repeat("0", 1, DECIMALS))
    last = seq(lit(str(high)), zeros)
    return alt(seq(_from_to(low, high - 1), fraction), last) if low < high else last


def _whole_bound(bound: float) -> int:
    if bound != int(bound):
        raise ValueError(f"the bound {bound} is not whole")
    return int(bound)


def _from_to(low: int, high: int) -> Node:
    """Makes whole numbers from `low` ≥ 0 to `high`, by their number of digits."""
    arms: list[Node] = []
    for digits in range(len(str(low)), len(str(high)) + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = min(high, 10**digits - 1)
        arms.append(_same_length(str(first), str(last)))
    return alt(*arms)


def _same_length(low: str, high: str) -> Node:
    """Makes digits from `low` to `high`, which have the same length."""
    # The first digit is the lowest, then the rest starts at `low`; between, then the rest is
    # free; or the highest, then the rest ends at `high`.
    rest = len(low) - 1
    if set(low[1:]) <= {"0"} and set(high[1:]) <= {"9"}:
        return seq(_digit_range(low[0], high[0]), *_any_digits(rest))
    if low[0] == high[0]:
        return seq(low[0], _same_length(low[1:], high[1:]))
    arms: list[Node] = [seq(low[0], _same_length(low[1:], "9" * rest))]
    if int(high[0]) - int(low[0]) > 1:
        middle = _digit_range(str(int(low[0]) + 1), str(int(high[0]) - 1))
        arms.append(seq(middle, *_any_digits(rest)))
    arms.append(seq(high[0], _same_length("0" * rest, high[1:])))
    return alt(*arms)


def _digit_range(low: str, high: str) -> Node:
    return lit(low) if low == high else chars("", (low, high))


def _any_digits(count: int) -> tuple[Node, ...]:
    return (repeat(_DIGIT, count, count),) if count else ()


LONGEST_TEXT = 200
"""Characters of a text whose schema gives no `maxLength`."""
LONGEST_LIST = 8
"""Entries of a list whose schema gives no `maxItems`."""

_PLAIN = 32
"""The longest plain list of choices; more are written as a tree, in a rule of its own."""

_SPOKEN = frozenset({"title", "description", "default", "examples", "$defs"})
"""Keywords that restrict nothing."""
_CHARACTER = Alt(
    (
        Chars((("\x00", "\x1f"), ('"', '"'), ("\\", "\\"), ("\x7f", "\x9f")), negated=True),
        Seq((Lit("\\"), Chars(tuple((c, c) for c in '"\\nt')))),
    )
)


class BadSchema(OslerError):
    """Raised for a schema that no grammar is made from: a mistake in the code that wrote it."""


def from_schema(schema: Mapping[str, Any], *, name: str = "json") -> Grammar:
    """Makes the grammar of a JSON schema. Raises `BadSchema` for what it cannot enforce."""
    defs = schema.get("$defs", {})
    text = json.dumps(schema, ensure_ascii=False)
    return Grammar(name, _value_node(schema, defs, ()), text)


def _value_node(
    schema: Mapping[str, Any], defs: Mapping[str, Any], within: tuple[str, ...]
) -> Node:
    """Makes the node of any schema; `within` lists the definitions that this one stands in."""
    if "$ref" in schema:
        _refuse_other_keys(schema, "$ref")
        target = str(schema["$ref"]).removeprefix("#/$defs/")
        if target in within or target not in defs:
            raise BadSchema(f"{schema['$ref']} is unknown or refers to itself")
        return _value_node(defs[target], defs, (*within, target))
    if "const" in schema or "enum" in schema:
        _refuse_other_keys(schema, "const", "enum", "type")
        return _choice_node(schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        _refuse_other_keys(schema, "anyOf")
        return alt(*(_value_node(arm, defs, within) for arm in schema["anyOf"]))
    return _typed_node(schema, defs, within)


def _choice_node(values: Sequence[object]) -> Node:
    written = [json.dumps(value, ensure_ascii=False) for value in values]
    if len(written) <= _PLAIN:
        return alt(*map(lit, written))
    digest = hashlib.sha256("\n".join(written).encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return named_rule(f"one-{digest}", one_of(written))


def _typed_node(
    schema: Mapping[str, Any], defs: Mapping[str, Any], within: tuple[str, ...]
) -> Node:
    match schema.get("type"):
        case "object":
            return _object_node(schema, defs, within)
        case "array":
            return _array_node(schema, defs, within)
        case "string":
            return _string_node(schema)
        case "integer":
            return _bounded_number(integer_range, schema)
        case "number":
            return _bounded_number(real_range, schema)
        case "boolean":
            _refuse_other_keys(schema, "type")
            return alt("true", "false")
        case "null":
            _refuse_other_keys(schema, "type")
            return lit("null")
        case other:
            raise BadSchema(f"no grammar holds a reply to the type {other!r}")


def _object_node(
    schema: Mapping[str, Any], defs: Mapping[str, Any], within: tuple[str, ...]
) -> Node:
    _refuse_other_keys(schema, "type", "properties", "required", "additionalProperties")
    if schema.get("additionalProperties") or not schema.get("properties"):
        raise BadSchema("an object needs properties, and no others than those")
    parts: list[Node] = []
    for key, value in schema["properties"].items():
        opening = "," if parts else "{"
        parts += [lit(f"{opening}{json.dumps(key, ensure_ascii=False)}:")]
        parts += [_value_node(value, defs, within)]
    return Seq((*parts, lit("}")))


def _array_node(
    schema: Mapping[str, Any], defs: Mapping[str, Any], within: tuple[str, ...]
) -> Node:
    _refuse_other_keys(schema, "type", "items", "minItems", "maxItems")
    least, most = _length_bounds(schema, "minItems", "maxItems", LONGEST_LIST)
    if "items" not in schema:
        raise BadSchema("a list needs the schema of its items")
    item = _value_node(schema["items"], defs, within)
    if most == 0:
        return lit("[]")
    more = [repeat(seq(",", item), max(0, least - 1), most - 1)] if most > 1 else []
    some = seq(item, *more)
    return seq("[", maybe(some) if least == 0 else some, "]")


def _string_node(schema: Mapping[str, Any]) -> Node:
    _refuse_other_keys(schema, "type", "minLength", "maxLength")
    least, most = _length_bounds(schema, "minLength", "maxLength", LONGEST_TEXT)
    if not most:
        return lit('""')
    # A rule of its own: llama.cpp refuses a list whose entries repeat too much in place.
    return named_rule(f"text-{least}-{most}", seq('"', repeat(_CHARACTER, least, most), '"'))


def _length_bounds(
    schema: Mapping[str, Any], least: str, most: str, default: int
) -> tuple[int, int]:
    low = int(schema.get(least, 0))
    high = int(schema.get(most, max(default, low)))
    if not 0 <= low <= high:
        raise BadSchema(f"{least} {low} is above {most} {high}")
    return low, high


def _bounded_number(make: Any, schema: Mapping[str, Any]) -> Node:
    _refuse_other_keys(schema, "type", "minimum", "maximum")
    try:
        node: Node = make(schema.get("minimum"), schema.get("maximum"))
    except ValueError as error:
        raise BadSchema(str(error)) from error
    return node


def _refuse_other_keys(schema: Mapping[str, Any], *known: str) -> None:
    if unknown := schema.keys() - _SPOKEN - set(known):
        raise BadSchema(f"no grammar holds a reply to {', '.join(sorted(unknown))}")
