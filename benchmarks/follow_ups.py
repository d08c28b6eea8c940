"""Whether the second question of a conversation finds its passage, with and without rewriting.

Thirty dialogues of ours over the sample texts (`tests/fixtures/dialogues`), written before the
rule. Needs the sample knowledge base: `osler kb build --sample`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from osler.answer.follow_up import rewrite_follow_up
from osler.app.config import load
from osler.app.wiring.resource_cache import ResourceCache

DIALOGUES = Path(__file__).parents[1] / "tests" / "fixtures" / "dialogues" / "follow_ups.jsonl"
DEPTH = 5


async def main() -> None:
    settings = load({}, cwd=Path.cwd(), env=os.environ).settings
    cache = ResourceCache(settings)
    counts: dict[tuple[str, str, int], int] = {}
    for line in DIALOGUES.read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        asked: list[str] = []
        for text in dialogue["earlier"]:
            asked.append(rewrite_follow_up(text, asked).text)
        alone = rewrite_follow_up(dialogue["last"], asked).text
        ways = [("as asked", dialogue["last"]), ("rewritten", alone)]
        for way, query in ways:
            hits = await cache.search(settings, query, k=DEPTH)
            ids = [hit.passage.id for hit in hits]
            for depth in (1, DEPTH):
                key = (dialogue["language"], way, depth)
                hit = not set(ids[:depth]).isdisjoint(dialogue["right"])
                counts[key] = counts.get(key, 0) + hit
            if way != "as asked":
                mark = "+" if set(ids) & set(dialogue["right"]) else "-"
                sys.stdout.write(f"{mark} {way}: {query}  {ids[:3]}\n")
    for (language, way, depth), found in sorted(counts.items()):
        sys.stdout.write(
            f"{language} {way:<10} right passage among the first {depth}: {found}/15\n"
        )


if __name__ == "__main__":
    asyncio.run(main())
