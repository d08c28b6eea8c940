"""Words, sentences and identifiers: worked by hand, English and Chinese."""

from __future__ import annotations

import pytest
from cpu_time import cpu_seconds

from osler.text import (
    clean_text,
    is_cjk,
    join_all_surrogates,
    join_surrogates,
    language_of,
    make_slug,
    one_line,
    split_sentences,
    split_words,
)


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rose. It fell.", ["It rose.", "It fell."]),
        ("Give 1.5 mg daily. Stop at 2.", ["Give 1.5 mg daily.", "Stop at 2."]),
        ("Use a diuretic, e.g. a thiazide.", ["Use a diuretic, e.g. a thiazide."]),
        ("Drug A vs. Drug B was tried.", ["Drug A vs. Drug B was tried."]),
        ("Dr. Osler came. He left.", ["Dr. Osler came.", "He left."]),
        ("William J. Osler wrote it.", ["William J. Osler wrote it."]),
        ("It is hepatitis B. The liver heals.", ["It is hepatitis B.", "The liver heals."]),
        ("The pt. Smith of approx. 50 years.", ["The pt. Smith of approx. 50 years."]),
        ("Pain, fever, etc. The rest is rare.", ["Pain, fever, etc.", "The rest is rare."]),
        ("As Smith et al. Showed it.", ["As Smith et al. Showed it."]),
        (
            "See no. 5 there. He said no. It ended.",
            ["See no. 5 there.", "He said no.", "It ended."],
        ),
        ("1. Rest the leg. 2. Cool it.", ["1. Rest the leg.", "2. Cool it."]),
        ("It fell. mRNA rose. p53 did not.", ["It fell.", "mRNA rose.", "p53 did not."]),
        ('"It hurts." She left.', ['"It hurts."', "She left."]),
        ("It works.[3,4] It lasts.", ["It works.[3,4]", "It lasts."]),
        ("Is it safe? Yes! Good.", ["Is it safe?", "Yes!", "Good."]),
        ("Wait ... and see.", ["Wait ... and see."]),
        ("Heading\nBody text.", ["Heading", "Body text."]),
        (
            "患者发热。体温38.5℃；好转了吗？是！",
            ["患者发热。", "体温38.5℃；", "好转了吗？", "是！"],
        ),
        ("他说：“好了。”然后走了。", ["他说：“好了。”", "然后走了。"]),
        ("血压升高．应复查．", ["血压升高．", "应复查．"]),
        ("服用阿司匹林 100 mg. 复查。", ["服用阿司匹林 100 mg.", "复查。"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert split(text) == expected


@pytest.mark.parametrize("piece", [".", "A. "])
def test_sentence_splitting_of_a_page_of_dots_is_linear(piece: str) -> None:
    """50 times the page; 2,500 times the work, were that quadratic."""
    short, long = piece * 1_000, piece * 50_000
    assert len(split_sentences(short)) == len(split_sentences(long)) == 1
    one = cpu_seconds(lambda: split_sentences(short), tries=5)
    assert cpu_seconds(lambda: split_sentences(long)) < 400 * one


def test_words_are_lower_case_and_chinese_comes_in_ones_and_twos() -> None:
    assert split_words("CD4 1.5 糖尿病") == ["cd4", "1.5", "糖", "糖尿", "尿", "尿病", "病"]


def test_full_width_letters_and_the_two_signs_for_micro_are_one_word() -> None:
    assert split_words("ＣＴ") == ["ct"]
    assert split_words("µg") == split_words("μg")


def test_chinese_letters_within_english_are_set_apart() -> None:
    assert split_words("IgA肾病") == ["iga", "肾", "肾病", "病"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", "en"),
        ("Hypertension", "en"),
        ("高血压", "zh"),
        ("使用 ACEI 类药物治疗高血压", "zh"),
        ("The herb 黄连 is used in many recipes of the old books", "en"),
        ("αβγδ", "en"),
    ],
)
def test_the_language_is_that_of_the_letters(text: str, language: str) -> None:
    assert language_of(text) == language


def test_han_characters_are_cjk_and_their_punctuation_is_not() -> None:
    assert is_cjk("病")
    assert is_cjk("𠮷")
    assert not any(map(is_cjk, ["。", "a", "あ", "", "病人"]))


def test_invisible_characters_are_removed() -> None:
    hidden = "\u200b\u200f\u2060\ufeff\u202e\u2066\U000e0041\U000e007f\x00\x07\xad\ufe0f"

    assert clean_text(f"as{hidden}pirin") == "aspirin"


def test_line_ends_and_gaps_are_normalised() -> None:
    assert clean_text("  a \r\nb\rc\n\n\n\nd\u00a0e\t\n ") == "a\nb\nc\n\nd e"


def test_lone_surrogate_is_removed() -> None:
    assert clean_text("a\ud83db") == "ab"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("贫血 😀", "贫血 😀"),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("a\ud83d\ude00b", "a😀b"),
        ("\ud83d", "\ufffd"),
    ],
)
def test_surrogate_halves_are_joined_or_replaced(text: str, expected: str) -> None:
    assert join_surrogates(text) == expected
    assert join_surrogates(expected) == expected
    assert join_all_surrogates({text: [text, 1, None]}) == {expected: [expected, 1, None]}


def test_one_line_removes_line_breaks() -> None:
    assert one_line(" Heart\n failure\t(HF) ") == "Heart failure (HF)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DOID:10763", "DOID-10763"),
        ("糖尿病 (2型)", "糖尿病-2型"),
        ("a.b_c-d", "a.b_c-d"),
        ("../../etc/passwd", "..-..-etc-passwd"),
    ],
)
def test_a_slug_keeps_letters_digits_and_three_signs(text: str, expected: str) -> None:
    assert make_slug(text) == expected


def test_texts_that_leave_no_letter_or_are_long_stay_apart_by_a_hash() -> None:
    assert make_slug("???") != make_slug("!!!")
    assert make_slug("a" * 200) != make_slug("a" * 201)
    assert len(make_slug("a" * 200)) <= 100
    assert make_slug("..") not in {".", ".."}
