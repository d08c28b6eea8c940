"""What does a model make of real chunks, held to the grammar? And the dictionary?

    python benchmarks/extraction.py [TEXT…] [--chunks 200] [--seed 0] [--chinese 0.25]
        [--units entities,relations] [--others points,tables,outline,summary] [--every 10]
        [--state FILE.jsonl] [--minutes M] [--tokens 320]
        [--weights FILE.gguf | --url URL --name N] [--json FILE]
    python benchmarks/extraction.py --annotated [--dictionary] …

TEXT are files or folders of any format that `osler kb add` reads; without them the shared
corpora beside the checkout. Chunks of 200 characters and more are drawn by seed, as many of
each folder as there are, a share of them Chinese. `--units` are asked of every chunk,
`--others` of every n-th. Each chunk is written to the state file when it is done: a run
that was stopped goes on, and `--minutes` stops one by itself. Prints, by unit: chunks
whose replies were all valid, replies cut at the token limit, names as they were written
and the share of them that stand in the text, items, drops by reason, calls, tokens, seconds.

The anchored share is of names as the model wrote them, before those that do not stand in
the text are dropped; what is stored is anchored without exception. A grammar lets a name be
copied from the chunk only.

With `--annotated`: precision and recall on the annotated chunks (`annotated.py`), of the
dictionary alone with `--dictionary`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import annotated
from corpora import DATA
from extraction_scores import LevelHits, count_hits

from osler.extract import ExtractionOutcome, Extractor
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.items import UNANCHORED, Item
from osler.extract.model import ModelExtractor
from osler.kb.ingest.chunk import document_passages
from osler.llm.core.base import LanguageModel, Sampling
from osler.sources.discover import discover
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop
from osler.types import Passage

_SHORTEST = 200
"""Characters of a chunk that is drawn; a heading alone says nothing of an extractor."""


@dataclass
class Tally:
    """Of one extractor over the chunks that are done."""

    name: str
    chunks: int = 0
    valid: int = 0
    cut: int = 0
    names: int = 0
    """As they were written: those that stand in the text and those that do not."""
    standing: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    usage: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, row: dict[str, Any]) -> None:
        self.chunks += 1
        self.valid += not row["failed"]
        self.cut += row["cut"]
        self.standing += row["standing"]
        self.names += row["standing"] + row["drops"].get(UNANCHORED, 0)
        self.kinds.update(row["kinds"])
        self.drops.update(row["drops"])
        self.usage.update(row["usage"])
        if row["failed"]:
            self.failures.append(f"{row['chunk']}: {row['failed']}")

    def row(self) -> str:
        share = self.standing / self.names if self.names else 1.0
        cells = [
            *(self.name, self.chunks, f"{self.valid} of {self.chunks}", self.cut),
            *(f"{self.names:,}", f"{share:.1%}", _told(self.kinds), _told(self.drops)),
            *(f"{self.usage[part]:,}" for part in ("calls", "prompt", "cached", "written")),
            f"{self.usage['seconds'] / max(1, self.chunks):.1f}",
        ]
        return "| " + " | ".join(map(str, cells)) + " |"


HEAD = (
    "| units | chunks | valid | replies cut | names written | anchored | items | left out"
    " | calls | tokens read | of them kept | written | s a chunk |\n"
    "|---|--:|--:|--:|--:|--:|---|---|--:|--:|--:|--:|--:|"
)


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.most_common()) or "none"


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


def rowed(chunk: Passage, outcome: ExtractionOutcome) -> dict[str, Any]:
    """What is counted of a chunk, as a line of the state file."""
    found, used = outcome.found, outcome.usage
    return {
        "chunk": chunk.id,
        "language": chunk.language,
        "failed": outcome.failed,
        "cut": found.cut,
        "standing": sum(map(named, found.items)),
        "kinds": Counter(item.kind for item in found.items),
        "drops": dict(found.drops),
        "usage": {
            "calls": used.calls,
            "prompt": used.prompt_tokens,
            "cached": used.cached_tokens,
            "written": used.completion_tokens,
            "seconds": used.seconds,
        },
    }


@dataclass
class State:
    """The chunks that are done, by extractor and key; each is written when it is."""

    path: Path | None
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path and self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                if line.endswith("}"):  # the last one may be half there
                    held = json.loads(line)
                    self.rows[held["key"]] = held

    def keep(self, key: str, row: dict[str, Any]) -> None:
        self.rows[key] = row
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"key": key, **row}, ensure_ascii=False))


async def over(
    chunks: Sequence[Passage], extractor: Extractor, state: State, name: str, until: float
) -> list[dict[str, Any]]:
    """Lines of the chunks in order; stops, with those that are done, at the time `until`."""
    rows = list[dict[str, Any]]()
    for place, chunk in enumerate(chunks):
        key = extractor.result_key(chunk)
        if key not in state.rows:
            if time.monotonic() > until:
                continue
            (outcome,) = await extractor.extract([chunk])
            state.keep(key, rowed(chunk, outcome))
        rows.append(state.rows[key])
        sys.stderr.write(f"\r{name}: {place + 1} of {len(chunks)}")
    sys.stderr.write("\n")
    return rows


def drawn(paths: Sequence[Path], count: int, chinese: float, seed: int) -> list[Passage]:
    """Chunks by seed: of each language as many of every folder as it has, English first."""
    every: dict[tuple[str, str], list[Passage]] = defaultdict(list)
    for folder in paths:
        for found in discover([folder]):
            records = () if isinstance(found, Drop) else read_records(found)
            for record in records:
                for passage in (
                    document_passages(record, "texts") if isinstance(record, Document) else ()
                ):
                    if len(passage.text) >= _SHORTEST:
                        every[passage.language, folder.name].append(passage)
    chance = random.Random(seed)
    for group in every.values():
        chance.shuffle(group)
    wanted = {"en": count - round(count * chinese), "zh": round(count * chinese)}
    return [
        chunk
        for language, most in wanted.items()
        for chunk in _in_turn([every[key] for key in sorted(every) if key[0] == language])[:most]
    ]


def _in_turn(groups: list[list[Passage]]) -> list[Passage]:
    longest = max(map(len, groups), default=0)
    return [group[place] for place in range(longest) for group in groups if place < len(group)]


async def model_of(arguments: argparse.Namespace) -> LanguageModel:
    if arguments.url:
        from osler.llm.server.client import Endpoint, connect_server

        return await connect_server(Endpoint(base_url=arguments.url, model=arguments.name))
    from osler.llm.local.gguf_files import default_gguf
    from osler.llm.local.model import LlamaCpp

    path = arguments.weights or default_gguf()
    # A slot for each unit, so that the wording of its prompt is read once and kept.
    model = LlamaCpp(path, name=path.stem, context=6144, slots=max(1, len(arguments.units)))
    await asyncio.to_thread(model.load)
    return model


def extractor_of(
    model: LanguageModel, units: Sequence[str], arguments: argparse.Namespace
) -> ModelExtractor:
    wanted: Any = tuple(units)
    sampling = Sampling(temperature=0.0, max_tokens=arguments.tokens, top=0)
    return ModelExtractor(
        model,
        wanted=wanted,
        sampling=sampling,
    )


async def chunks_of_text(arguments: argparse.Namespace) -> list[Tally]:
    begun = time.monotonic()
    until = begun + 60 * arguments.minutes
    chunks = drawn(arguments.texts, arguments.chunks, arguments.chinese, arguments.seed)
    sys.stderr.write(f"{len(chunks)} chunks drawn in {time.monotonic() - begun:.0f} s\n")
    state, rows = State(arguments.state), dict[str, list[dict[str, Any]]]()
    with DictionaryExtractor() as dictionary:
        dictionary.learn_names(iter(chunks))
        rows["dictionary"] = await over(chunks, dictionary, State(None), "dictionary", until)
    model = await model_of(arguments)
    asked = [(arguments.units, chunks)] if arguments.units else []
    asked += [((unit,), chunks[:: arguments.every]) for unit in arguments.others]
    for units, part in asked:
        extractor, name = extractor_of(model, units, arguments), ", ".join(units)
        rows[name] = await over(part, extractor, state, name, until)
    return [
        tally
        for name, held in rows.items()
        for tally in (_tally(name, held), *(_by_language(name, held)))
    ]


async def of_annotated(arguments: argparse.Namespace) -> list[str]:
    rows = await annotated.dictionaries()
    if arguments.dictionary:
        return rows
    extractor = extractor_of(await model_of(arguments), ("entities", "relations"), arguments)
    sample, state, every = annotated.chunks(), State(arguments.state), list[dict[str, Any]]()
    for place, one in enumerate(sample):
        key = extractor.result_key(one.passage)
        if key not in state.rows:
            (outcome,) = await extractor.extract([one.passage])
            held = count_hits(one, outcome.found.items)
            row = {level: asdict(hit) for level, hit in held.items()}
            state.keep(key, {"annotated": row, "failed": outcome.failed})
        every.append(state.rows[key]["annotated"])
        sys.stderr.write(f"\r{extractor.name}: {place + 1} of {len(sample)}")
    sys.stderr.write("\n")
    found = [{level: LevelHits(**hit) for level, hit in row.items()} for row in every]
    return [*rows, *annotated.told(extractor.name, sample, found)]


def _by_language(name: str, rows: Sequence[dict[str, Any]]) -> list[Tally]:
    return [
        _tally(f"{name} ({language})", [row for row in rows if row["language"] == language])
        for language in ("en", "zh")
    ]


def _tally(name: str, rows: Sequence[dict[str, Any]]) -> Tally:
    tally = Tally(name)
    for row in rows:
        tally.add(row)
    return tally


def parsed() -> argparse.Namespace:
    corpora = DATA / "B_corpora"
    parser = argparse.ArgumentParser(description="Extraction from real chunks.")
    parser.add_argument("texts", type=Path, nargs="*")
    parser.add_argument("--annotated", action="store_true")
    parser.add_argument("--dictionary", action="store_true")
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chinese", type=float, default=0.25)
    parser.add_argument("--units", type=_units, default=("entities", "relations"))
    parser.add_argument("--others", type=_units, default=("points", "tables", "outline", "summary"))
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--tokens", type=int, default=320)
    parser.add_argument("--state", type=Path)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--url", default="")
    parser.add_argument("--name", default="")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    folders = sorted(corpora.iterdir()) if corpora.is_dir() else []
    given.texts = given.texts or [folder for folder in folders if folder.is_dir()]
    return given


def _units(text: str) -> tuple[str, ...]:
    return tuple(unit for unit in text.split(",") if unit)


def main() -> None:
    arguments = parsed()
    if arguments.annotated:
        print("\n".join([annotated.HEAD, *asyncio.run(of_annotated(arguments))]))
        return
    tallies = asyncio.run(chunks_of_text(arguments))
    print("\n".join([HEAD, *(tally.row() for tally in tallies)]))
    for tally in tallies:
        print(*tally.failures[:5], sep="\n", end="\n" if tally.failures else "")
    if arguments.json:
        arguments.json.write_text(json.dumps([vars(tally) for tally in tallies], indent=1))


if __name__ == "__main__":
    main()
