"""TC-RAG's machine beside one retrieval: gold cited, calls, searches and seconds on open questions.

    python benchmarks/machines.py [--data FOLDER] [--questions N] [--guided N] [--work FOLDER]

The questions and the four sources of `planning.py`. `rag` searches once and quotes; `lean` is
tc-rag with moves = lean and metric = sureness, which asks no language model; `guided` is tc-rag as
the packaged model runs it (cppl), on the first N questions of the shuffled order. Gold is cited
when an evidence of the answer lies in a gold document. Differences are paired, with a bootstrap.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import planning
from planning import DATA, Asked, document_of

from osler.app.config import Settings
from osler.app.wiring import roles_of
from osler.app.wiring.knowledge import open_knowledge_base
from osler.app.wiring.live import with_knowledge
from osler.app.wiring.models import load_encoder, load_roles
from osler.app.wiring.strategies import build_solver
from osler.evaluate.intervals import mean, proportion
from osler.trace import Run, Solver

STRATEGIES: dict[str, dict[str, Any]] = {
    "rag": {"kind": "rag"},
    "lean": {"kind": "tc-rag", "moves": "lean", "metric": "sureness"},
    "guided": {"kind": "tc-rag"},
}
Result = dict[str, Any]


async def ask_one(solver: Solver, asked: Asked) -> Result:
    run, began = Run(), perf_counter()
    solution = await solver.solve(asked.question, run)
    cited = [document_of(one.hit) for one in solution.answer.evidence]
    return {
        "gold": bool(asked.gold.intersection(cited)),
        "answered": bool(solution.answer.statements),
        "calls": run.usage.calls,
        "searches": run.usage.searches,
        "seconds": perf_counter() - began,
        "halt": solution.halt.value,
    }


async def go(given: argparse.Namespace) -> list[Result]:
    asked, entries = planning.gathered(given.data, given.questions, given.seed)
    random.Random(given.seed).shuffle(asked)
    given.work.mkdir(parents=True, exist_ok=True)
    base = Settings.model_validate({"home": given.work})
    if not (given.work / "built").exists():
        planning.build(base, entries, given.data)
        (given.work / "built").touch()
    results: list[Result] = [{"id": one.question.id, "set": one.set} for one in asked]
    with open_knowledge_base(base) as kb:
        encoder = load_encoder(base)
        for name, strategy in STRATEGIES.items():
            limit = given.guided if name == "guided" else len(asked)
            if not limit:
                continue
            settings = Settings.model_validate({"home": given.work, "strategy": strategy})
            models = await load_roles(settings, roles_of(settings))
            solver = build_solver(settings, with_knowledge(settings, models, kb, encoder, None))
            for one, result in list(zip(asked, results, strict=True))[:limit]:
                result[name] = await ask_one(solver, one)
            (given.work / "machines.jsonl").write_text(
                "\n".join(json.dumps(result) for result in results), encoding="utf-8"
            )
    return results


def print_table(results: Sequence[Result]) -> None:
    columns = ("n", "gold cited", "answered", "calls", "searches", "seconds")
    print(f"{'':10}" + "".join(f"{column:>24}" for column in columns))
    for name in STRATEGIES:
        own = [result[name] for result in results if name in result]
        if not own:
            continue
        cells = [str(len(own))]
        for key in ("gold", "answered"):
            share = proportion(sum(one[key] for one in own), len(own))
            cells.append(str(share))
        costs = ("calls", "searches", "seconds")
        cells += [f"{mean([float(one[key]) for one in own]).value:.2f}" for key in costs]
        print(f"{name:10}" + "".join(f"{cell:>24}" for cell in cells))
    for one, other in (("lean", "rag"), ("guided", "rag"), ("lean", "guided")):
        pairs = [result for result in results if one in result and other in result]
        if pairs:
            gain = mean([float(r[one]["gold"]) - float(r[other]["gold"]) for r in pairs])
            print(f"{one} - {other}: {gain}, n {len(pairs)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=int, default=60, help="of each set")
    parser.add_argument("--guided", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True, help="knowledge base and results; kept")
    print_table(asyncio.run(go(parser.parse_args())))


if __name__ == "__main__":
    main()
