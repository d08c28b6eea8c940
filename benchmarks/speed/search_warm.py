"""How long a search takes once warm, on a knowledge base that is already built.

    OSLER__HOME=FOLDER python benchmarks/speed/search_warm.py [N]

Prints the milliseconds of N hybrid searches (k = 10, the query's encoding included), median and
95th percentile, with the number of passages. Queries are the sample questions in English.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from importlib.resources import files
from pathlib import Path

import osler
from osler.build.knowledge import make_retriever, open_knowledge_base, searched_sources
from osler.build.models import load_encoder


def queries() -> list[str]:
    import json

    text = files("osler.sample").joinpath("questions_en.jsonl").read_text(encoding="utf-8")
    return [json.loads(line)["question"] for line in text.splitlines()]


async def main(count: int) -> None:
    settings = osler.load({}, cwd=Path.cwd(), env=os.environ).settings
    kb, encoder = open_knowledge_base(settings), load_encoder(settings)
    retriever = make_retriever(settings, kb, encoder, searched_sources(settings, kb))
    asked, took = queries(), []
    for query in asked:
        await retriever.search(query, k=10)
    for number in range(count):
        began = time.perf_counter()
        await retriever.search(asked[number % len(asked)], k=10)
        took.append(1000 * (time.perf_counter() - began))
    took.sort()
    passages = kb.info().passages
    print(
        f"passages {passages:,}  searches {count}  median {statistics.median(took):.1f} ms", end=""
    )
    print(f"  p95 {took[int(0.95 * count)]:.1f} ms  slowest {took[-1]:.1f} ms")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
