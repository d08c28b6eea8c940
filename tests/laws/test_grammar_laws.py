"""Laws of formats: everything derived from one agrees, whatever its parts."""

import re

from derivations import grammar_texts, regex_of
from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.grammar import Alt, Chars, Grammar, Lit, Named, Node, Repeat, Seq
from osler.llm.core.grammar.schema import integer_range

LETTERS = st.text(st.sampled_from("ab]^-\\"), max_size=3)
CHARS = st.builds(
    Chars,
    st.lists(st.sampled_from("ab]^-\\c").map(lambda c: (c, c)), min_size=1, max_size=3).map(tuple),
    st.booleans(),
)


def parts(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    bounds = st.tuples(st.integers(0, 2), st.integers(1, 3)).filter(lambda b: b[0] <= b[1])
    return st.one_of(
        several.map(Seq),
        several.map(Alt),
        st.tuples(inner, bounds).map(lambda t: Repeat(t[0], *t[1])),
        inner.map(lambda node: Named("x", node) if "Named" not in repr(node) else node),
    )


NODES = st.recursive(LETTERS.map(Lit) | CHARS, parts, max_leaves=6)


@given(NODES, st.text(st.sampled_from("abc]^-\\"), max_size=6))
def test_matcher_and_regex_agree_on_any_text(node: Node, text: str) -> None:
    grammar = Grammar("any", node)
    assert grammar.accepts(text) is (re.fullmatch(regex_of(node), text) is not None)


@given(st.data(), NODES)
def test_a_derived_text_is_accepted_and_each_of_its_beginnings_begins_one(
    data: st.DataObject, node: Node
) -> None:
    grammar = Grammar("any", node)
    text = data.draw(grammar_texts(grammar))
    assert grammar.accepts(text)
    assert all(grammar.accepts_prefix(text[:end]) for end in range(len(text)))


@given(NODES, st.text(st.sampled_from("abc]^-\\"), max_size=6))
def test_what_is_accepted_also_begins(node: Node, text: str) -> None:
    grammar = Grammar("any", node)
    assert grammar.accepts_prefix(text) or not grammar.accepts(text)


@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_a_whole_number_is_accepted_when_it_lies_between(a: int, b: int, n: int) -> None:
    low, high = min(a, b), max(a, b)
    assert Grammar("n", integer_range(low, high)).accepts(str(n)) is (low <= n <= high)
