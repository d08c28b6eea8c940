"""Measured cases on disk: a measuring that was stopped goes on; test questions once looked at are
left out."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from osler.retrieve.experts.answerable import PassageSigns
from osler.train.experts.answerable_job import (
    choose_threshold,
    drop_looked_at,
    fit_evidence,
    keep_letters,
)
from osler.train.experts.measured_cases import CaseFile, MeasuredCase
from osler.train.experts.searches import SearchQuestion

LETTER = "Dear doctor, my father has gout. He is old. What helps?"


def case(id: str, *, absent: bool, strength: float, text: str = "What is gout?") -> MeasuredCase:
    """One passage, whose signs are all of this strength."""
    signs = PassageSigns(strength, strength, strength, strength, strength)
    return MeasuredCase(
        id, text, "medquad", absent, (not absent,), (absent,), (signs,), {"entity gate": True}, {}
    )


def test_what_was_measured_is_read_again_and_a_cut_line_is_not(tmp_path: Path) -> None:
    file = CaseFile(tmp_path / "work" / "train.jsonl")
    assert file.read_cases() == []
    both = [case("a", absent=False, strength=0.9), case("a", absent=True, strength=0.1)]
    file.add_cases(both)
    with file.path.open("a", encoding="utf-8") as stream:
        stream.write('{"id": "b", "absent": tr')
    assert file.read_cases() == both
    asked = [SearchQuestion(id, "", "medquad", (), frozenset()) for id in ("a", "b")]
    assert [one.id for one in file.find_missing(asked)] == ["b"]
    file.add_cases(both[:1])
    assert file.read_cases() == [*both, both[0]]


def test_the_expert_learns_what_tells_gold_from_absent_and_keeps_nine_of_ten_letters() -> None:
    chance = np.random.default_rng(0)
    there = [
        case(f"q{n}", absent=False, strength=float(s))
        for n, s in enumerate(chance.uniform(0.6, 1, 40))
    ]
    absent = [
        case(f"q{n}", absent=True, strength=float(s))
        for n, s in enumerate(chance.uniform(0, 0.4, 40))
    ]
    letters = [replace(one, id=f"l{one.id}", text=LETTER) for one in there[:20]]
    model = fit_evidence([*there, *absent, *letters])
    threshold = choose_threshold(model, [*there, *absent])
    assert 0 < threshold < 1
    assert keep_letters(model, [*there, *absent, *letters]) > 0.5


def test_test_questions_that_were_looked_at_are_left_out() -> None:
    asked = [
        SearchQuestion(f"medquad:{n}", "", "medquad", (f"medquad:page {n}",), frozenset())
        for n in range(400)
    ]
    left = drop_looked_at(asked, 0)
    assert 150 < len(left) < 300
    assert drop_looked_at(asked, 0) == left
