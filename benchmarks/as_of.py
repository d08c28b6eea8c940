"""Whether an answer as of a day is the one that a knowledge base frozen at that day gives.

    python benchmarks/as_of.py [--questions 100] [--day 2020-12-31]

The sample texts are given years from 2012 to 2025 by a hash of their ids, since most of them have
none; one knowledge base holds all, the other those up to the day alone. Each question, ours over
these texts (`benchmarks/plain/sample-*`), is asked of the first with `as_of` and of the second
without. Two answers are equal where their sentences, their citations and their sureness are; beside
it stands how often they are where the filter leaves the later texts out and nothing else is done.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import osler
from osler.build.knowledge import build_sample, open_knowledge_base
from osler.build.models import load_encoder
from osler.build.resource_cache import ResourceCache
from osler.runs.answering import ask
from osler.settings import Settings
from osler.settings.sections import RetrieveSettings
from osler.sources.catalogue import EMR, GRAPH
from osler.types import Answer, Passage, Question

PLAIN = Path(__file__).with_name("plain")


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--questions", type=int, default=100)
    given.add_argument("--day", default="2020-12-31")
    chosen = given.parse_args()
    questions = list(read_questions())[: chosen.questions]
    with tempfile.TemporaryDirectory() as folder:
        bases = make_bases(Path(folder), int(chosen.day[:4]))
        told = asyncio.run(compare_answers(*bases, chosen.day, questions))
    print(json.dumps(told, indent=1))


def read_questions() -> Iterator[Question]:
    """The questions over the sample that were looked at before, English and Chinese by turns."""
    languages = [
        [row["text"] for file in sorted(PLAIN.glob(f"sample-{one}-*seen.jsonl"))
         for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())]
        for one in ("en", "zh")
    ]  # fmt: skip
    for pair in zip(*languages, strict=False):
        yield from map(osler.parse_question, pair)


def make_bases(folder: Path, year: int) -> tuple[Settings, Settings]:
    """Settings of a knowledge base of all texts, and of one of those up to a year."""
    sample = make_settings(folder / "sample")
    build_sample(sample)
    with open_knowledge_base(sample) as kb:
        sources = [source for source in kb.sources if source not in (EMR, GRAPH)]
        texts = [
            date_passage(one)
            for name in sources
            for group in kb.read_documents(name)
            for one in group
        ]
    for name, last in (("whole", 9999), ("frozen", year)):
        settings = make_settings(folder / name)
        with osler.KnowledgeBase.create(settings.kb.path) as made:
            for _, group in groupby(texts, key=lambda one: one.id.partition("#")[0]):
                passages = list(group)
                if (passages[0].locator.year or 0) <= last:
                    made.put(passages)
            made.build(load_encoder(settings))
    return make_settings(folder / "whole"), make_settings(folder / "frozen")


def make_settings(home: Path, **retrieve: object) -> Settings:
    return Settings.model_validate({"home": home, "runs": {"keep": False}, "retrieve": retrieve})


def date_passage(passage: Passage) -> Passage:
    document = passage.id.partition("#")[0]
    year = 2012 + sha256(document.encode()).digest()[0] % 14
    return replace(passage, locator=replace(passage.locator, year=year, date=""))


async def compare_answers(
    whole: Settings, frozen: Settings, day: str, questions: list[Question]
) -> dict[str, object]:
    seen = whole.model_copy(update={"retrieve": RetrieveSettings.model_validate({"as_of": day})})
    wanted = await answer_all(frozen, questions)
    as_of = await answer_all(seen, questions)
    with (
        patch.object(RetrieveSettings, "known_day", None),
        patch.object(RetrieveSettings, "years", (None, int(day[:4]))),
    ):
        filtered = await answer_all(seen, questions)
    return {
        "questions": len(questions),
        "answered when frozen": sum(not one.is_silent for one in wanted),
        "equal as of the day": count_equal(wanted, as_of),
        "equal where the later texts are filtered out alone": count_equal(wanted, filtered),
        "equal without a filter": count_equal(wanted, await answer_all(whole, questions)),
    }


async def answer_all(settings: Settings, questions: list[Question]) -> list[Answer]:
    cache = ResourceCache(settings)
    try:
        parts = await cache.parts_for(settings)
        ended = [await ask(settings, one, parts=parts) for one in questions]
    finally:
        cache.close()
    return [one.solution.answer for one in ended if one.solution is not None]


def count_equal(some: list[Answer], others: list[Answer]) -> int:
    def told(one: Answer) -> object:
        quotes = [(each.passage.id, each.quote) for each in one.evidence]
        return one.statements, quotes, one.sureness

    return sum(told(one) == told(other) for one, other in zip(some, others, strict=True))


if __name__ == "__main__":
    main()
