"""TC-RAG's machine beside one retrieval: gold cited, calls, searches and seconds on open questions.

    python benchmarks/machines.py --work FOLDER [--kb HOME] [--questions N] [--guided N]

`rag` searches once and quotes; `guided` is tc-rag as the packaged model runs it (cppl), on the
first N questions of the shuffled order. Questions: those of `machines_split.json`, on which nothing
was tuned (hashes; of the experts' test part, over all passages of MedQuAD, BioASQ and PubMedQA),
and of 2Wiki over its corpus. Gold is cited when an evidence of the answer lies in a gold document;
"share" is that of the gold documents that are cited, of which questions of several steps need more
than one. Differences are paired, with a bootstrap. One line a question in
FOLDER/machines.jsonl; a stopped run goes on."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from corpora import DATA
from held_out import (
    Asked,
    names_of,
    of_2wiki,
    of_research,
    require_built,
    settings_of,
)
from natural.published import hash_of

from osler.build import roles_of
from osler.build.knowledge import open_knowledge_base
from osler.build.live import with_knowledge
from osler.build.models import load_encoder, load_roles
from osler.build.strategies import build_solver
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.settings import Settings
from osler.trace import Run, Solver
from osler_lab.evaluate.intervals import mean, proportion

STRATEGIES: dict[str, dict[str, Any]] = {
    "rag": {"kind": "rag"},
    "guided": {"kind": "tc-rag"},
}
SPLIT = Path(__file__).with_name("machines_split.json")
Result = dict[str, Any]


async def ask_one(solver: Solver, asked: Asked) -> Result:
    run, began = Run(), perf_counter()
    solution = await solver.solve(asked.question, run)
    cited = set().union(*(names_of(one.hit) for one in solution.answer.evidence))
    return {
        "gold": bool(asked.gold & cited),
        "share": len(asked.gold & cited) / len(asked.gold),
        "answered": bool(solution.answer.statements),
        "calls": run.usage.calls,
        "searches": run.usage.searches,
        "seconds": perf_counter() - began,
        "halt": solution.halt.value,
    }


def choose_questions(data: Path, questions: int, hops: int) -> list[Asked]:
    """Open questions of the held-out list, and of 2Wiki, in one shuffled order."""
    held_out = set(json.loads(SPLIT.read_text())["held_out"])
    chance = random.Random(0)
    every = [one for one in of_research(data) if hash_of(one.question.id) in held_out]
    opened = [replace(one, question=replace(one.question, options=())) for one in every]
    chosen = chance.sample(opened, min(questions, len(opened)))
    chosen += chance.sample(of_2wiki(data), hops)
    chance.shuffle(chosen)
    return chosen


async def build_solvers(
    settings: Settings, kb: KnowledgeBase, encoder: Encoder
) -> dict[str, Solver]:
    solvers = {}
    for name, strategy in STRATEGIES.items():
        chosen = Settings.model_validate({**settings.model_dump(), "strategy": strategy})
        models = await load_roles(chosen, roles_of(chosen))
        solvers[name] = build_solver(chosen, with_knowledge(chosen, models, kb, encoder, None))
    return solvers


async def go(given: argparse.Namespace) -> list[Result]:
    asked = choose_questions(given.data, given.questions, given.hops)
    given.work.mkdir(parents=True, exist_ok=True)
    log, end = given.work / "machines.jsonl", perf_counter() + 60 * given.minutes
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    known: dict[str, Result] = {row["id"]: row for row in map(json.loads, lines)}
    solvers = {}
    for name in ("research", "2wiki"):
        settings = settings_of(given.work, name, given.kb)
        require_built(settings, name, given.data)
        kb, encoder = open_knowledge_base(settings), load_encoder(settings)
        solvers[name] = await build_solvers(settings, kb, encoder)
    with log.open("a", encoding="utf-8") as out:
        for number, one in enumerate(asked):
            if one.question.id in known or perf_counter() > end:
                continue
            row: Result = {"id": one.question.id, "set": one.set}
            for name, solver in solvers["2wiki" if one.set == "2wiki" else "research"].items():
                if name != "guided" or number < given.guided:
                    row[name] = await ask_one(solver, one)
            known[row["id"]] = row
            out.write(json.dumps(row) + "\n")
            out.flush()
    return list(known.values())


def print_table(results: Sequence[Result]) -> None:
    columns = ("n", "gold cited", "answered", "share", "calls", "searches", "seconds")
    print(f"{'':10}" + "".join(f"{column:>24}" for column in columns))
    for name in STRATEGIES:
        own = [result[name] for result in results if name in result]
        if not own:
            continue
        cells = [str(len(own))]
        for key in ("gold", "answered"):
            share = proportion(sum(one[key] for one in own), len(own))
            cells.append(str(share))
        cells.append(str(mean([one["share"] for one in own])))
        costs = ("calls", "searches", "seconds")
        cells += [f"{mean([float(one[key]) for one in own]).value:.2f}" for key in costs]
        print(f"{name:10}" + "".join(f"{cell:>24}" for cell in cells))
    if pairs := [result for result in results if "guided" in result]:
        for key in ("gold", "share"):
            gain = mean([float(r["guided"][key]) - float(r["rag"][key]) for r in pairs])
            print(f"guided - rag, {key}: {gain}, n {len(pairs)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--kb", type=Path, help="a home that holds all passages of the data")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--hops", type=int, default=100, help="questions of 2Wiki")
    parser.add_argument("--guided", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--work", type=Path, required=True, help="knowledge base and results; kept")
    results = asyncio.run(go(parser.parse_args()))
    for name in ("research", "2wiki"):
        print(f"\n{name}")
        print_table([row for row in results if (row["set"] == "2wiki") == (name == "2wiki")])


if __name__ == "__main__":
    main()
