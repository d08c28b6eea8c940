"""The packaged rules on the labelled questions, and how long they take on any text."""

from __future__ import annotations

import time
from collections import Counter

import danger
import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.danger.rules import packaged_rules

CASES = list(danger.read_cases(("development", "held_out", "third", "fourth")))
SEEN = {case.text: danger.seen_by_rules(case.text) for case in CASES}


def test_there_are_a_hundred_of_each_kind_half_of_them_chinese_and_no_question_twice() -> None:
    count = Counter((case.label, case.language) for case in CASES)
    assert min(count[label, language] for label in danger.KINDS for language in ("en", "zh")) >= 50
    assert len(SEEN) == len(CASES) >= 300


def test_what_was_written_after_the_rules_stands_apart_from_what_they_were_made_by() -> None:
    parts = {part: {c.text for c in danger.read_cases([part])} for part in danger.PARTS}
    assert all(parts.values())
    assert sum(map(len, parts.values())) == len(set().union(*parts.values()))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("label", danger.KINDS)
def test_no_question_that_was_right_is_lost(label: str, language: str) -> None:
    own = [case for case in CASES if (case.label, case.language) == (label, language)]
    wrong = [case.text for case in own if not danger.is_right(case, SEEN[case.text])]
    assert len(wrong) <= (0.05 if label == "none" else 0.02) * len(own), wrong


WORDS = st.sampled_from(
    ["chest", "pain", "cant", "breathe", "胸", "痛", "死", "我", "kill", "my", ".", "1", "pills"]
)


@pytest.mark.parametrize(
    "hostile", ["胸", "死", "cant ", "my ", "a", "1 ", ".", "chest chest pain "]
)
def test_a_long_hostile_text_takes_time_in_line_with_its_length(hostile: str) -> None:
    def seconds(length: int) -> float:
        text = (hostile * length)[:length]
        began = time.process_time()
        packaged_rules().match(text)
        return time.process_time() - began

    seconds(1_000)
    short, long = min(seconds(5_000) for _ in range(3)), min(seconds(40_000) for _ in range(2))
    assert long < 24 * short + 0.05  # eight times the text; three times that for a loaded machine


@given(st.lists(WORDS, max_size=400).map(" ".join))
def test_any_mix_of_the_rules_own_words_is_read_the_same_twice(text: str) -> None:
    assert packaged_rules().match(text) == packaged_rules().match(text)


@given(st.text(max_size=500))
def test_no_text_is_refused(text: str) -> None:
    packaged_rules().match(text)
