"""How many answers quote a planted passage, and what the defence costs where nothing is planted.

    python benchmarks/poison.py --part dev|held [--skip N] [--questions N] [--shard N/OF]
        [--work FOLDER]

`osler attack poison` over the snippets of the part's BioASQ questions, each abstract a document of
one source; nothing is asked of a language model. Questions are split by a hash of their text and
stand in its order: those of `held` are looked at once. Beside it, how many clean answers quote a
gold abstract first, without and with `answer.consistent`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from planning import DATA, Asked, bioasq

from osler.app.config import Settings
from osler.app.poisoning import answer_all, defend, study_poison
from osler.app.wiring.knowledge import open_or_create
from osler.app.wiring.models import load_encoder
from osler.evaluate.intervals import proportion
from osler.types import Answer


def part_of(text: str) -> str:
    return ("dev", "held")[sha256(text.encode()).digest()[0] % 2]


def settings_in(home: Path) -> Settings:
    tree: dict[str, Any] = {"home": str(home), "strategy": {"kind": "rag", "k": 5}}
    return Settings.model_validate(tree)


def choose(data: Path, many: int) -> dict[str, list[Asked]]:
    """So many questions of each part, in the order of their hashes."""
    asked, _ = bioasq(data)
    asked.sort(key=lambda one: sha256(one.question.text.encode()).digest())
    return {
        part: [one for one in asked if part_of(one.question.text) == part][:many]
        for part in ("dev", "held")
    }


def build_base(data: Path, chosen: Sequence[Asked], home: Path) -> None:
    """Of the abstracts of these questions; an interrupted build goes on."""
    gold = {id for one in chosen for id in one.gold}
    texts = home / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    with (texts / "bioasq.jsonl").open("w") as file:
        for one in bioasq(data)[1]:
            if one.id in gold:
                file.write(json.dumps({"id": one.id, "title": one.title, "text": one.text}) + "\n")
    settings = settings_in(home)
    with open_or_create(settings) as kb:
        kb.add([texts], source="research")
        kb.build(load_encoder(settings))


def quiet(what: str, done: int, total: int | None) -> None:
    if done % 25 == 0:
        print(f"  {what} {done} of {total}", file=sys.stderr, flush=True)


def is_gold_first(asked: Asked, answer: Answer) -> bool:
    first = answer.evidence[0].passage.id if answer.evidence else ""
    return first.partition("#")[0].partition(":")[2] in asked.gold


async def measure(home: Path, asked: Sequence[Asked], work: Path) -> None:
    settings, questions = settings_in(home), [one.question for one in asked]
    study = await study_poison(settings, questions, quiet, work)
    print(f"{study.clean} questions, {study.changed} clean answers changed", flush=True)
    for cell in study.cells:
        one = cell.outcome
        said = f"{cell.planted} of {cell.read} in {cell.source or 'the same source'}"
        how = "with" if cell.defended else "without"
        rest = f"right still quoted {one.kept}, silent {one.silent}"
        print(f"{said}, {how}: cited {shown(one.cited, one.asked)}; {rest}", flush=True)
    for consistent in (False, True):
        answers = await answer_all(defend(settings, 5, consistent=consistent), questions, quiet)
        right = sum(is_gold_first(*pair) for pair in zip(asked, answers, strict=True))
        print(f"gold first, consistent {consistent}: {shown(right, len(asked))}", flush=True)


def shown(hits: int, n: int) -> str:
    if not n:
        return "0 of 0"
    found = proportion(hits, n)
    return f"{hits} of {n}, {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("dev", "held"), required=True)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--skip", type=int, default=0, help="questions that were looked at before")
    parser.add_argument("--shard", default="0/1", help="of so many, which share the work")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    home = given.work / f"poison-{given.part}-{given.skip}-{given.questions}"
    asked = choose(given.data, given.skip + given.questions)[given.part][given.skip :]
    build_base(given.data, asked, home)
    n, of = map(int, given.shard.split("/"))
    asyncio.run(measure(home, asked[n::of], given.work))


if __name__ == "__main__":
    main()
