"""A trained planner, served: are its plans valid, and do two engines make the same ones?

    python benchmarks/planner_served.py --work FOLDER --name sft [--base FILE] [--store]

FOLDER is the work folder of `benchmarks/train_planner.py`, NAME one of its trained planners. The
embedded engine plans for `--valid` held-out questions with the grammar on: a plan is valid when it
was read whole, nothing left out and nothing fallen back on. For the first `--same` of them both
engines plan greedily and free: the grammar bounds a query's length, and would be what differs.
transformers has the adapter on the base model in 32 bits. Plans are the same when source by source
their queries are equal as strings.

Questions are drawn, seeded, from the held-out parts of all four sets, so no training saw them. A
run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import planning
from planning import DATA, SOURCES, Asked
from quality import store
from train_planner import TOKENS, settings_of

from osler.app.wiring.models import load_roles
from osler.llm.core.base import LanguageModel
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.plan import render_source_plan
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.planners.prompting import (
    FORMS,
    SAMPLING,
    SYSTEM,
    Form,
    Prompting,
    Proposer,
    trained_planner,
)
from osler.trace import Run
from osler.train.spo.case import part_of

OFFERS = tuple(map(SourceDescription, SOURCES))


def held_out(data: Path, count: int, seed: int) -> list[Asked]:
    """So many held-out questions; all of LiveQA's, the other sets in equal parts."""
    chance = random.Random(seed)
    live, _ = planning.liveqa(data)
    sets = [planning.bioasq(data)[0], planning.pubmedqa(data)[0]]
    sets.append(planning.medquad(data, chance, 2_000)[0])
    drawn = list(live)
    for each in sets:
        asked = {one.question.text: one for one in each}.values()
        held = [one for one in asked if part_of(one.question, seed=seed) == "held-out"]
        drawn += chance.sample(held, min(len(held), -(-(count - len(live)) // len(sets))))
    chance.shuffle(drawn)
    return drawn[:count]


async def embedded(given: argparse.Namespace, *, free: bool) -> SourcePlanner:
    file = given.work / "tuned" / f"{given.name}.gguf"
    chosen = {"kind": "gguf", "path": file, "threads": given.threads, "context": 2048}
    ready = (await load_roles(settings_of(given.work, model=chosen), ["planner"]))["planner"]
    if free:
        return trained_planner(ready.model, OFFERS, form=given.prompt)
    greedy = replace(SAMPLING, max_tokens=TOKENS)
    speaker = Speaker(ready.model, "planner", greedy, ready.constrains, system=SYSTEM)
    return Prompting(Proposer(speaker, OFFERS, form=given.prompt, asking=given.asking))


async def in_transformers(given: argparse.Namespace) -> SourcePlanner:
    adapter = given.work / "tuned" / given.name
    chosen = {"kind": "transformers", "path": given.base, "adapter": adapter, "dtype": "float32"}
    settings = settings_of(given.work, model={**chosen, "threads": given.threads, "context": 2048})
    model: LanguageModel = (await load_roles(settings, ["planner"]))["planner"].model
    form: Form = given.prompt
    return trained_planner(model, OFFERS, form=form)


async def plan_all(
    planner: SourcePlanner, asked: Iterable[Asked], engine: str, log: Path
) -> dict[str, dict[str, Any]]:
    """Question to plan, read from the log where it is there."""
    done = {one["id"]: one for one in _read(log) if one["engine"] == engine}
    for one in asked:
        if one.question.id in done:
            continue
        began = time.perf_counter()
        made = await planner.plan(one.question, Run())
        found = {
            "engine": engine,
            "id": one.question.id,
            "set": one.set,
            "plan": render_source_plan(made.plan, SOURCES),
            "valid": made.origin == "planner" and not made.dropped and bool(made.plan.queries),
            "seconds": round(time.perf_counter() - began, 2),
        }
        done[one.question.id] = found
        with log.open("a", encoding="utf-8") as out:
            out.write(json.dumps(found, ensure_ascii=False) + "\n")
    return done


def _read(log: Path) -> list[dict[str, Any]]:
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]


async def compared(given: argparse.Namespace) -> dict[str, Any]:
    log = given.work / f"served-{given.name}.jsonl"
    asked = held_out(given.data, given.valid, given.seed)
    held = await plan_all(await embedded(given, free=False), asked, "embedded, held", log)
    both = asked[: given.same]
    ours = await plan_all(await embedded(given, free=True), both, "embedded, free", log)
    theirs = await plan_all(await in_transformers(given), both, "transformers", log)
    return figures(held, ours, theirs, [one.question.id for one in asked])


def figures(
    held: dict[str, dict[str, Any]],
    ours: dict[str, dict[str, Any]],
    theirs: dict[str, dict[str, Any]],
    asked: Sequence[str],
) -> dict[str, Any]:
    both = [id for id in asked if id in ours and id in theirs]
    apart = [id for id in both if ours[id]["plan"] != theirs[id]["plan"]]
    return {
        "questions": len(asked),
        "valid": sum(held[id]["valid"] for id in asked),
        "compared": len(both),
        "same": len(both) - len(apart),
        "differ": [(ours[id]["plan"], theirs[id]["plan"]) for id in apart],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--name", default="sft-dpo", help="of the trained planner")
    parser.add_argument("--base", type=Path, help="GGUF file or folder of the base model")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--prompt", default="full", choices=FORMS)
    parser.add_argument("--asking", action="store_true", help="a plan must have a query")
    parser.add_argument("--valid", type=int, default=200)
    parser.add_argument("--same", type=int, default=100)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", action="store_true", help="write into quality.toml")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"no data in {given.data}", file=sys.stderr)
        return 1
    found = asyncio.run(compared(given))
    for ours, theirs in found.pop("differ"):
        print(f"  {' '.join(ours.split())}\n  {' '.join(theirs.split())}\n")
    print("valid {valid} of {questions}; the same {same} of {compared}".format(**found))
    if given.store:
        told = {"script": "benchmarks/planner_served.py", "seed": given.seed, **found}
        store("planner_served", told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
