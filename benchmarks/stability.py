"""KAG-Thinker's stability score (§4.4) with the model that is configured here.

    python benchmarks/stability.py [--n 20] [--config FILE]

The sample questions are solved with seeds 0 and 1 at temperatures 0.6 and 0.8. "judged": the role
judge calls both solutions consistent; "alike": both plans have the same functions waiting for the
same steps, which needs no judge. Without a file the packaged model plays every role.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from sample_questions import samples

from osler.app.config import Settings, load
from osler.app.wiring.knowledge import build_sample
from osler.app.wiring.live import live_parts
from osler.app.wiring.models import load_roles
from osler.app.wiring.strategies import build_solver
from osler.evaluate.stability import TEMPERATURES, Stability, StabilityJudge, measure_stability
from osler.trace import Solver
from osler.types import Question

STRATEGY = {"kind": "kag-thinker", "turns": 1}


def at(settings: Settings, temperature: float) -> Settings:
    data = settings.model_dump()
    data["sampling"] |= {"temperature": temperature, "max_tokens": 300}
    return Settings.model_validate(data | {"strategy": STRATEGY})


async def measured(settings: Settings, questions: list[Question]) -> Stability:
    parts = await live_parts(settings)
    ready = (await load_roles(settings, ["judge"]))["judge"]

    def solver(seed: int) -> Solver:
        sampling = settings.sampling.model_copy(update={"seed": seed})
        return build_solver(settings.model_copy(update={"sampling": sampling}), parts)

    return await measure_stability(solver, StabilityJudge(ready.model, ready.constrains), questions)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20)
    parser.add_argument("--config", type=Path)
    given = parser.parse_args()
    questions = [each.question for each in samples("questions_en.jsonl")][: given.n]
    with tempfile.TemporaryDirectory() as home:
        cwd = Path.cwd()
        settings = (
            load({}, cwd=cwd, env={}, file=given.config).settings
            if given.config
            else Settings.model_validate({"home": Path(home), "model": {"threads": 1}})
        )
        if not given.config:
            build_sample(settings)
        print("| temperature | n | judged | alike | unread verdicts | seconds a question |")
        print("|--:|--:|---|---|--:|--:|")
        for temperature in TEMPERATURES:
            began = time.perf_counter()
            found = await measured(at(settings, temperature), questions)
            seconds = (time.perf_counter() - began) / len(questions)
            print(
                f"| {temperature} | {len(found.pairs)} | {found.judged} | {found.alike}"
                f" | {found.unread} | {seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    asyncio.run(main())
