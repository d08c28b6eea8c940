"""The plain questions: well formed, and no subject in both halves."""

import json
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "plain"
FILES = sorted(FOLDER.glob("*.jsonl"))
KINDS = {
    *("dose", "first-aid", "interaction", "condition", "comparison", "stop", "follow-up", "cause"),
    *("treatment", "diagnosis", "definition", "prevention", "symptom", "other"),
}


def rows_of(path: Path) -> list[dict]:  # type: ignore[type-arg]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_there_are_at_least_four_hundred_in_two_languages() -> None:
    rows = [row for path in FILES for row in rows_of(path)]
    assert len(rows) >= 400
    assert {row["language"] for row in rows} == {"en", "zh"}
    assert len({row["id"] for row in rows}) == len(rows)
    assert sum(not row["answerable"] for row in rows) >= len(rows) / 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_has_a_key_that_its_own_gold_sentences_match(path: Path) -> None:
    for row in rows_of(path):
        assert row["kind"] in KINDS, row["id"]
        assert bool(row.get("gold")) == bool(row["answerable"]), row["id"]
        for gold in row.get("gold") or ():
            for group in row["key"]:
                assert any(re.search(one, gold["sentence"], re.IGNORECASE) for one in group)


def subjects_of(half: str, language: str) -> set[str]:
    rows = [row for path in FOLDER.glob(f"*-{half}.jsonl") for row in rows_of(path)]
    return {row["subject"].casefold() for row in rows if row["language"] == language}


@pytest.mark.parametrize("half", ["seen", "test"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_subject_that_is_tuned_on_is_reported_on(half: str, language: str) -> None:
    reported = subjects_of(half, language)
    assert reported or half == "test"  # all that were asked are seen, until new ones are written
    assert not reported & subjects_of("dev", language)
