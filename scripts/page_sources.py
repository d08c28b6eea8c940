"""Writes what the page takes from the repository: names of built-in sources, the notice, and the
published scoreboard (`make page` runs it)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from osler.sources.catalogue import BUILT_IN
from osler_serve.replies import NOTICE

REPOSITORY = Path(__file__).parents[1]
SOURCES = REPOSITORY / "web" / "src" / "sources.ts"
SCOREBOARD = REPOSITORY / "docs" / "scoreboard.md"
BOARD = REPOSITORY / "web" / "public" / "assets"

_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")


def render_sources() -> str:
    """The TypeScript module with every source's label in both languages."""
    rows = [
        f"  {one.name}: {{ en: {json.dumps(one.label['en'])},"
        f" zh: {json.dumps(one.label['zh'], ensure_ascii=False)} }},"
        for one in BUILT_IN
    ]
    head = "// Written by scripts/page_sources.py from the catalogue of sources and the replies."
    notice = f"export const NOTICE = {json.dumps(NOTICE)};"
    kind = "Record<string, { en: string; zh: string }>"
    return "\n".join([head, f"export const SOURCES: {kind} = {{", *rows, "};", notice, ""])


def read_blocks(page: str) -> Iterator[dict[str, Any]]:
    """The headings, paragraphs and tables of a page of `osler scoreboard`."""
    for block in re.split(r"\n\s*\n", page):
        text = block.strip()
        if text.startswith("|"):
            yield _read_pipes(text)
        elif text.startswith("#"):
            hashes, _, words = text.partition(" ")
            yield {"heading": _plain(words), "level": len(hashes)}
        elif text.startswith("- "):
            yield {"list": [_plain(line.removeprefix("- ")) for line in text.splitlines()]}
        elif text:
            yield {"text": _plain(text)}


def _read_pipes(text: str) -> dict[str, Any]:
    lines = [line.strip("| ").split(" | ") for line in text.splitlines()]
    cells = [[_plain(cell) for cell in line] for line in lines[2:]]
    return {"head": [_plain(cell) for cell in lines[0]], "rows": cells}


def _plain(text: str) -> str:
    """Without Markdown's marks."""
    return " ".join(re.sub(r"(?<!\\)[`*]|\\(?=\*)", "", _LINK.sub(r"\1", text)).split())


if __name__ == "__main__":
    SOURCES.write_text(render_sources(), encoding="utf-8")
    BOARD.mkdir(parents=True, exist_ok=True)
    blocks = list(read_blocks(SCOREBOARD.read_text(encoding="utf-8")))
    (BOARD / "scoreboard.json").write_text(json.dumps(blocks, ensure_ascii=False), encoding="utf-8")
