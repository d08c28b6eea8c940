"""Phrases are found as they are said: in any case, with a slip, with words between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.danger.phrases import BadPhrase, PhraseFinder, Span, Spelling, is_one_slip

SPELLING = Spelling(
    {"can not": "cant", "cannot": "cant", "an hour": "1 hour"},
    {"傷": "伤", "還": "还"},
    frozenset({"cooking"}),
)


def places(phrase: str, text: str) -> list[Span]:
    return PhraseFinder({"list": [phrase]}, SPELLING).find(text).get("list", [])


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("chest pain", "CHEST  pain!"),
        ("cant breathe", "I can't breathe"),
        ("cant breathe", "he can’t breathe"),
        ("cant breathe", "she cannot breathe"),
        ("can not breathe", "she cant breathe"),
        ("choking", "he is chokng"),
        ("choking", "he is chocking"),
        ("pain", "such a pian"),
        ("vomit*", "she vomited twice"),
        ("left/right arm", "my right arm"),
        ("chest ... hurts", "my chest really badly hurts"),
        ("for # minutes", "for 12 minutes"),
        ("for # minutes", "for ten minutes"),
        ("# hour ago", "an hour ago"),
        ("temperature 38", "temperature 38.9"),
        ("胸口...痛", "胸口这里很痛"),
        ("#片", "吃了三十片"),
        ("受伤", "他受傷了"),
        ("chest pain", "c\u200bhest pain"),
        ("ｃｈｅｓｔ pain", "chest pain"),
    ],
)
def test_a_phrase_is_found(phrase: str, text: str) -> None:
    assert places(phrase, text)


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("choking", "he is cooking"),  # a real word is meant as it stands
        ("snake", "they shake"),  # of five letters, a wrong one is another word
        ("choking", "hoking"),  # the first letter is right
        ("chest ... hurts", "my chest is fine. My knee hurts"),
        ("chest ... hurts", "my chest and my left big toe hurts"),
        ("pain", "painting"),
        ("for # minutes", "for some minutes"),
        ("胸口...痛", "胸口不舒服已经很久很久了就是会痛"),
    ],
)
def test_a_phrase_is_not_found(phrase: str, text: str) -> None:
    assert not places(phrase, text)


def test_two_chinese_characters_are_as_long_as_a_word() -> None:
    assert places("pain", "chest pain") == [Span(2, 4)]
    assert places("胸痛", "我胸痛") == [Span(1, 3)]


@pytest.mark.parametrize("phrase", ["", "  ", "... pain", "chest ...", "a*", "che$t", "ab**"])
def test_a_phrase_that_cannot_be_read_is_refused_by_its_list(phrase: str) -> None:
    with pytest.raises(BadPhrase, match="wounds: "):
        PhraseFinder({"wounds": [phrase]})


@given(st.text("abcd", min_size=2, max_size=6), st.data())
def test_a_slip_is_one_letter_less_more_other_or_two_that_changed_places(
    word: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from("abcdx"))
    slips = {
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at : at + 2][::-1] + word[at + 2 :],
    }
    for typed in slips - {word}:
        assert is_one_slip(typed, word)
        assert is_one_slip(word, typed)
    assert not is_one_slip(word, word)
    assert not is_one_slip(word, f"{word}xx")
