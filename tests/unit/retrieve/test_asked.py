"""What is asked in what was typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter
from osler.retrieve.asked import (
    AskedQuestion,
    BaseVocabulary,
    QuestionReader,
    asked_vector,
    asks_something,
    strip_courtesies,
)
from osler.retrieve.hybrid import question_reader
from osler.retrieve.lexicon import Lexicon
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder

READER = QuestionReader()
TYPED = st.text(max_size=300) | st.lists(
    st.sampled_from(
        [
            "Hello",
            "hi",
            "dear",
            "doctor",
            "thanks",
            "thank",
            "you",
            "please",
            "help",
            "what",
            "is",
            "my",
            "heart",
            "attack",
            "Advil",
            "the",
            "pill",
            "eGFR",
            "pneumonnia",
            "?",
            ".",
            ",",
            "!",
            "您好",
            "请问",
            "谢谢",
            "二甲双胍",
            "高血压",
            "怎么治疗",
            "Tylenol's",
            "(INR)",
            "30",
            "mg",
        ]
    ),
    max_size=90,
).map(" ".join)
"""Anything, and what people type."""


def vocabulary(*words: str) -> BaseVocabulary:
    """Of a knowledge base that has these words, which are as rare as one another."""

    def rarity(asked: Sequence[str]) -> Mapping[str, float]:
        return {word: 2.0 if word in words else 9.0 for word in asked}

    return BaseVocabulary(rarity, lambda word: [one for one in words if one[:2] == word[:2]])


# Courtesies


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Hello! What is gout?", "What is gout?"),
        ("Hi there, what is gout? Thanks in advance.", "what is gout?"),
        ("Good morning doctor, I hope you are well. what is gout?", "what is gout?"),
        ("Dear doctor, what is gout? Thank you very much!", "what is gout?"),
        ("What is gout? Ta", "What is gout?"),
        ("Good morning. Hello. What is gout? Many thanks. Cheers", "What is gout?"),
        ("您好，请问痛风怎么治疗？谢谢医生", "痛风怎么治疗？"),
        ("医生您好！痛风怎么治疗？", "痛风怎么治疗？"),
        ("what   is\n gout", "what is gout"),
    ],
)
def test_a_greeting_and_thanks_are_no_part_of_the_question(written: str, asked: str) -> None:
    assert strip_courtesies(written) == asked


@pytest.mark.parametrize(
    "written",
    [
        "Hello",
        "Hello!",
        "Thanks",
        "? ?",
        "thank you",
        "您好",
        "谢谢",
        "12345",
        "!",
        "Hello, good morning!",
        "Hi there, how are you today?",
        "good night doctor, thanks",
    ],
)
def test_what_has_no_question_in_it_is_read_as_it_stands(written: str) -> None:
    asked = READER.read(written)
    assert (asked.written, asked.text) == (written, written)
    assert (asked.names, asked.expanded, asked.mended) == ((), "", ())


@pytest.mark.parametrize(
    "written",
    [
        "Hi-dose aspirin in stroke?",
        "Highest dose of metformin?",
        "Does taking thanks to aspirin help in stroke?",
        "Deafness after gentamicin?",
        "What helps a patient who says cheers too often in dementia",
        "treatment of TA",
    ],
)
def test_a_word_that_begins_like_a_courtesy_stays(written: str) -> None:
    assert strip_courtesies(written) == written


# Letters

LETTER = (
    "Dear doctor, my mother is 78 years old and lives with us in the country, where she keeps hens "
    "and still works in the garden on most days of the year. She has had high blood pressure for "
    "many years and takes ramipril every morning with her tea. Last week she began to cough, "
    "mostly at night, and it does not stop. Can ramipril cause a cough? I would like to know "
    "whether she may stop it. She also likes to read in the evening. Thank you for your help."
)


def test_a_letter_is_read_whole_but_for_its_courtesies() -> None:
    """No choice of its sentences came nearer to the question that an expert wrote for it."""
    asked = strip_courtesies(LETTER)
    assert asked.startswith("my mother is 78 years old")
    assert "hens" in asked
    assert "Thank you" not in asked


def test_a_long_text_that_asks_nothing_is_read_whole() -> None:
    report = "Sodium 138 mmol/L. Potassium 6.1 mmol/L. Creatinine 188. " * 12
    assert strip_courtesies(report) == report.strip()


# Spelling


def test_a_word_that_the_base_lacks_is_mended_to_the_nearest_and_told() -> None:
    asked = QuestionReader(vocabulary("pneumonia", "pneumothorax")).read(
        "How is pneumonnia treated?"
    )
    assert asked.text == "How is pneumonia treated?"
    assert asked.mended == (("pneumonnia", "pneumonia"),)
    assert asked.written == "How is pneumonnia treated?"


def test_a_word_that_the_base_has_got_since_is_no_longer_mended() -> None:
    words = ["quorvalin"]
    known = BaseVocabulary(
        lambda asked: {word: 2.0 if word in words else 9.0 for word in asked}, lambda _: words
    )
    reader, question = QuestionReader(known), "What does quorvalan do?"
    assert reader.read(question).mended
    words.append("quorvalan")
    assert not reader.read(question).mended


def test_a_word_that_the_base_has_or_that_is_near_to_none_stays() -> None:
    reader = QuestionReader(vocabulary("pneumonia", "pneumonias"))
    for question in ("How is pneumonia treated?", "How is zorbanexil dosed?"):
        assert reader.read(question).mended == ()


def test_no_word_is_mended_to_one_that_stands_in_no_source_searched(tmp_path: Path) -> None:
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.put([Passage("book:a#0", "Iron is given.", "book", "Iron")])
        kb.put([Passage("emr:1#0", "Mr Kowalczewski has jaundice.", "emr", "Record")])
        asked = "What has Kowalczevski?"
        named = question_reader(kb, PassageFilter(("emr",))).read(asked)
        assert named.mended == (("Kowalczevski", "kowalczewski"),)
        assert question_reader(kb).read(asked).mended == ()


@pytest.mark.parametrize(
    ("asked", "has"),
    [
        ("valganciclovir", "valaciclovir"),
        ("quinine", "quinidine"),
        ("prednisone", "prednisones"),
        ("Tylenol", "tylenols"),
    ],
)
def test_the_name_of_a_drug_is_never_mended_to_another_s(asked: str, has: str) -> None:
    read = QuestionReader(vocabulary(has)).read(f"What is the dose of {asked}?")
    assert read.mended == ()
    assert asked in read.text


@pytest.mark.parametrize("word", ["little", "doctor", "grandma", "don't", "cannot"])
def test_common_and_short_words_are_never_mended(word: str) -> None:
    near = word[:-1] + "x"
    assert QuestionReader(vocabulary(near)).read(f"Is it {word} now?").mended == ()


def test_a_name_with_letters_left_out_between_its_ends_is_mended() -> None:
    """Else "testerone injection" is answered from another drug's label."""
    asked = QuestionReader().read("what drugs contain in testerone injection")
    assert asked.mended == (("testerone", "testosterone"),)
    assert QuestionReader().read("Is it sertrine or testones?").mended == ()


def test_chinese_is_not_mended() -> None:
    reader = QuestionReader(vocabulary("metformin"))
    assert reader.read("metformim的常见不良反应和禁忌是什么？").mended == ()


# Other names


@pytest.mark.parametrize(
    ("written", "expanded"),
    [
        ("Can I take Advil?", "Can I take Advil (ibuprofen, nsaid)?"),
        ("after a heart attack", "after a heart attack (myocardial infarction)"),
        (
            "Does it affect the pill?",
            "Does it affect the pill (combined oral contraceptive, oral contraceptive)?",
        ),
        ("What is Tylenol's dose?", "What is Tylenol's (paracetamol) dose?"),
    ],
)
def test_names_get_their_other_names_behind_them(written: str, expanded: str) -> None:
    asked = READER.read(written)
    assert asked.expanded == asked.full == expanded
    assert asked.text == written
    assert all(name in expanded for name in asked.names)


def test_a_question_without_names_has_itself_alone() -> None:
    asked = READER.read("Which one is better?")
    assert (asked.names, asked.expanded, asked.full) == ((), "", "Which one is better?")


def test_a_chinese_name_gets_its_other_chinese_names() -> None:
    asked = READER.read("对乙酰氨基酚一天最多吃多少？")
    assert "扑热息痛" in asked.names
    assert asked.expanded.startswith("对乙酰氨基酚 (")
    assert all(any("\u4e00" <= char <= "\u9fff" for char in name) for name in asked.names)


def test_a_lexicon_of_one_s_own_is_read() -> None:
    own = Lexicon({"grandma": ("old woman",)}, {}, frozenset(), 1)
    assert QuestionReader(lexicon=own).read("my grandma").expanded == "my grandma (old woman)"


# Vectors


def test_the_vector_lies_between_those_of_both_wordings() -> None:
    encoder = HashingEncoder()
    asked = READER.read("Can I take Advil?")
    (found,) = asked_vector(encoder, asked)
    plain, wide = encoder.encode([asked.text, asked.expanded], kind="query")
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-5)
    assert found @ plain == pytest.approx(found @ wide, abs=1e-5)
    (alone,) = asked_vector(encoder, AskedQuestion("tea", "tea"))
    np.testing.assert_allclose(alone, encoder.encode(["tea"], kind="query")[0])


# Laws


@given(TYPED)
def test_reading_never_raises_and_never_gives_nothing_for_something(written: str) -> None:
    asked = READER.read(written)
    assert asked.written == written
    assert bool(asked.text) == bool(written.split())
    assert asked.full in (asked.text, asked.expanded)


@given(TYPED)
def test_what_was_read_once_is_not_read_otherwise_again(written: str) -> None:
    once = strip_courtesies(written)
    assume(len(once.split()) < 60)
    assert strip_courtesies(once) == once


@given(TYPED)
def test_other_names_only_add_to_the_text(written: str) -> None:
    asked = READER.read(written)
    rest = iter(asked.full)
    assert all(char in rest for char in asked.text), "the text's characters in their order"
    assert bool(asked.expanded) == bool(asked.names)


@given(TYPED)
def test_reading_is_the_same_each_time(written: str) -> None:
    assert READER.read(written) == QuestionReader().read(written)


@given(TYPED, st.lists(st.text("abcdefghij", min_size=6, max_size=9), max_size=5))
def test_mending_only_changes_the_words_that_it_tells_of(written: str, words: list[str]) -> None:
    asked = QuestionReader(vocabulary(*words)).read(written)
    plain = strip_courtesies(written)
    if not asked.mended:
        assert asked.text == plain
    for typed, meant in asked.mended:
        assert typed in plain
        assert meant in asked.text


@pytest.mark.parametrize(
    ("typed", "asks"),
    [
        *(
            (one, False)
            for one in (
                "Thanks",
                "hello doctor",
                "hi, thank you so much doctor",
                "? ?",
                "123 45",
                "谢谢医生",
                "您好",
            )
        ),
        *((one, True) for one in ("warfarin", "Good morning. What is gout?", "痛风", "K+ 6.8")),
    ],
)
def test_courtesies_marks_and_figures_ask_nothing(typed: str, asks: bool) -> None:
    assert asks_something(typed) is asks


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("阿司匹林 and warfarin 能一起吃吗", "华法林"),
        ("Can I take warfarin together with 阿司匹林?", "aspirin"),
    ],
)
def test_a_name_in_the_other_language_gets_its_names_in_the_question_s(
    written: str, name: str
) -> None:
    asked = READER.read(written)
    assert name in asked.names
    assert name in asked.expanded
