"""Questions to train on, and the part that each is in."""

from pathlib import Path

import pytest

from osler.errors import BadQuestion
from osler.types import Question
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.train.spo.explore import TrainingCase, of_part, part_of, read_cases

LINES = """\
{"question": "Which drug is given first?", "options": ["adrenaline", "aspirin"], "answer": "A"}
{"id": "q2", "task": "t", "question": "首选什么药物？", "answer": "肾上腺素", "documents": ["d1"]}
"""


def test_a_file_of_cases_reads(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(LINES, encoding="utf-8")
    first, second = read_cases(path)
    assert (first.gold, first.sample.kind, first.documents) == ("A. adrenaline", "choice", ())
    assert (second.key, second.gold, second.documents) == ("t/q2", "肾上腺素", ("d1",))
    assert second.question.language == "zh"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "has no question"),
        ('{"answer": "A"}', "cases.jsonl:1: no question"),
        ("[1]", "cases.jsonl:1: no question"),
        ('{"question": "Which?", "options": ["a", "b"], "answer": "C"}', "'C' is not one of A, B"),
        ('{"id": "1", "question": "a?"}\n{"id": "1", "question": "b?"}', "the id of another"),
    ],
)
def test_a_broken_file_is_told(tmp_path: Path, lines: str, told: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(BadQuestion, match=told):
        read_cases(path)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadQuestion, match="cannot be read"):
        read_cases(tmp_path / "none.jsonl")


def test_the_same_words_are_in_one_part_whatever_the_set_and_the_marks() -> None:
    for n in range(50):
        one = Question("a", f"What is number {n} for?")
        other = Question("b", f"what is  NUMBER {n} for")
        assert part_of(one) == part_of(other)


def test_the_parts_have_about_their_shares_and_depend_on_the_seed() -> None:
    questions = [Question(str(n), f"question {n}") for n in range(1000)]
    held = [part_of(q) == "held-out" for q in questions]
    assert 150 < sum(held) < 250
    assert held != [part_of(q, seed=1) == "held-out" for q in questions]


def test_all_is_every_case() -> None:
    cases = [TrainingCase(Sample("t", "long", Question(str(n), f"q{n}"), Gold())) for n in range(9)]
    split = [of_part(cases, part) for part in ("train", "held-out")]
    assert sorted(c.key for part in split for c in part) == [c.key for c in of_part(cases, "all")]
