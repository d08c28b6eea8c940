"""The core words keep their own rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.types import (
    Answer,
    Authorship,
    Evidence,
    Grounding,
    Hit,
    Locator,
    Passage,
    Question,
    Statement,
    Usage,
)

TEXT = "Give adrenaline into the thigh. Repeat after five minutes."
HIT = Hit(Passage("book:a#0", TEXT, "book", "Anaphylaxis"), 1.0, 1, "q", "book")
QUOTE = Evidence(HIT, 0, 31)


def test_a_quote_is_a_substring_of_its_passage() -> None:
    assert QUOTE.quote == "Give adrenaline into the thigh."


@pytest.mark.parametrize(("start", "end"), [(-1, 4), (4, 4), (5, 3), (0, len(TEXT) + 1)])
def test_a_span_outside_the_passage_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="outside passage book:a#0"):
        Evidence(HIT, start, end)


def test_an_answer_cannot_cite_what_it_has_not() -> None:
    with pytest.raises(ValueError, match=r"\[2\]"):
        Answer((Statement("x", (2,)),), (QUOTE,))


def test_items_of_a_list_have_a_line_each() -> None:
    answer = Answer(
        (
            Statement("Avoid:"),
            Statement("- aspirin", (1,)),
            Statement("- alcohol"),
            Statement("1.5"),
        ),
        (QUOTE,),
    )
    assert answer.text == "Avoid:\n- aspirin [1]\n- alcohol\n1.5"
    chinese = Answer((Statement("1、休息。"), Statement("2、补液。")), language="zh")
    assert chinese.text == "1、休息。\n2、补液。"


def test_a_chinese_mark_stands_at_its_sentence() -> None:
    said = (Statement("甲。", (1,)), Statement("乙。"), Statement("丙。", (1,)))
    assert Answer(said, (QUOTE,), language="zh").text == "甲。[1] 乙。丙。[1]"


STATEMENTS = st.lists(
    st.builds(Statement, st.text(min_size=1), st.lists(st.integers(1, 3), max_size=3).map(tuple)),
    max_size=6,
).map(tuple)


@given(STATEMENTS, st.sampled_from(["en", "zh"]))
def test_citation_spans_cut_the_statements_out_of_the_text(
    statements: tuple[Statement, ...], language: str
) -> None:
    answer = Answer(statements, (QUOTE,) * 3, language=language)  # type: ignore[arg-type]
    cut = [(answer.text[c.start : c.end], c.number) for c in answer.citations]
    assert cut == [(s.text, n) for s in statements for n in s.cites]


@given(STATEMENTS)
def test_grounding_follows_from_the_statements(statements: tuple[Statement, ...]) -> None:
    cited = [bool(s.cites) for s in statements]
    expected = (
        Grounding.ABSTAINED
        if not cited
        else Grounding.GROUNDED
        if all(cited)
        else Grounding.PARTLY
        if any(cited)
        else Grounding.UNGROUNDED
    )
    assert Answer(statements, (QUOTE,) * 3).grounding is expected


def test_an_option_without_a_quote_is_ungrounded_not_an_abstention() -> None:
    assert Answer(option="A", authorship=Authorship.WRITTEN).grounding is Grounding.UNGROUNDED


def test_a_question_knows_its_letters() -> None:
    question = Question("q", "Which?", ("iron", "zinc"))
    assert question.letters == ("A", "B")
    assert question.option_text("B") == "zinc"
    with pytest.raises(KeyError):
        question.option_text("C")


def test_unknown_parts_of_a_locator_are_left_out() -> None:
    assert str(Locator()) == ""
    assert (
        str(Locator("Dose", 4, 2021, "", "PMID:1", "Review")) == "Dose, p. 4, Review, 2021, PMID:1"
    )


COUNTS = st.integers(0, 10**6)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS.map(float))


@given(USAGES, USAGES)
def test_usage_adds_up_in_any_order(a: Usage, b: Usage) -> None:
    assert a + b == b + a
    assert a + Usage() == a
    assert (a + b).tokens == a.tokens + b.tokens
