"""Every example runs as its first lines say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTES = "# Anaemia\n\nOral iron treats iron deficiency anaemia. It is taken once a day.\n"


def run(name: str, *words: str) -> str:
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(EXAMPLES / name), *words],
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.usefixtures("home")
def test_asking_over_files_of_one_s_own(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text(NOTES, encoding="utf-8")
    said = run("01_ask.py", str(notes), "What treats iron deficiency anaemia?")
    assert "1 documents, 1 passages" in said
    assert "Oral iron treats iron deficiency anaemia." in said
    assert "notes#0: 'Oral iron" in said


@pytest.mark.usefixtures("home")
def test_a_strategy_of_one_s_own() -> None:
    said = run("02_a_strategy_of_your_own.py")
    assert said.splitlines().count("retrieval.done") == 2
    assert "[1]" in said


def test_no_example_is_left_out() -> None:
    tested = Path(__file__).read_text(encoding="utf-8")
    assert all(path.name in tested for path in EXAMPLES.glob("*.py"))
