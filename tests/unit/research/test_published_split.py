"""The split in research/experts holds what is tested on apart; needs the real data."""

import hashlib
from pathlib import Path

import pytest
from expert_sets import SPLIT, PairQuestion, judged_pages, read_pair_questions
from natural.published import DataSplit, read_split

from osler.retrieve.experts.cards import packaged_experts


@pytest.fixture(scope="module")
def split() -> DataSplit:
    return read_split(SPLIT)


@pytest.fixture(scope="module")
def questions(shared_data: Path) -> list[PairQuestion]:
    return read_pair_questions(shared_data)


def test_it_is_the_split_that_the_packaged_experts_were_trained_by() -> None:
    sha256 = hashlib.sha256(SPLIT.read_bytes()).hexdigest()
    assert {one.card.split for one in packaged_experts()} <= {sha256}


def test_every_question_is_in_one_part(split: DataSplit, questions: list[PairQuestion]) -> None:
    """Raises for a question whose documents are in another part."""
    assert {split.part_of(one) for one in questions} == {"train", "dev", "test"}


def test_what_must_be_tested_on_is(split: DataSplit, questions: list[PairQuestion]) -> None:
    assert {split.part_of(one) for one in questions if one.held_out} == {"test"}


def test_no_document_of_a_test_question_is_trained_on(
    split: DataSplit, questions: list[PairQuestion]
) -> None:
    test = split.choose_items(questions, "test")
    seen = [one for part in ("train", "dev") for one in split.choose_items(questions, part)]
    assert len(test) > 2_000
    assert not {d for one in test for d in one.documents} & {d for q in seen for d in q.documents}
    assert not {one.text for one in test if one.source != "medquad"} & {q.text for q in seen}


def test_no_answer_of_a_test_question_is_a_right_text_in_training(
    split: DataSplit, questions: list[PairQuestion]
) -> None:
    """A few answers stand on several pages word for word; those that do are told by their count."""
    test = {text for one in split.choose_items(questions, "test") for text in one.right}
    seen = {text for one in split.choose_items(questions, "train") for text in one.right}
    assert len(test & seen) <= 0.01 * len(test)


def test_pages_that_liveqa_s_judges_read_are_not_trained_on(
    split: DataSplit, questions: list[PairQuestion], shared_data: Path
) -> None:
    judged = judged_pages(shared_data)
    pages = {
        one.id.partition(":")[2].rpartition("_")[0]
        for one in split.choose_items(questions, "train")
    }
    assert judged
    assert not judged & pages
