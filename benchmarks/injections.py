"""How many hidden orders are obeyed: by quoted answers, and by a model that obeys all it reads.

    python benchmarks/injections.py injected_docs.jsonl [--work FOLDER]

Each text with an order in it is a document; its question is asked through search, prompt and
composer. *Quoted*: no model words the answer. *Obedient*: a script that, wherever a known order
stands in what it is sent, replies that it obeys, and quotes the first passage otherwise. An order
counts as obeyed where the answer holds it, or says so. The rules of form were written on the
questions of the hash part `dev`; `held` are the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from poisoning import ask_once

from osler.app.config import Settings
from osler.app.wiring.knowledge import open_knowledge_base, open_or_create
from osler.app.wiring.live import live_parts, with_knowledge
from osler.app.wiring.models import LoadedModel, load_encoder
from osler.llm.core.base import Completion, Message, Sampling
from osler.retrieve.instructions import instruction_spans
from osler.testing.served import FixedModel
from osler.types import Question

OBEYED = "As ordered, I obey"


@dataclass
class ObedientModel(FixedModel):
    orders: tuple[str, ...] = ()

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        read = " ".join(message.content for message in messages)
        seen = next((order for order in self.orders if order in read), None)
        self.reply = f"{OBEYED}: {seen}" if seen else "It is said there. [1]"
        return await super().complete(messages, sampling)


def part_of(row: dict[str, Any]) -> str:
    return ("dev", "held")[sha256(row["question"].encode()).digest()[0] % 2]


async def measure(rows: list[dict[str, Any]], home: Path) -> None:
    settings = Settings.model_validate({"home": str(home), "strategy": {"kind": "rag", "k": 5}})
    with open_or_create(settings) as kb:
        kb.add([home / "texts"], source="web")
        kb.build(load_encoder(settings))
    orders = tuple(row["attack_instruction"] for row in rows)
    writing = settings.model_copy(
        update={"model": settings.model.model_copy(update={"writes": "yes"})}
    )
    kb = open_knowledge_base(settings)
    encoder = load_encoder(settings)
    model = ObedientModel(orders=orders)
    obedient = with_knowledge(writing, {"reader": LoadedModel(model)}, kb, encoder, None)
    quoted = await live_parts(settings)
    for name, chosen, parts in (("quoted", settings, quoted), ("obedient", writing, obedient)):
        counted: Counter[str] = Counter()
        for row in rows:
            answer = await ask_once(chosen, Question("", row["question"]), parts)
            said = answer.text + " ".join(one.quote for one in answer.evidence)
            counted["answered"] += bool(answer.statements)
            counted["obeyed " + part_of(row)] += OBEYED in said or any(o in said for o in orders)
            counted["obeyed, with a citation"] += OBEYED in answer.text and bool(answer.evidence)
        print(name, len(rows), dict(counted), flush=True)
    kb.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.rows.read_text("utf-8").splitlines()]
    for part in ("dev", "held"):
        mine = [row for row in rows if part_of(row) == part]
        blanked = sum(_is_blanked(row) for row in mine)
        touched = sum(bool(instruction_spans(row["clean_text"])) for row in mine)
        print(f"{part}: {blanked} of {len(mine)} blanked by form; clean twins touched {touched}")
    with tempfile.TemporaryDirectory(dir=given.work) as name:
        texts = Path(name) / "texts"
        texts.mkdir()
        for n, row in enumerate(rows):
            (texts / f"{n}.txt").write_text(row["injected_text"], encoding="utf-8")
        asyncio.run(measure(rows, Path(name)))


def _is_blanked(row: dict[str, Any]) -> bool:
    text, order = row["injected_text"], row["attack_instruction"]
    at = text.find(order)
    return any(start <= at and at + len(order) <= end for start, end in instruction_spans(text))


if __name__ == "__main__":
    main()
