"""What the README and the other documents name is there; `tests/journeys` runs the README."""

import re
from pathlib import Path

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
