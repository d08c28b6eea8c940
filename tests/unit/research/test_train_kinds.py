"""The expert `kinds`: what it learns from, and a whole training."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sklearn.linear_model")

from train_kinds import read_kind_sentences, train_kinds

from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.kinds import KINDS
from osler_lab.testing.scripted import HashingEncoder


def test_no_page_of_the_test_part_is_learnt_from(shared_data: Path) -> None:
    learnt, test = (read_kind_sentences(shared_data, part) for part in ("train", "test"))
    assert learnt == read_kind_sentences(shared_data, "train")
    assert learnt != read_kind_sentences(shared_data, "train", seed=1)
    kinds = {one.kind for one in learnt}
    assert {"treatment", "symptoms", "diagnosis", "causes", "prevention"} <= kinds
    # Registers say the same of many diseases.
    shared = {one.text for one in learnt} & {one.text for one in test}
    assert len(shared) < len(test) / 20


def test_it_is_trained_and_measured(shared_data: Path, tmp_path: Path) -> None:
    card = train_kinds(shared_data, tmp_path / KINDS, {"en": HashingEncoder()})
    assert open_expert(KINDS, tmp_path / KINDS).card == card
    (figure,) = card.figures
    assert figure.gain is not None
    assert figure.gain.low > 0
    assert card.features == tuple(sorted(card.features))
