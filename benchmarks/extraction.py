"""What does a model make of real chunks, held to the grammar? And the dictionary?

    python benchmarks/extraction.py TEXT… [--chunks 200] [--weights FILE.gguf] [--url URL --name N]
        [--unit entities …] [--at-once 4] [--json FILE]

TEXT are files or folders of any format that `osler kb add` reads, in English or Chinese. Of
their chunks every n-th is taken, so that all files have a part. Without --weights and --url
the packaged model is asked. Prints for each extractor: chunks whose replies were all valid,
replies cut at the token limit, names written and the share of them that stand in the text,
items by kind, drops by reason, calls, tokens, seconds and seconds a chunk.

The valid share counts chunks, not calls: one bad reply of three makes a chunk invalid. The
anchored share is of names as the model wrote them, before those that do not stand in the
text are dropped; what is stored is anchored without exception.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from osler.kb.base import KnowledgeBase
from osler.kb.extract.base import Extractor
from osler.kb.extract.dictionary import DictionaryExtractor
from osler.kb.extract.items import UNANCHORED, Item
from osler.kb.extract.model import DEFAULT, ModelExtractor
from osler.llm.base import LanguageModel
from osler.types import Passage, Usage


@dataclass(frozen=True)
class Score:
    extractor: str
    chunks: int
    valid: int
    cut: int
    names: int
    """As they were written: those that stand in the text and those that do not."""
    anchored: float
    kinds: dict[str, int]
    drops: dict[str, int]
    usage: Usage
    seconds: float
    failures: tuple[str, ...] = ()


def named(item: Item) -> int:
    """How many names of an item had to stand in the text."""
    match item.kind:
        case "entity" | "heading":
            return 1
        case "relation":
            return 2
        case "point":
            return len(item.entities)
        case "summary":
            return len(item.about)
        case "table":
            return sum(bool(cell) for row in (item.header, *item.rows) for cell in row)


async def scored(extractor: Extractor, chunks: list[Passage], at_once: int) -> Score:
    kinds, drops, usage = Counter[str](), Counter[str](), Usage()
    valid, cut, standing, failures = 0, 0, 0, list[str]()
    begun, gate, done = time.perf_counter(), asyncio.Semaphore(at_once), 0

    async def one(chunk: Passage) -> None:
        nonlocal valid, cut, standing, usage, done
        async with gate:
            (outcome,) = await extractor.extract([chunk])
        done += 1
        sys.stderr.write(f"\r{extractor.name}: {done} of {len(chunks)}")
        valid += not outcome.failed
        cut += outcome.found.cut
        usage += outcome.usage
        drops.update(dict(outcome.found.drops))
        if outcome.failed:
            failures.append(f"{chunk.id}: {outcome.failed}")
        for item in outcome.found.items:
            kinds[item.kind] += 1
            standing += named(item)

    await asyncio.gather(*map(one, chunks))
    sys.stderr.write("\n")
    written = standing + drops[UNANCHORED]
    share = standing / written if written else 1.0
    seconds = time.perf_counter() - begun
    return Score(
        extractor.name,
        len(chunks),
        valid,
        cut,
        written,
        share,
        dict(kinds),
        dict(drops),
        usage,
        seconds,
        tuple(failures[:5]),
    )


def spread(paths: list[Path], count: int) -> list[Passage]:
    """Every n-th chunk of the files, so that `count` are left."""
    with tempfile.TemporaryDirectory() as folder, KnowledgeBase.create(Path(folder) / "kb") as kb:
        kb.add(paths, source="texts")
        every = [passage for document in kb.documents("texts") for passage in document]
    step = max(1, len(every) // count)
    return every[::step][:count]


async def model_of(arguments: argparse.Namespace) -> LanguageModel:
    if arguments.url:
        from osler.llm.openai import Endpoint, connect

        return await connect(Endpoint(base_url=arguments.url, model=arguments.name))
    from osler.llm.local import LlamaCpp
    from osler.llm.quantise import default_gguf

    path = arguments.weights or default_gguf()
    model = LlamaCpp(path, name=path.stem, context=8192, slots=arguments.at_once)
    await asyncio.to_thread(model.load)
    return model


def shown(score: Score) -> str:
    used = score.usage
    lines = [
        f"## {score.extractor}",
        f"valid chunks     {score.valid} of {score.chunks}",
        f"replies cut      {score.cut}",
        f"names anchored   {score.anchored:.1%} of {score.names:,}; the others are dropped",
        f"items            {score.kinds}",
        f"left out         {score.drops}",
        f"cost             {used.calls:,} calls, {used.prompt_tokens:,} tokens read,"
        f" {used.completion_tokens:,} written",
        f"seconds          {score.seconds:,.1f},"
        f" {score.seconds / max(1, score.chunks):.2f} a chunk",
    ]
    return "\n".join([*lines, *score.failures, ""])


async def main() -> None:
    parser = argparse.ArgumentParser(description="Extraction from real chunks.")
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--url", default="")
    parser.add_argument("--name", default="")
    parser.add_argument("--unit", action="append")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chunks = spread(arguments.texts, arguments.chunks)
    with DictionaryExtractor() as dictionary:
        dictionary.learn(iter(chunks))
        scores = [await scored(dictionary, chunks, 1)]
    print(shown(scores[0]))
    asked: Any = tuple(arguments.unit or DEFAULT)
    extractor = ModelExtractor(await model_of(arguments), wanted=asked)
    scores.append(await scored(extractor, chunks, arguments.at_once))
    print(shown(scores[1]))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(score) for score in scores], indent=1))


if __name__ == "__main__":
    asyncio.run(main())
