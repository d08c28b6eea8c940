"""Every command and every line of code in the README runs as it stands there."""

import gzip
import os
import re
import shlex
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from osler.errors import ModelMissing
from osler.llm.local.weights import DEFAULTS, locate_weights

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAMPLE = Path(str(files("osler.sample")))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader's folder, with files of the names that the README uses."""
    try:
        for file in DEFAULTS:
            locate_weights(file)
    except ModelMissing as error:
        pytest.skip(f"the packaged weights are not there: {error}")
    folder = tmp_path_factory.mktemp("reader")
    guidelines = (SAMPLE / "guideline" / "guidelines.jsonl").read_bytes()
    (folder / "guidelines.jsonl").write_bytes(guidelines)
    records = (SAMPLE / "research" / "pubmed.xml").read_bytes()
    (folder / "pubmed24n0001.xml.gz").write_bytes(gzip.compress(records))
    return folder


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OSLER__HOME": str(folder / "home")}
    return subprocess.run(  # noqa: S603
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_make_commands_are_targets() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {line.split()[1] for line in COMMANDS if line.startswith("make ")}
    assert named == {"ask", "test"}
    assert named <= targets


def test_the_commands_run_in_order(folder: Path) -> None:
    commands = [line for line in COMMANDS if line.startswith("osler ")]
    assert len(commands) >= 6
    for line in commands:
        done = run([sys.executable, "-m", *shlex.split(line)], folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def test_the_python_runs(folder: Path) -> None:
    (code,) = blocks("python")
    done = run([sys.executable, "-c", code], folder)
    assert done.returncode == 0, done.stderr
    assert "guideline:" in done.stdout or "research:" in done.stdout


def test_every_file_that_the_documents_name_exists() -> None:
    documents = [ROOT / n for n in ("README.md", "PAPERS.md", "CONTRIBUTING.md")]
    documents += sorted((ROOT / "docs").rglob("*.md"))
    named = {
        (page.name, path)
        for page in documents
        for path in re.findall(
            r"`((?:src|tests|docs|benchmarks)/[\w./-]+)", page.read_text(encoding="utf-8")
        )
    }
    assert named
    assert [(page, path) for page, path in named if not (ROOT / path.split("::")[0]).exists()] == []
