"""What a person types becomes a question, or one clear refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import BadQuestion
from osler.questions import LIMIT, parse_labeled, parse_question


def test_a_question_is_known_by_its_words() -> None:
    first, second = parse_question(" Why? "), parse_question("Why?")
    assert first == second
    assert first.language == "en"
    assert parse_question("首选药物是什么？").language == "zh"


def test_trailing_lines_with_letters_are_options() -> None:
    question = parse_question("Which drug?\nIt is urgent.\nA. aspirin\nB) heparin\n(C) 华法林")
    assert question.text == "Which drug?\nIt is urgent."
    assert question.options == ("aspirin", "heparin", "华法林")


@pytest.mark.parametrize("text", ["Which is it?\nB. one\nC. two", "Vitamin\nA. is fat.\nWhy?"])
def test_lines_that_are_no_full_list_stay_in_the_question(text: str) -> None:
    assert parse_question(text).text == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        (b"\xff\xfe", "not UTF-8 text"),
        ("what\x00?", "binary"),
        ("a\ud800b", "binary"),
        ("x" * (LIMIT + 1), "8,001 characters"),
        ("A. yes\nB. no", "options but no question"),
        ("Is it?\nA. yes", "two or more"),
        ("Is it?\nA. yes\nB. yes", "distinct"),
    ],
)
def test_bad_questions_are_refused_in_words_with_a_fix(text: str | bytes, says: str) -> None:
    with pytest.raises(BadQuestion, match=says) as caught:
        parse_question(text)
    assert caught.value.fix
    assert caught.value.exit_code == 2


@given(st.text() | st.binary())
def test_whatever_is_typed_is_a_question_or_a_refusal(text: str | bytes) -> None:
    try:
        question = parse_question(text)
    except BadQuestion:
        return
    assert question.text.strip()
    assert len(question.options) != 1


def test_options_by_letter_are_in_the_order_of_their_letters() -> None:
    line = '{"question": "Which?", "options": {"B": "heparin", "A": "warfarin"}, "answer": "A"}'
    [read] = parse_labeled(line, "f")
    assert read.question.options == ("warfarin", "heparin")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('"options": {"A": "x", "C": "z"}', "not A, B, C"),
        ('"options": {"A": "x", "B": null}', "not A, B, C"),
        ('"answer": ["warfarin", "coumadin"]', "answer is no text"),
    ],
)
def test_options_with_a_gap_and_several_answers_are_refused(more: str, why: str) -> None:
    with pytest.raises(BadQuestion, match=why):
        parse_labeled(f'{{"question": "Which?", {more}}}', "f")
