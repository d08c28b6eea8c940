"""Does a second look by sentences help? Questions of PubMedQA, each with its own abstract.

    python benchmarks/rerank.py TEST_SET.json [--questions N]

Prints the reciprocal rank of the abstract (top 10), how often it stands first, and seconds a
search, of the hybrid search alone and reranked by the best sentence's cosine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from osler.app.config import Settings
from osler.app.wiring.hub import open_reranker, with_reranker
from osler.app.wiring.knowledge import make_retriever
from osler.app.wiring.models import load_encoder
from osler.kb.base import KnowledgeBase
from osler.types import Retriever

KINDS = ("none", "sentences")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--questions", type=int, default=100)
    given = parser.parse_args()
    asked: dict[str, Any] = json.loads(given.file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"home": Path(folder)})
        encoder = load_encoder(settings)
        with KnowledgeBase.create(settings.kb.path) as kb:
            file = Path(folder) / "abstracts.jsonl"
            file.write_text("".join(map(_line, asked.items())), encoding="utf-8")
            kb.add([file], source="research")
            kb.build(encoder)
            print(f"{kb.path.name}: {len(asked)} abstracts, {given.questions} questions")
            for kind in KINDS:
                chosen = settings.model_copy(
                    update={"reranker": settings.reranker.model_copy(update={"kind": kind})}
                )
                plain = make_retriever(chosen, kb, encoder, ("research",))
                second = open_reranker(chosen, encoder)
                found = with_reranker(chosen, plain, second, ("research",))
                print(
                    asyncio.run(_table(kind, found, dict(list(asked.items())[: given.questions])))
                )


def _line(entry: tuple[str, Mapping[str, Any]]) -> str:
    """No title: PubMedQA's questions are its titles."""
    id, record = entry
    return json.dumps({"id": id, "title": id, "content": "\n".join(record["CONTEXTS"])}) + "\n"


async def _table(kind: str, found: Retriever, asked: Mapping[str, Mapping[str, Any]]) -> str:
    began, places = time.perf_counter(), []
    for id, record in asked.items():
        hits = await found.search(record["QUESTION"], k=10)
        titles = list(dict.fromkeys(hit.passage.title for hit in hits))
        places.append(1 / (titles.index(id) + 1) if id in titles else 0.0)
    seconds = (time.perf_counter() - began) / len(asked)
    first = sum(place == 1 for place in places)
    return (
        f"{kind:10} reciprocal rank {fmean(places):.3f}  first {first:4}  {seconds:.2f} s a search"
    )


if __name__ == "__main__":
    main()
