"""Formats written from parts: what engines are given, and what is refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from osler.llm.core.grammar import (
    Grammar,
    alt,
    chars,
    free_text,
    lit,
    maybe,
    named_rule,
    repeat,
    seq,
)
from osler.llm.core.grammar.schema import BadSchema, from_schema, integer_range, real_range


def test_named_parts_become_rules_written_once() -> None:
    word = named_rule("word", repeat(chars("", ("a", "z")), 1, 3))
    grammar = Grammar("two", seq(word, maybe(" and ", word), alt(".", "!")))
    assert grammar.gbnf == ('root ::= word (" and " word)? ("." | "!")\nword ::= [a-z]{1,3}')


def test_what_would_end_a_literal_or_a_class_is_escaped() -> None:
    quote = Grammar("quote", seq('a"\\\n\x00', chars("]^-\\")))
    assert quote.gbnf == r'root ::= "a\"\\\n\x00" [\x5d\x5e\x2d\x5c]'
    assert quote.accepts('a"\\\n\x00-')


def test_two_parts_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match="two parts are named x"):
        _ = Grammar("x", seq(named_rule("x", "a"), named_rule("x", "b"))).gbnf


@pytest.mark.parametrize("name", ["root", "Word", "a b", ""])
def test_a_name_that_no_engine_takes_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="invalid rule name"):
        named_rule(name, "a")


@pytest.mark.parametrize(("least", "most"), [(2, 1), (0, 0), (-1, 2)])
def test_a_repetition_that_repeats_nothing_is_refused(least: int, most: int) -> None:
    with pytest.raises(ValueError, match="impossible repetition"):
        repeat("a", least, most)


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="empty character ranges"):
        chars("")
    with pytest.raises(ValueError, match="a choice needs at least one"):
        alt()


def test_the_beginning_of_a_text_is_known_from_a_wrong_one() -> None:
    grammar = Grammar("x", seq("<answer>", alt("yes", "no"), "</answer>"))
    for text in ("", "<ans", "<answer>n", "<answer>yes</answer>"):
        assert grammar.accepts_prefix(text)
    for text in ("answer", "<answer>m", "<answer>yes</answer>."):
        assert not grammar.accepts_prefix(text)
    assert from_schema(SCHEMA).accepts_prefix('{ "a": ')
    assert not from_schema(SCHEMA).accepts_prefix('{ "b": ')


def test_free_text_is_one_line_that_does_not_begin_with_a_space() -> None:
    line = Grammar("line", free_text(4, without=";"))
    assert line.accepts("缺铁 b")
    for text in ("", " a", "\u3000a", "a\nb", "a\u2028", "a;b", "abcde", "a\u200b"):
        assert not line.accepts(text)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        {"type": "array"},
        {"type": "string", "pattern": "a+"},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "integer", "multipleOf": 3},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "number", "minimum": 0.5},
        {"type": "number", "minimum": -1},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/x"},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}}},
    ],
)
def test_unsupported_schema_keyword_is_refused_not_ignored(schema: dict[str, object]) -> None:
    with pytest.raises(BadSchema):
        from_schema(schema)


def test_schema_lists_definitions_and_null_become_grammar() -> None:
    grammar = from_schema(
        {
            "$defs": {"route": {"enum": ["oral", "静脉"]}},
            "type": "object",
            "properties": {
                "routes": {"type": "array", "items": {"$ref": "#/$defs/route"}, "minItems": 1},
                "none": {"type": "array", "items": {"type": "null"}, "maxItems": 0},
                "kind": {"const": "drug"},
                "text": {"type": "string", "maxLength": 0},
            },
        }
    )
    assert grammar.accepts('{"routes":["oral","静脉"],"none":[],"kind":"drug","text":""}')
    assert not grammar.accepts('{"routes":[],"none":[],"kind":"drug","text":""}')
    assert not grammar.accepts('{"routes":["oral"],"kind":"drug","none":[],"text":""}')


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (7, 123), (-12, 5), (-30, -4), (99, 1001), (1, 10)]
)
def test_whole_numbers_are_those_between_the_bounds_and_no_others(low: int, high: int) -> None:
    grammar = Grammar("n", integer_range(low, high))
    accepted = {n for n in range(-200, 1300) if grammar.accepts(str(n))}
    assert accepted == set(range(low, high + 1))
    assert not grammar.accepts(f"0{high}")
    assert not grammar.accepts("-0")


def test_open_bounds_end_at_nine_digits() -> None:
    grammar = Grammar("n", integer_range(None, None))
    assert grammar.accepts("-999999999")
    assert not grammar.accepts("1000000000")


def test_numbers_have_at_most_four_decimals_within_their_bounds() -> None:
    share = Grammar("n", real_range(0, 1))
    for text in ("0", "0.25", "0.9999", "1", "1.0"):
        assert share.accepts(text)
    for text in ("1.1", "2", ".5", "0.12345", "-0.1", "1."):
        assert not share.accepts(text)
    assert Grammar("n", real_range(None, None)).accepts("-12.5")
    assert Grammar("n", real_range(3, 3)).accepts("3")


def test_equal_formats_are_equal_values() -> None:
    assert Grammar("a", lit("x")) == Grammar("a", seq("x").parts[0])
    assert hash(from_schema(SCHEMA)) == hash(from_schema(SCHEMA))


def test_the_guide_s_own_form_is_one() -> None:
    guide = Path(__file__).parents[3] / "docs" / "guide" / "replies.md"
    (code,) = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL)
    made: dict[str, Any] = {}
    exec(code, made)  # noqa: S102 - what the page tells its reader to run
    assert made["triage"].accepts("<level>red</level> chest pain")
