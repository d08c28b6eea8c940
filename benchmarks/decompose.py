"""A small adapter that takes questions apart, beside the packaged model's outline.

    python benchmarks/decompose.py WORK --only data
    osler train alora WORK/data.jsonl --prompt kag/steps --invocation "<|im_end|>steps " \\
        --out WORK/a
    osler train gguf --adapter WORK/a --out WORK/steps.gguf
    python benchmarks/decompose.py WORK --part dev --ways steps,base
    python benchmarks/decompose.py WORK [--ways steps,outline]

One layout for training and asking: `decompose_letters.py`.

Trained on: 2Wiki's evidence triples and MuSiQue's decompositions of `multihop_split.json`'s *dev*
part, and phrases of our own over names of Hetionet and the sample graph (both languages), but for
120 to choose by (*dev*). Asked: their *test* part, and 100 questions a language of
`graph_templates.py`, whose wordings no training has. A plan is carried out with gold retrieval:
over the question's own evidence, or the raw relations of the graph. Recall@5: of the passages found
by the steps, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import multihop
from decompose_data import (
    RELATIONS,
    Case,
    ask_message,
    compared,
    known_names,
    letters_of,
    line_of,
    read_graphs,
    write_data,
)
from decompose_letters import plan_grammar, read_line, seen_grammar, write_line
from decompose_plans import COMPARED, Lookup, Plan, Step, carry_out, fill_results
from gold_plans import ROOT
from graph_templates import Relations

from osler.errors import ModelError
from osler.evaluate.intervals import difference, mean, proportion
from osler.llm.core.base import Sampling
from osler.llm.core.speaker import Speaker
from osler.llm.local.adapters import read_adapter
from osler.llm.local.model import LlamaCpp
from osler.llm.local.quantise import default_gguf
from osler.methods.kag.logical_forms import Deduce, Math, Retrieval
from osler.methods.kag.outline import Outliner
from osler.trace import Run
from osler.types import Question

SEEDS, AT_ONCE, HEAT = 5, 4, 0.7


def look_in_facts(facts: Sequence[Sequence[str]]) -> Lookup:
    """Gold retrieval: the fact of this subject whose relation has the most words of the one asked
    for; any subject where the question names none."""

    def look(subject: str, relation: str) -> set[str]:
        asked = set(re.findall(r"\w+", relation.casefold()))
        best: tuple[float, str] = (0.0, "")
        for near, said, far in facts:
            own = bare(near) == bare(subject) if near and subject else True
            words = set(re.findall(r"\w+", f"{said} {'' if near and subject else near}".casefold()))
            both = words | (
                set() if near and subject else set(re.findall(r"\w+", subject.casefold()))
            )
            share = len(asked & words) / max(1, len(asked | words)) if own and both else 0.0
            best = max(best, (share, far), key=lambda pair: pair[0])
        return {best[1]} if best[0] > 0 else set()

    return look


def bare(name: str) -> str:
    return multihop.normalised(re.sub(r"\([^)]*\)", "", name)) or name


def look_in_graph(relations: Relations, told: dict[str, str]) -> Lookup:
    english = {chinese: name for name, chinese in told.items()}
    known = {name.casefold(): name for pool in relations.pools.values() for name in pool}

    def look(subject: str, relation: str) -> set[str]:
        known_as = RELATIONS.get(relation, {"way": ">", "kinds": ()})
        name = english.get(subject, known.get(subject.casefold(), subject))
        follow = relations.to if known_as["way"] == ">" else relations.of
        return {far for kind in known_as["kinds"] for far in follow(kind, name)}

    return look


def is_right(case: Case, answer: Any) -> bool:
    if case.graph:
        if isinstance(answer, set):
            return answer == set(case.answer) if isinstance(case.answer, list) else False
        return answer is not None and type(answer) is type(case.answer) and answer == case.answer
    if isinstance(answer, bool):
        said = "yes" if answer else "no"
    elif isinstance(answer, set) and answer:
        said = min(answer)
    else:
        return False
    return bare(said) == bare(case.answer)


def from_forms(forms: Sequence[Any]) -> Plan | None:
    steps: list[Step] = []
    numbers: dict[str, int] = {}
    for form in forms:
        match form.action:
            case Retrieval(s=s, p=p, o=o):
                steps.append(
                    Step(s.name or f"#{numbers.get(s.alias, 1)}", p.type.replace("_", " "))
                )
                numbers[o.alias] = len(steps)
            case Math(content=content, target=target) if target in COMPARED:
                return Plan(tuple(steps), target, tuple(numbers.get(one, 1) for one in content))
            case Deduce(content=content, target=target):
                word = "same" if target == "shared" else compared(target)
                operands = tuple(numbers[one] for one in content if one in numbers)
                return Plan(tuple(steps), word, operands) if operands else Plan(tuple(steps))
            case _:
                pass
    return Plan(tuple(steps)) if steps else None


class Asker:
    """One way to take questions apart."""

    def __init__(self, way: str, work: Path, known: Sequence[str]) -> None:
        self.way, self.known = way, known
        way, _, seen = way.partition("+")  # "steps+seen": held to whole plans of the training
        self.lines = {row["completion"] for row in read_lines(work / "data.jsonl") if seen}
        self.relations: list[str] = json.loads((work / "relations.json").read_text("utf-8"))
        self.role = ""
        base, adapters = default_gguf(), []
        if way not in ("base", "outline"):
            file = work / f"{way}.gguf"
            try:
                self.role, adapters = read_adapter(file).prompt, [file]
            except ModelError:  # a whole model
                base = file
        self.model = LlamaCpp(
            base, name=way, context=2048, threads=1, slots=AT_ONCE, adapters=adapters
        )

    async def plan(self, case: Case, seed: int | None = None) -> Plan | None:
        heat = 0.0 if seed is None else HEAT
        if self.way == "outline":
            sampling = Sampling(heat, 200, seed=seed or 0, top=0)
            speaker = Speaker(self.model, "planner", sampling, constrains=True)
            asked = Question("", case.question)
            return from_forms((await Outliner(speaker).decompose(asked, Run(seed=seed or 0))).steps)
        letters = letters_of(case, self.known)
        if not letters:
            return None
        held = plan_grammar(letters, self.relations)
        held = seen_grammar(letters, self.lines) or held
        sampling = Sampling(heat, 60, seed=seed or 0, adapter=self.role, top=0, grammar=held)
        reply = await self.model.complete(ask_message(case.question, letters), sampling)
        return read_line(reply.text, letters)


async def ask(given: argparse.Namespace) -> None:
    """Case by case; what the log holds is not asked again."""
    log = given.work / f"{given.part}-asked.jsonl"
    done = {(row["way"], row["set"], row["id"]) for row in read_lines(log)}
    graphs = read_graphs(given.data)
    looks = {name: look_in_graph(*graph) for name, graph in graphs.items()}
    cases = [Case(**row) for row in read_lines(given.work / f"{given.part}.jsonl")]
    known = known_names(graphs)
    texts = ("2wiki", "musique") if given.part == "held" else ()
    searches = {name: await open_search(given, name) for name in texts}
    cases = mix_sets(cases, given.n)
    for way in given.ways.split(","):
        asker = Asker(way, given.work, known)
        left = [case for case in cases if (way, case.set, case.id) not in done]
        if way == "outline":
            left = [case for case in left if not case.graph]
        for start in range(0, len(left), AT_ONCE):
            part = left[start : start + AT_ONCE]
            began = time.perf_counter()
            plans = await asyncio.gather(*(asker.plan(case) for case in part))
            seconds = (time.perf_counter() - began) / len(part)
            for case, plan in zip(part, plans, strict=True):
                look = looks[case.graph] if case.graph else look_in_facts(case.facts)
                answer, found = carry_out(plan, look) if plan else (None, [])
                row: dict[str, Any] = {"way": way, "set": case.set, "id": case.id}
                row |= {"seconds": round(seconds, 2), "valid": plan is not None}
                row |= {"right": is_right(case, answer), "plan": plan.write() if plan else ""}
                if case.plan:
                    letters = letters_of(case, known)
                    row["gold"] = bool(plan and write_line(plan, letters) == line_of(case, known))
                if case.set in searches:
                    search, golds = searches[case.set]
                    row["recall"] = await recall(search, golds[case.id], case, plan, found)
                    row["rag"] = await recall(search, golds[case.id], case, None, [])
                with log.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(row, ensure_ascii=False) + "\n")


def mix_sets(cases: Sequence[Case], most: int) -> list[Case]:
    """At most so many of each set, in turns, so that a run that was stopped has some of each."""
    by_set: dict[str, list[Case]] = {}
    for case in cases:
        by_set.setdefault(case.set, []).append(case)
    columns = zip_longest(*(each[:most] for each in by_set.values()))
    return [case for row in columns for case in row if case]


async def ask_again(given: argparse.Namespace) -> None:
    """Whether five seeds (temperature `HEAT`) give plans of one shape."""
    cases = mix_sets([Case(**row) for row in read_lines(given.work / "held.jsonl")], 100)
    asker = Asker(given.ways.split(",")[0], given.work, known_names(read_graphs(given.data)))
    same = 0
    for n, case in enumerate(cases[: given.stable], 1):
        plans = await asyncio.gather(*(asker.plan(case, seed) for seed in range(SEEDS)))
        same += len({plan.shape if plan else None for plan in plans}) == 1
        print(f"one shape over {SEEDS} seeds: {same} of {n}", flush=True)


Search = Callable[[str], Any]


async def open_search(
    given: argparse.Namespace, name: str
) -> tuple[Search, dict[str, multihop.Item]]:
    asked = argparse.Namespace(
        data=given.data / "A_questions" / "multihop", ways=(), part="test", n=1000
    )
    bench, items = await multihop.opened(name, given.work / "home" / name, asked)

    async def search(words: str) -> list[str]:
        return [hit.passage.id for hit in await bench.retriever.search(words, k=multihop.SHOWN)]

    return search, {item.id: item for item in items}


async def recall(
    search: Search, item: multihop.Item, case: Case, plan: Plan | None, found: list[set[str]]
) -> float | None:
    """Recall@5 of the passages that the steps find, in turns, then of the question's own."""
    lists = []
    for step in plan.steps if plan else ():
        words = f"{step.relation} of {step.subject}" if step.subject else step.relation
        lists.append(await search(fill_results(words, found)))
    turns = [id for rank in range(multihop.SHOWN) for each in lists for id in each[rank : rank + 1]]
    turns += await search(case.question)
    return multihop.recall(list(dict.fromkeys(turns))[: multihop.SHOWN], item)


def read_lines(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def table(work: Path, part: str) -> None:
    rows = read_lines(work / f"{part}-asked.jsonl")
    print("| set | way | n | valid | as gold | right | recall@5 | less one search | s |")
    print("|---|---|--:|--:|--:|---|---|---|--:|")
    for set_ in sorted({row["set"] for row in rows}):
        for way in dict.fromkeys(row["way"] for row in rows):
            of = [row for row in rows if (row["set"], row["way"]) == (set_, way)]
            if not of:
                continue
            recalls = [row["recall"] for row in of if row.get("recall") is not None]
            base = [row["rag"] for row in of if row.get("rag") is not None]
            valid = sum(row["valid"] for row in of) / len(of)
            print(
                f"| {set_} | {way} | {len(of)} | {valid:.2f}"
                f" | {sum(row.get('gold', False) for row in of) / len(of):.2f}"
                f" | {proportion(sum(row['right'] for row in of), len(of))}"
                f" | {mean(recalls) if recalls else ''}"
                f" | {difference(base, recalls) if recalls else ''}"
                f" | {sum(row['seconds'] for row in of) / len(of):.2f} |"
            )
    by_way: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_way.setdefault(row["way"], {})[f"{row['set']} {row['id']}"] = row
    for set_ in ("2wiki", "musique"):
        for way in [way for way in by_way if way != "outline"]:
            keys = [k for k in by_way[way] if k.startswith(set_) and k in by_way.get("outline", {})]
            if keys:
                ours, base = (
                    [float(by_way[w][k]["right"]) for k in keys] for w in (way, "outline")
                )
                print(f"{set_}: right, {way} less outline, paired: {difference(base, ours)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--only", default="ask,table", help="data, ask, again, table")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--phrases", type=int, default=1000, help="questions of our own phrases")
    parser.add_argument(
        "--ways",
        default="steps,outline",
        help="outline, base, or WAY of WORK/WAY.gguf; WAY+seen: whole plans of the training",
    )
    parser.add_argument("--part", default="held", choices=("dev", "held"))
    parser.add_argument("--n", type=int, default=100, help="questions of each set")
    parser.add_argument("--stable", type=int, default=40, help="questions asked with 5 seeds")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for stage in given.only.split(","):
        match stage:
            case "data":
                write_data(given)
            case "ask":
                asyncio.run(ask(given))
            case "again":
                asyncio.run(ask_again(given))
            case _:
                table(given.work, given.part)


if __name__ == "__main__":
    main()
