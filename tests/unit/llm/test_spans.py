r"""Where an answer stands, and the least probability of its tokens, worked by hand."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.base import TokenScore
from osler.llm.core.spans import (
    Probability,
    answer_span,
    boxed_span,
    decode_pieces,
    least_probability,
    span_tokens,
    strip_types,
    tagged_span,
)


def tokens(
    *pieces: tuple[str | bytes, float], top: tuple[tuple[str, float], ...] = ()
) -> list[TokenScore]:
    """Tokens of these pieces in order, each with its probability."""
    spelt = [piece if isinstance(piece, bytes) else piece.encode() for piece, _ in pieces]
    text, spans = decode_pieces(spelt)
    return [
        TokenScore(text[start:end], start, end, log(p), top)
        for (start, end), (_, p) in zip(spans, pieces, strict=True)
    ]


def near(found: Probability | None, value: float, *, exact: bool = True) -> bool:
    return found is not None and found.exact is exact and abs(found.value - value) < 1e-9


def text_of(scored: list[TokenScore]) -> str:
    made = ""
    for token in scored:
        made = made[: token.start] + token.text
    return made


def inside(text: str) -> str | None:
    span = answer_span(text)
    return None if span is None else text[slice(*span)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"<answer>\boxed{1882-01-10}</answer>", "1882-01-10"),
        (r"\boxed{\text{a}}", "a"),
        (r"\boxed{ \mathrm{ \textbf{iron} } }", "iron"),
        (r"\boxed{\text{A} or \text{B}}", r"\text{A} or \text{B}"),
        (r"\boxed{5\text{ mg}}", r"5\text{ mg}"),
        (r"\boxed{\text{cut}", None),
        (r"\boxed{\textual{a}}", r"\textual{a}"),
        (r"\boxed{\frac{1}{2}} mg", r"\frac{1}{2}"),
        (r"\boxed{ ferrous sulfate }.", "ferrous sulfate"),
        (r"\boxed {iron}", "iron"),
        (r"<answer>\boxed{抗坏血酸}</answer>", "抗坏血酸"),
        (r"\boxed{a \} b}", r"a \} b"),
        (r"First \boxed{a}, then \boxed{b}.", "b"),
        (r"\boxed{a} <answer>\boxed{b} or \boxed{c}</answer> \boxed{d}", "c"),
        (r"<answer>\boxed{a}</answer> no: <answer>\boxed{b}</answer>", "b"),
        (r"\boxed{whole} and \boxed{cut", "whole"),
        (r"\boxed{}", ""),
        ("no box", None),
        (r"\boxed{cut", None),
        (r"<answer>bare</answer> \boxed{outside}", None),
        ("", None),
    ],
)
def test_the_answer_is_the_last_box_of_the_last_answer(text: str, found: str | None) -> None:
    assert inside(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\boxed{\text{a}}", "a"),
        (r"\boxed{\text{A} or \text{B}}", "A or B"),
        (r"\boxed{5\text{ mg}/\mathrm{kg}}", "5 mg/kg"),
        (r"\boxed{\text{the \textit{acid}} \frac{1}{2}}", r"the acid \frac{1}{2}"),
        (r"\boxed{5 \text{ mg}", None),
        (r"\boxed{\text{\text}}", r"\text"),
    ],
)
def test_what_a_box_says_is_read_without_its_type(text: str, found: str | None) -> None:
    span = boxed_span(text)
    assert (None if span is None else strip_types(text, span)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<answer>Yes</answer>", "Yes"),
        ("</answer>Yes</answer>", "Yes"),
        ("<think>a <answer> b</think> <answer>\n C \n</answer>", "C"),
        ("<answer>A</answer><answer>B</answer>", "B"),
        ("<answer>A", None),
        ("<answers>A</answers>", None),
    ],
)
def test_the_text_of_a_tag_is_that_of_its_last_whole_one(text: str, found: str | None) -> None:
    span = tagged_span(text, "answer")
    assert (None if span is None else text[slice(*span)]) == found


def test_three_tokens_of_a_box_have_the_least_of_their_probabilities() -> None:
    r"""`\boxed_span{` 1/2 · `iron` 3/4 · ` sul` 1/8 · `fate` 1/4 · `}` 1/16: 1/8, not 1/16."""
    made = tokens(
        (r"\boxed{", 1 / 2), ("iron", 3 / 4), (" sul", 1 / 8), ("fate", 1 / 4), ("}", 1 / 16)
    )
    span = answer_span(text_of(made))
    assert span is not None
    assert near(least_probability(made, span), 1 / 8)


def test_a_token_that_reaches_over_the_end_of_the_box_counts() -> None:
    r"""`C}.` is one token to a tokenizer: its probability is the answer's, too."""
    made = tokens((r"\boxed{", 0.9), ("C}.", 0.3))
    assert near(least_probability(made, (7, 8)), 0.3)


def test_the_first_token_of_a_span_begins_before_it() -> None:
    """A tokenizer's words begin with their space; the bare tag and what follows are left out."""
    made = tokens(
        ("Conclusion", 0.9), (":", 0.9), (" anaphylaxis", 0.2), (" is.", 0.5), ("\n", 0.9)
    )
    inside = span_tokens(made, (12, 27))
    assert [token.text for token in inside] == [" anaphylaxis", " is."]
    assert span_tokens(made, (11, 11)) == ()


def test_the_tokens_of_one_chinese_character_all_count() -> None:
    r"""铁 is three bytes in two tokens, 1/2 and 1/5; 剂 is whole, 4/5."""
    iron = "铁".encode()
    made = tokens(
        (r"\boxed{", 0.9), (iron[:1], 1 / 2), (iron[1:], 1 / 5), ("剂", 4 / 5), ("}", 0.1)
    )
    text = text_of(made)
    span = answer_span(text)
    assert span is not None
    assert text[slice(*span)] == "铁剂"
    assert near(least_probability(made, span), 1 / 5)
    assert near(least_probability(made, (8, 9)), 4 / 5)


def test_a_token_that_is_not_told_is_bounded_by_what_the_others_leave() -> None:
    """Of the told ones 0.7 and 0.25: at most 0.05 is left for it."""
    made = [TokenScore("iron", 0, 4, -9999.0, (("zinc", log(0.7)), ("salt", log(0.25))))]
    found = least_probability(made, (0, 4))
    assert near(found, 0.05, exact=False)
    few = [TokenScore("iron", 0, 4, -9999.0, (("zinc", log(0.3)), ("salt", log(0.2))))]
    assert near(least_probability(few, (0, 4)), 0.2, exact=False)


def test_a_character_that_no_token_covers_makes_a_bound_of_the_value() -> None:
    made = [TokenScore("ir", 0, 2, log(0.5)), TokenScore("n", 3, 4, log(0.6))]
    assert near(least_probability(made, (0, 4)), 0.5, exact=False)


def test_a_span_without_tokens_has_no_probability() -> None:
    assert least_probability(tokens(("iron", 0.5)), (2, 2)) is None
    assert least_probability([], (0, 4)) is None


PIECES = st.lists(
    st.tuples(st.sampled_from(["a", " b", "铁", "剂}", "{", "\\"]), st.floats(0.001, 1.0)),
    min_size=1,
    max_size=12,
)


@given(PIECES, st.data())
def test_a_wider_span_is_never_surer(pieces: list[tuple[str, float]], data: st.DataObject) -> None:
    made = tokens(*pieces)
    end = data.draw(st.integers(1, made[-1].end))
    start = data.draw(st.integers(0, end - 1))
    inner, whole = least_probability(made, (start, end)), least_probability(made, (0, made[-1].end))
    assert inner is not None
    assert whole is not None
    assert inner.exact
    assert whole.value == pytest.approx(min(p for _, p in pieces), abs=1e-9)
    assert whole.value <= inner.value


@given(st.text(alphabet="\\boxed{}<answer>/ 铁", max_size=60))
def test_no_text_is_too_odd_to_be_looked_through(text: str) -> None:
    span = answer_span(text)
    assert span is None or 0 <= span[0] <= span[1] <= len(text)
    box = boxed_span(text)
    assert box is None or text[: box[0]].rstrip().endswith("{")
