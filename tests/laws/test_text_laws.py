"""Laws of text: they hold for any string, sensible or not."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from osler.text import clean_text, language_of, make_slug, one_line, split_sentences, split_words

anything = st.text(st.characters(categories=None), max_size=200) | st.lists(
    st.sampled_from(
        [
            "Dr",
            ".",
            " ",
            "。",
            "e.g",
            "1",
            "\n",
            "A",
            "b",
            "？",
            "”",
            ")",
            "[3]",
            "病",
            "\u200b",
            "\r",
        ]
    ),
    max_size=80,
).map("".join)


@given(anything)
def test_sentences_are_in_order_and_do_not_overlap(text: str) -> None:
    place = 0
    for start, end in split_sentences(text):
        assert place <= start < end <= len(text)
        place = end


@given(anything)
def test_sentences_hold_every_visible_character(text: str) -> None:
    kept = "".join("".join(text[start:end].split()) for start, end in split_sentences(text))

    assert kept == "".join(text.split())


@given(anything)
def test_a_sentence_has_no_white_space_around_it(text: str) -> None:
    for start, end in split_sentences(text):
        assert text[start:end] == text[start:end].strip()


@given(anything)
def test_words_never_fails_and_gives_no_empty_word(text: str) -> None:
    assert all(word and not word.isspace() for word in split_words(text))


@given(anything)
def test_words_do_not_depend_on_letter_case(text: str) -> None:
    ascii_only = "".join(char for char in text if char.isascii())

    assert split_words(ascii_only.upper()) == split_words(ascii_only.lower())


@given(anything)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean_text(clean_text(text)) == clean_text(text)
    assert one_line(one_line(text)) == one_line(text)


@given(anything)
def test_cleaned_text_can_be_stored(text: str) -> None:
    clean_text(text).encode("utf-8")
    assert "\0" not in clean_text(text)
    assert "\n\n\n" not in clean_text(text)


@given(anything)
def test_a_slug_is_never_empty_and_holds_only_what_it_may(text: str) -> None:
    made = make_slug(text)

    assert re.fullmatch(r"[\w.\-]{1,100}", made)
    assert make_slug(made) == made


@given(anything)
def test_every_text_has_a_language(text: str) -> None:
    assert language_of(text) in {"en", "zh"}
