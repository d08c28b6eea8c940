"""What the README and the other documents name is there; `tests/journeys` runs the README."""

import re
from pathlib import Path
from typing import Any

import click
import typer.main

from osler.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_make_commands_are_targets() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"^make (\w+)", README, re.MULTILINE))
    assert named == {"ask", "test"}
    assert named <= targets


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


def test_every_command_that_messages_and_documents_name_exists() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "packages").rglob("*.py")]
    named = {
        (page.name, words)
        for page in pages
        for words in re.findall(r"`osler ([a-z][a-z -]*)[` ]", page.read_text(encoding="utf-8"))
    }
    root = typer.main.get_command(app)
    assert len(named) > 100
    assert [(page, words) for page, words in named if _lost(root, words.split())] == []


def _lost(command: Any, words: list[str]) -> str:
    """The first of the words that is no command of the one before it, "" where all are."""
    while words and not words[0].startswith("-") and hasattr(command, "get_command"):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return words[0]
        command, words = found, words[1:]
    return ""
