"""Every command and every line of code in the README runs as it stands there."""

import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SAMPLE = Path(str(files("osler.sample")))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def run(words: list[str], folder: Path) -> str:
    done = subprocess.run(  # noqa: S603
        words,
        cwd=folder,
        env={**os.environ, "OSLER__HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.usefixtures("home")
def test_the_commands_run_in_order_and_then_the_python(tmp_path: Path) -> None:
    """One test, so that the Python finds the knowledge base that the commands have built."""
    (tmp_path / "guidelines").mkdir()
    texts = (SAMPLE / "guideline" / "guidelines.jsonl").read_bytes()
    (tmp_path / "guidelines" / "of_the_ward.jsonl").write_bytes(texts)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("osler ")]
    assert len(commands) >= 5
    for line in commands:
        run([sys.executable, "-m", *shlex.split(line)], tmp_path)
    (code,) = blocks("python")
    shown = run([sys.executable, "-c", code], tmp_path)
    assert "guideline:" in shown
