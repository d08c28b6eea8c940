"""Questions of the user's own, with and without their right options."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import BadQuestion
from osler.questions import read_posed

ASKED = '{"id": 7, "question": "Which?", "options": ["x", "y"], "gold": "B"}'
OPEN = '{"question": "Why?"}'


def written(folder: Path, *lines: str) -> Path:
    path = folder / "q.jsonl"
    path.write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    return path


def test_gold_stands_for_answer_and_a_byte_order_mark_is_nothing(tmp_path: Path) -> None:
    (posed,) = read_posed(written(tmp_path, ASKED))
    assert (posed.question.id, posed.gold) == ("7", "B")


def test_open_questions_are_left_out_where_answers_are_marked(tmp_path: Path) -> None:
    path = written(tmp_path, OPEN, ASKED)
    assert [posed.gold for posed in read_posed(path)] == ["", "B"]
    assert [posed.gold for posed in read_posed(path, marked=True)] == ["B"]


def test_a_wrong_letter_is_no_gold_and_is_refused_where_answers_are_marked(tmp_path: Path) -> None:
    path = written(tmp_path, ASKED.replace('"B"', '"C"'))
    assert read_posed(path)[0].gold == ""
    with pytest.raises(BadQuestion, match=r"q\.jsonl:1: the answer 'C' is not one of A, B"):
        read_posed(path, marked=True)
