"""What a data set says in a sentence around its label."""

import time

import pytest

from osler.text import split_sentences
from osler_lab.evaluate.datasets.clinical import _stated_label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The diagnosis result is Asthma.", "asthma"),
        ("  the answer is  True . ", "true"),
        ("Asthma", "asthma"),
        ("", ""),
        ("one\ntwo", ""),
        ("The answer is ", ""),
    ],
)
def test_the_label_stands_without_its_sentence(text: str, label: str) -> None:
    assert _stated_label(text) == label


@pytest.mark.parametrize("text", ["the answer is" + " " * 50_000 + "x\n", " ." * 50_000 + "\n\nx"])
def test_a_hostile_label_takes_no_time(text: str) -> None:
    began = time.process_time()
    _stated_label(text)
    assert time.process_time() - began < 0.5


def test_a_page_without_a_sentence_end_takes_linear_time() -> None:
    took = []
    for size in (20_000, 160_000):
        began = time.process_time()
        split_sentences("A. " * size)
        took.append(time.process_time() - began)
    assert took[1] < 24 * took[0] + 0.2  # quadratic would be 64 times
