"""How many answers quote a planted passage, and what the defence costs where nothing is planted.

    python benchmarks/poison.py --part dev|held [--questions N] [--shard N/OF] [--work FOLDER]

The knowledge base holds the snippets of the part's BioASQ questions, each abstract a document of
one source; nothing is asked of a language model. Questions are split by a hash of their text:
`held` is looked at once. Without and with `answer.consistent`: answers that quote a planted passage
(1 in 5 passages read, 5 in 10), and on clean questions those that quote a gold abstract first.
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
from poisoning import PoisonTarget, ask_once, attack, find_target, plant

from osler.app.config import Settings
from osler.app.wiring.knowledge import open_or_create
from osler.app.wiring.live import live_parts
from osler.app.wiring.models import load_encoder
from osler.evaluate.intervals import proportion
from osler.types import Answer

CELLS = {"1 of 5": (1, 5), "5 of 10": (5, 10)}


def part_of(text: str) -> str:
    return ("dev", "held")[sha256(text.encode()).digest()[0] % 2]


def settings_in(home: Path, k: int, *, consistent: bool) -> Settings:
    tree: dict[str, Any] = {
        "home": str(home),
        "strategy": {"kind": "rag", "k": k},
        "answer": {"consistent": consistent},
    }
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
    settings = settings_in(home, 5, consistent=False)
    with open_or_create(settings) as kb:
        kb.add([texts], source="research")
        kb.build(load_encoder(settings))


def quiet(what: str, done: int, total: int | None) -> None:
    if done % 25 == 0:
        print(f"  {what} {done} of {total}", file=sys.stderr, flush=True)


async def answer_all(settings: Settings, asked: Sequence[Asked]) -> list[Answer]:
    parts, answers = await live_parts(settings), []
    for n, one in enumerate(asked):
        quiet("clean answers", n, len(asked))
        answers.append(await ask_once(settings, one.question, parts))
    return answers


def is_gold_first(asked: Asked, answer: Answer) -> bool:
    first = answer.evidence[0].passage.id if answer.evidence else ""
    return first.partition("#")[0].partition(":")[2] in asked.gold


async def measure(home: Path, asked: Sequence[Asked], work: Path) -> None:
    plain = await answer_all(settings_in(home, 5, consistent=False), asked)
    found = [find_target(one.question, answer) for one, answer in zip(asked, plain, strict=True)]
    targets = [one for one in found if one is not None]
    print(f"{len(asked)} questions, {len(targets)} with a statement that can be turned", flush=True)
    for name, (many, k) in CELLS.items():
        with tempfile.TemporaryDirectory(dir=work) as folder:
            await try_cell(name, home, targets, many, k, Path(folder))
    kept = await answer_all(settings_in(home, 5, consistent=True), asked)
    right = [
        [is_gold_first(one, answer) for one, answer in zip(asked, answers, strict=True)]
        for answers in (plain, kept)
    ]
    said = [shown(sum(one), len(one)) for one in right]
    print(f"clean: gold first {said[0]} without, {said[1]} with the defence")


def shown(hits: int, n: int) -> str:
    if not n:
        return "0 of 0"
    found = proportion(hits, n)
    return f"{hits} of {n}, {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


async def try_cell(
    name: str, home: Path, targets: Sequence[PoisonTarget], many: int, k: int, folder: Path
) -> None:
    planted = plant(settings_in(home, k, consistent=False), targets, many, folder)
    for consistent in (True, False):
        answer = planted.answer.model_copy(update={"consistent": consistent})
        told = await attack(planted.model_copy(update={"answer": answer}), targets, quiet)
        share = shown(told.cited, told.asked)
        rest = f"right still quoted {told.kept}, silent {told.silent}"
        print(f"{name}, {'with' if consistent else 'without'}: cited {share}; {rest}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=("dev", "held"), required=True)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--shard", default="0/1", help="of so many, which share the work")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    home = given.work / f"poison-{given.part}-{given.questions}"
    asked = choose(given.data, given.questions)[given.part]
    build_base(given.data, asked, home)
    n, of = map(int, given.shard.split("/"))
    asyncio.run(measure(home, asked[n::of], given.work))


if __name__ == "__main__":
    main()
