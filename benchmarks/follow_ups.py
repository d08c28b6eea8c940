"""Questions to ask next, as they are shown: are they answered, and from their own section?

    python benchmarks/follow_ups.py [--shown 200] [--home HOME] [--questions FILE]

The questions are the example questions of the sample texts, then what is shown under their answers,
and so on, in the order of a reader who clicks all of them; half in English, half in Chinese. Needs
the weights; with `--home`, one with the sample built. `--questions`: JSON lines with "question" and
"language", for a home of other texts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import deque
from importlib.resources import files
from pathlib import Path

from osler.build import Parts
from osler.build.knowledge import build_sample, open_knowledge_base
from osler.build.resource_cache import ResourceCache
from osler.questions import parse_question
from osler.runs.answering import FinishedRun, ask
from osler.settings import Settings
from osler.sources.catalogue import GRAPH
from osler.trace import Retrieved
from osler.types import Grounding
from osler_lab.evaluate.intervals import proportion
from osler_serve.suggested import suggest_questions

MOST_READ = 30
"""Passages of a run that the server looks at."""


def read_questions(language: str, path: Path | None) -> list[str]:
    packaged = files("osler.sample").joinpath(f"questions_{language}.jsonl")
    text = (path or packaged).read_text("utf-8")
    every = [one for one in map(json.loads, text.splitlines()) if "question" in one]
    return [one["question"] for one in every if one.get("language", language) == language]


async def show(
    settings: Settings, parts: Parts, language: str, most: int, path: Path | None
) -> None:
    """Prints each question that is shown with what came of it, and the share that is answered."""
    waiting, seen = deque(read_questions(language, path)), set[str]()
    shown: dict[str, bool] = {}
    while waiting and len(shown) < most:
        question = waiting.popleft()
        finished = await ask(settings, parse_question(question), parts=parts)
        for text in follow_ups(settings, finished, question):
            if text in seen or len(seen) == most:
                continue
            seen.add(text)
            asked = await ask(settings, parse_question(text), parts=parts)
            shown[text] = is_answered(asked)
            print(f"{language} {'answered' if shown[text] else 'NOT'}: {text}", flush=True)
            waiting.append(text)
    answered = sum(shown.values())
    if shown:
        print(f"{language}: {answered} of {len(shown)}: {proportion(answered, len(shown))}")


def follow_ups(settings: Settings, finished: FinishedRun, question: str) -> list[str]:
    """As the server makes them: of the passages that the run's searches found."""
    solution = finished.solution
    if solution is None:
        return []
    hits = (one.hits for one in finished.events if isinstance(one, Retrieved))
    ids = dict.fromkeys(hit.passage for some in hits for hit in some)
    with open_knowledge_base(settings) as kb:
        found = [kb.get(id) for id in ids if not id.startswith(GRAPH)]
    cited = [one.passage for one in solution.answer.evidence]
    return suggest_questions(parse_question(question), found[:MOST_READ], cited)


def is_answered(finished: FinishedRun) -> bool:
    """Whether a quote answers: neither a refusal nor the passages that come nearest."""
    solution = finished.solution
    return solution is not None and solution.answer.grounding is not Grounding.ABSTAINED


async def measure(settings: Settings, most: int, path: Path | None) -> None:
    cache = ResourceCache(settings)
    try:
        parts = await cache.parts_for(settings)
        for language in ("en", "zh"):
            await show(settings, parts, language, most // 2, path)
    finally:
        cache.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shown", type=int, default=200)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--questions", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        settings = Settings.model_validate(
            {"home": str(given.home or made), "runs": {"keep": False}}
        )
        if given.home is None:
            build_sample(settings)
        asyncio.run(measure(settings, given.shown, given.questions))


if __name__ == "__main__":
    main()
