"""A tree of texts is the same choice as their list."""

from __future__ import annotations

import pytest
from derivations import grammar_texts
from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.grammar import Alt, Grammar, Lit, Node, Repeat, Seq
from osler.llm.core.grammar.schema import from_schema, one_of

TEXTS = st.lists(st.text("ab糖尿病 ", max_size=6), min_size=1, max_size=12)


@given(TEXTS, st.text("ab糖尿病 ", max_size=6))
def test_choice_grammar_accepts_its_texts_and_no_other(texts: list[str], other: str) -> None:
    held = Grammar("x", one_of(texts))
    assert all(held.accepts(text) for text in texts)
    assert held.accepts(other) is (other in texts)


@given(TEXTS, st.data())
def test_choice_grammar_generates_only_its_texts(texts: list[str], data: st.DataObject) -> None:
    assert data.draw(grammar_texts(Grammar("x", one_of(texts)))) in texts


@given(TEXTS)
def test_no_two_branches_begin_with_one_character(texts: list[str]) -> None:
    def firsts(node: Node) -> None:
        match node:
            case Alt(arms):
                heads = [_head(arm) for arm in arms]
                assert len(set(heads)) == len(heads)
                for arm in arms:
                    firsts(arm)
            case Seq(parts):
                for part in parts:
                    firsts(part)
            case Repeat(part):
                firsts(part)
            case _:
                pass

    firsts(one_of(texts))


def _head(node: Node) -> str:
    while isinstance(node, Seq):
        node = node.parts[0]
    return node.text[:1] if isinstance(node, Lit) else ""


def test_a_choice_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one text"):
        one_of([])


def test_a_long_list_of_choices_in_a_schema_is_a_rule_of_its_own() -> None:
    names = [f"name {n}" for n in range(500)]
    item = {"type": "string", "enum": names}
    pair = {"type": "object", "properties": {"a": item, "b": item}}
    held = from_schema(pair)
    assert held.accepts('{"a":"name 7","b":"name 499"}')
    assert not held.accepts('{"a":"name 7","b":"name 500"}')
    assert held.gbnf.count("\n") == 1  # the root and one rule, used twice


def test_a_text_that_was_cut_at_a_space_begins_one_of_the_format() -> None:
    held = from_schema({"type": "object", "properties": {"a": {"enum": ["type 2 diabetes"]}}})
    assert held.accepts_prefix('{ "a": "type 2')
    assert not held.accepts_prefix('{"a": "type2')
