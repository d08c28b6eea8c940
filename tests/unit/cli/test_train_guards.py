"""What is measured on is not trained on, where training data are made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler_lab.cli.train import seconds_a_question


@pytest.fixture
def published(folder: Path) -> Path:
    path = folder / "data" / "medqa_us" / "phrases_no_exclude_test.jsonl"
    path.parent.mkdir(parents=True)
    row = {"question": "What helps?", "options": {"A": "rest", "B": "salt"}, "answer_idx": "A"}
    path.write_text(json.dumps(row), encoding="utf-8")
    (path.parent / "mirage_ids.txt").write_text("0001", encoding="utf-8")
    return path


@pytest.mark.parametrize("verb", ["explore", "thinker-data"])
def test_no_training_data_are_made_of_a_test_split(
    osler: Any, folder: Path, published: Path, verb: str
) -> None:
    words = ("--log-dir", "log", "--tasks", "medqa-us", "--data", "data")
    done = osler("train", verb, *words)
    assert done.exit_code == 3, done.stderr
    assert "medqa-us is a test split" in done.stderr
    assert "name its train split" in done.stderr
    assert not (folder / "log").exists()


def test_seconds_in_the_model_and_in_searches_are_told_a_question() -> None:
    told = seconds_a_question(4, inference_s=240.4, search_s=28.4)
    assert told == {"inference_s_a_question": 60.1, "search_s_a_question": 7.1}
    assert seconds_a_question(0, inference_s=0.0) == {}
