"""Pairs of neighbouring words: a name that is there whole, not in two sentences."""

import pytest

from osler.retrieve.naming import share_of_pairs


@pytest.mark.parametrize(
    ("question", "has", "lacks"),
    [
        ("What is (are) Vaginal Cancer ?", "Vaginal cancers are rare.", "Vaginal signs. Cancer."),
        ("Is Spastic paraplegia 2 inherited?", "Spastic paraplegia 2", "Spastic paraplegia 11"),
        ("What is Carpenter syndrome?", "Carpenter\nsyndrome", "Miles-Carpenter retardation"),
    ],
)
def test_the_name_counts_where_its_words_stand_together(
    question: str, has: str, lacks: str
) -> None:
    whole, part = share_of_pairs(question, [has, lacks])
    assert whole == 1
    assert part is not None
    assert part < 1


@pytest.mark.parametrize("question", ["What is gout?", "", "为什么", "Is it the one?"])
def test_a_question_without_pairs_measures_nothing(question: str) -> None:
    assert share_of_pairs(question, ["gout", ""]) == [None, None]


def test_no_text_has_no_share() -> None:
    assert share_of_pairs("What is Carpenter syndrome?", []) == []
    assert share_of_pairs("What is Carpenter syndrome?", [""]) == [0.0]
