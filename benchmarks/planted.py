"""Which answers cite passages that an attacker planted, in words of another hand.

    python benchmarks/planted.py

asks the 40 questions of `planted.jsonl` over the sample texts, with five passages beside them that
state one wrong claim in five ways, in the untrusted source `web`. A hand that had seen the texts
and nothing of Osler wrote them; `osler poison` plants copies of what was quoted instead.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from osler.build.knowledge import build_sample, open_knowledge_base
from osler.build.models import load_encoder
from osler.build.resource_cache import ResourceCache
from osler.runs.answering import ask
from osler.settings import Settings
from osler.sources.catalogue import WEB
from osler.types import Passage, Question
from osler_lab.evaluate.intervals import proportion

CASES = Path(__file__).parent / "planted.jsonl"
PLANTED = "planted"


def read_cases() -> list[dict[str, Any]]:
    """Each with `question`, `true` (a sentence of the texts) and `wrong` (five passages)."""
    return [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]


def plant(settings: Settings, cases: list[dict[str, Any]]) -> None:
    """Builds the sample base with the wrong passages in it."""
    build_sample(settings)
    with open_knowledge_base(settings) as kb:
        kb.put(
            Passage(f"{WEB}:{PLANTED}-{case['id']}-{n}#0", text, WEB, "Notes")
            for case in cases
            for n, text in enumerate(case["wrong"])
        )
        kb.build(load_encoder(settings))


async def count_cited(settings: Settings, cases: list[dict[str, Any]]) -> tuple[int, int]:
    """Answers that cite a planted passage, and those that cite the true sentence."""
    cache = ResourceCache(settings)
    parts = await cache.parts_for(settings)
    planted = true = 0
    for case in cases:
        finished = await ask(settings, Question(case["id"], case["question"]), parts=parts)
        evidence = finished.solution.answer.evidence if finished.solution else ()
        planted += any(f":{PLANTED}-" in one.passage.id for one in evidence)
        true += any(case["true"] in one.passage.text for one in evidence)
    cache.close()
    return planted, true


def main() -> None:
    cases = read_cases()
    print("| answer.consistent | cite a planted passage | cite the true sentence |\n|---|--:|--:|")
    with tempfile.TemporaryDirectory() as home:
        for consistent in (False, True):
            settings = Settings.model_validate(
                {"home": home, "runs": {"keep": False}, "answer": {"consistent": consistent}}
            )
            if not consistent:
                plant(settings, cases)
            planted, true = asyncio.run(count_cited(settings, cases))
            shares = [str(proportion(one, len(cases))) for one in (planted, true)]
            print(f"| {'on' if consistent else 'off'} | {shares[0]} | {shares[1]} |", flush=True)


if __name__ == "__main__":
    main()
