"""The expert `label-sections`: what it learns from, and a whole training."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from train_label_sections import read_labelled, train_label_sections

from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.label_sections import HEADED, LABEL_SECTIONS
from osler_lab.testing.scripted import HashingEncoder


def test_two_hands_ask_for_every_kind_of_section() -> None:
    asked = read_labelled()
    assert len({one.text for one in asked}) == len(asked)
    counts = Counter((one.hand, one.kind) for one in asked)
    assert {kind for _, kind in counts} == HEADED.keys()
    assert min(counts[hand, kind] for hand in "ab" for kind in HEADED) >= 20


def test_each_hand_measures_what_the_other_taught(tmp_path: Path) -> None:
    card = train_label_sections(tmp_path / LABEL_SECTIONS, HashingEncoder())
    assert open_expert(LABEL_SECTIONS, tmp_path / LABEL_SECTIONS).card == card
    assert [one.on for one in card.figures] == ["hand a", "hand b"]
    assert all(one.gain is not None and one.gain.low > 0 for one in card.figures)
