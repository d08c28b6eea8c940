"""Pages whose text lies elsewhere in the repository: the examples, and documents at its root."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = {
    "contributing.md": "CONTRIBUTING.md",
    "papers/map.md": "PAPERS.md",
    "evaluation-log.md": "research/log/README.md",
    "changes.md": "CHANGELOG.md",
    **{
        f"log/{path.name}": f"research/log/{path.name}"
        for path in sorted((ROOT / "research" / "log").glob("*.md"))
        if path.name != "README.md"
    },
}
EXAMPLES = """\
# Examples

Complete programs that use Osler as a library. They are in the folder `examples` of the
repository, and tests run them.
"""
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def repository_pages() -> Iterator[tuple[str, str]]:
    """Path of each page, and its Markdown."""
    yield "tutorial/examples.md", "\n".join([EXAMPLES, *_examples()])
    for page, path in DOCUMENTS.items():
        yield page, _document(page, ROOT / path)


def _examples() -> Iterator[str]:
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        about = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
        heading = path.stem.partition("_")[2].replace("_", " ").capitalize()
        yield f"## {heading}\n\n{about}\n\n`examples/{path.name}`:\n\n```python\n{text}```\n"


def _document(page: str, source: Path) -> str:
    """The text, with links to pages of the site kept, and other files only named."""
    pages = {ROOT / path: ROOT / "docs" / page for page, path in DOCUMENTS.items()}

    def link(found: re.Match[str]) -> str:
        words, target = found.groups()
        path = target.partition("#")[0]
        if "://" in target or not path:
            return found[0]
        place = (source.parent / path).resolve()
        place = pages.get(place, place)
        if not place.is_relative_to(ROOT / "docs"):
            return f"{words} (`{path}`)"
        way = Path(os.path.relpath(place, (ROOT / "docs" / page).parent)).as_posix()
        return f"[{words}]({way}{target[len(path) :]})"

    return LINK.sub(link, source.read_text(encoding="utf-8"))
