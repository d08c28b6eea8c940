"""Writes the page's names of built-in sources from their one table (`make page` runs it)."""

from __future__ import annotations

import json
from pathlib import Path

from osler.sources.catalogue import BUILT_IN

TARGET = Path(__file__).parents[1] / "web" / "src" / "sources.ts"


def render_sources() -> str:
    """The TypeScript module with every source's label in both languages."""
    rows = [
        f"  {one.name}: {{ en: {json.dumps(one.label['en'])},"
        f" zh: {json.dumps(one.label['zh'], ensure_ascii=False)} }},"
        for one in BUILT_IN
    ]
    head = "// Written by scripts/page_sources.py from osler.sources.catalogue."
    kind = "Record<string, { en: string; zh: string }>"
    return "\n".join([head, f"export const SOURCES: {kind} = {{", *rows, "};", ""])


if __name__ == "__main__":
    TARGET.write_text(render_sources(), encoding="utf-8")
