"""A planner trained here, end to end: explore, judge, pairs, SFT, DPO, and what it finds.

    python benchmarks/train_planner.py --work FOLDER [--only data,explore,judge,make]
    python benchmarks/train_planner.py --work FOLDER --only tune [--sft-options "--epochs 3"]
    python benchmarks/train_planner.py --work FOLDER --only evaluate,table [--store]

Questions and gold documents are those of `benchmarks/planning.py`, in one knowledge base. The
part that is held out is drawn by a hash of each question's words (`osler.train.spo.case`), but for
LiveQA: its 20 questions with gold documents are all held out, and those that have a reference
answer alone are trained on. Queries are explored without a model (`wording`), and judged by gold
documents, or, where there are none, by how much of the reference answer's telling words stand in
what was found.

Every stage goes on where it stopped: the work folder is the checkpoint.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import planning
from messages import messages
from planning import DATA, SETS, SOURCES, Asked, Entry, figures, measured
from quality import figure, store

from osler.app.config import Settings
from osler.app.wiring import training
from osler.app.wiring.knowledge import open_knowledge_base
from osler.app.wiring.models import load_roles
from osler.evaluate.datasets import data_set
from osler.evaluate.record import Gold, Sample
from osler.llm.core.base import Sampling
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.plan import MOST
from osler.methods.omni.planners import SourcePlanner
from osler.methods.omni.planners.fixed import OriginalQuestion
from osler.methods.omni.planners.prompting import FORMS, SYSTEM, Form, Prompting, Proposer
from osler.methods.omni.planners.query2doc import Query2Doc
from osler.methods.omni.planners.terms import TermExtractor
from osler.train import card, record
from osler.train.spo import job, recipe
from osler.train.spo.case import TrainingCase, part_of, read_cases, to_line

STAGES = ("data", "explore", "judge", "make", "tune", "evaluate", "table")
PLANNED = (planning.ONE_SEARCH, "original", "query2doc", "prompting", "sft", "sft-dpo", "dpo")
"""Rows of the table (Omni-RAG Table 7, with Original Question)."""
TOKENS = 400
"""Of a plan, at most."""


@dataclass(frozen=True)
class Parts:
    train: tuple[TrainingCase, ...]
    test: tuple[Asked, ...]
    entries: tuple[Entry, ...]


def gathered(data: Path, n_train: int, n_test: int, seed: int, n_long: int = 0) -> Parts:
    """So many questions of each set and part, and the documents of all, with some beside;
    `n_long` of them are messages of patients (`benchmarks/messages.py`)."""
    chance = random.Random(seed)
    bio, pub, live = planning.bioasq(data), planning.pubmedqa(data), planning.liveqa(data)
    med = planning.medquad(data, chance, 4 * (n_train + n_test))
    train: list[TrainingCase] = []
    test: list[Asked] = []
    for each, _ in (bio, pub, med):
        asked = list({one.question.id: one for one in each}.values())  # MedQuAD has ids twice
        held = [one for one in asked if part_of(one.question, seed=seed) == "held-out"]
        rest = [one for one in asked if part_of(one.question, seed=seed) == "train"]
        test += chance.sample(held, min(n_test, len(held)))
        chosen = chance.sample(rest, min(n_train, len(rest)))
        train += [_case(one, seed) for one in chosen]
    test += chance.sample(live[0], min(n_test, len(live[0])))
    train += _referenced(data, {one.question.text for one in live[0]})[:n_train]
    more: list[Entry] = []
    if n_long:
        asked_of = frozenset(id for one in test for id in one.gold)
        pages = _by_subject(planning.medquad_pages(data), asked_of)
        texts = [one.question.text for one in test]
        written = messages(data, pages, texts, chance)[:n_long]
        train += [_case(one, seed) for one in written]
        more = [entry for page in pages.values() for entry in page]
    gold = {id for one in test for id in one.gold} | {id for one in train for id in one.documents}
    every = {entry.id: entry for _, entries in (bio, pub, live, med) for entry in entries}
    every |= {entry.id: entry for entry in more}
    beside = sorted(every.keys() - gold)
    kept = gold | set(chance.sample(beside, min(planning.BESIDE, len(beside))))
    return Parts(tuple(train), tuple(test), tuple(e for id, e in every.items() if id in kept))


def _by_subject(
    pages: Iterable[list[tuple[Asked, Entry]]], tested: frozenset[str]
) -> dict[str, list[Entry]]:
    """Subject to answers; without the pages that a question of the test is about."""
    found: dict[str, list[Entry]] = {}
    for page in pages:
        for _, entry in page:
            found.setdefault(entry.title, []).append(entry)
    return {s: of for s, of in found.items() if tested.isdisjoint(entry.id for entry in of)}


def _case(asked: Asked, seed: int) -> TrainingCase:
    sample = Sample(asked.set, "long", asked.question, Gold())
    return TrainingCase(sample, tuple(sorted(asked.gold)))


def _referenced(data: Path, tested: set[str]) -> list[TrainingCase]:
    """LiveQA's questions that name no document of ours, with their reference answers."""
    samples = data_set("liveqa").load(data / "A_questions").samples
    return [
        TrainingCase(replace(sample, task="liveqa"))
        for sample in samples
        if " ".join(sample.question.text.split()) not in tested
    ]


def settings_of(work: Path, **more: Any) -> Settings:
    given = {"home": work, "strategy": {"kind": "omni-rag"}, "kb": {"sources": SOURCES}, **more}
    return Settings.model_validate(given)


def prepare(given: argparse.Namespace) -> None:
    """The two parts, and the knowledge base."""
    if (given.work / "built").exists():
        return
    parts = gathered(given.data, given.train, given.test, given.seed, given.long)
    planning.build(Settings.model_validate({"home": given.work}), parts.entries, given.data)
    (given.work / "train.jsonl").write_text(
        "".join(f"{to_line(case)}\n" for case in parts.train), encoding="utf-8"
    )
    (given.work / "test.jsonl").write_text("".join(_asked(parts.test)), encoding="utf-8")
    (given.work / "built").touch()


def _asked(asked: Iterable[Asked]) -> Iterator[str]:
    for one in asked:
        told = {"set": one.set, "id": one.question.id, "question": one.question.text}
        yield json.dumps({**told, "gold": sorted(one.gold)}, ensure_ascii=False) + "\n"


def tested(work: Path) -> list[Asked]:
    from osler.types import Question

    lines = (work / "test.jsonl").read_text("utf-8").splitlines()
    found = [json.loads(line) for line in lines]
    return [
        Asked(one["set"], Question(one["id"], one["question"]), frozenset(one["gold"]))
        for one in found
    ]


def explore(given: argparse.Namespace) -> None:
    cases = tuple(read_cases(given.work / "train.jsonl"))
    settings = settings_of(given.work, sampling={"seed": given.seed})
    work = training.ExploringWork(settings, given.work / "spo", cases, "wording", 6, given.at_once)
    asyncio.run(work.run(_say))


def judge(given: argparse.Namespace) -> None:
    settings = settings_of(given.work, sampling={"seed": given.seed})
    work = training.JudgingWork(settings, given.work / "spo", "gold-or-answer", jobs=given.at_once)
    asyncio.run(work.run(_say))


def make(given: argparse.Namespace) -> None:
    """The two data sets, with their cards."""
    folder = given.work / "spo"
    name, stage = job.chosen_judge(folder)
    chosen = recipe.RecordRecipe(
        job.offers_of(folder),
        given.seed,
        choice=given.choice,
        form=given.prompt,
        at_most=given.queries,
    )
    for kind, records in (("sft", recipe.sft_records), ("dpo", recipe.dpo_records)):
        made = recipe.RecordTally()
        lines = (one.line for one in records(chosen, stage.results(), made))
        out = given.work / f"{kind}-data"
        record.write_records(out, lines)
        explored = job.exploration_of(folder)
        card.keep_facts(out, recipe.recipe_facts(chosen, made, explored, name))
        card.write_card(out)
        print(f"{kind}: {made.size.records} records of {made.cases}; {made.summary}; {out}")


def tune(given: argparse.Namespace) -> None:
    """SFT, DPO after it, and DPO alone, as the command line has them; each as a GGUF file too."""
    work, osler = given.work, [sys.executable, "-m", "osler", "train"]
    base = ["--base", given.base] if given.base else []
    sft, dpo = given.sft_options.split(), given.dpo_options.split()
    tuned = work / "tuned"
    runs: dict[str, list[str]] = {
        "sft": ["sft", str(work / "sft-data"), *sft],
        "sft-dpo": ["dpo", str(work / "dpo-data"), "--adapter", str(tuned / "sft"), *dpo],
        "dpo": ["dpo", str(work / "dpo-data"), *dpo],
    }
    for name, words in runs.items():
        out, file = tuned / name, tuned / f"{name}.gguf"
        if file.exists():
            continue
        # What the folder holds is not done again, so a run that was stopped goes on.
        subprocess.run([*osler, *words, *base, "--out", str(out)], check=True)  # noqa: S603
        written = [*osler, "gguf", "--adapter", str(out), *base, "--out", str(file)]
        subprocess.run(written, check=True)  # noqa: S603


async def evaluate(given: argparse.Namespace) -> None:
    """Question by question, planner by planner; what was done before is not done again."""
    log = given.work / "results.jsonl"
    done = {(one["set"], one["id"], one["planner"]) for one in _results(given.work)}
    files = {path.stem: str(path) for path in sorted((given.work / "tuned").glob("*.gguf"))}
    files |= dict(word.split("=", 1) for word in given.gguf or ())
    for name in [*given.planners.split(","), *files]:
        left = [a for a in tested(given.work) if (a.set, a.question.id, name) not in done]
        if not left:
            continue
        random.Random(given.seed).shuffle(left)  # a run that was stopped has some of each set
        chosen = {"kind": "gguf", "path": files[name]} if name in files else {}
        model = {"threads": 1, "slots": given.at_once, "context": 2048, **chosen}
        settings = settings_of(given.work, model=model)
        with open_knowledge_base(settings) as kb:
            made = planning.searches(settings, kb)
            planner = await _planner(settings, name, given.prompt, asking=given.asking)
            gate = asyncio.Semaphore(given.at_once)

            async def one(
                asked: Asked,
                name: str,
                planner: SourcePlanner | None,
                made: planning.Searches,
                gate: asyncio.Semaphore,
            ) -> None:
                async with gate:
                    result = await measured(asked, name, planner, made)
                with log.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(result) + "\n")

            await asyncio.gather(*(one(asked, name, planner, made, gate) for asked in left))
            print(f"{name}: {len(left)} questions", flush=True)


async def _planner(
    settings: Settings, name: str, form: Form, *, asking: bool
) -> SourcePlanner | None:
    if name == planning.ONE_SEARCH:
        return None
    offers = tuple(map(SourceDescription, SOURCES))
    ready = (await load_roles(settings, ["planner"]))["planner"]
    sampling = Sampling(temperature=0.0, max_tokens=planning.TOKENS.get(name, TOKENS), top=0)
    system = "" if name in planning.TOKENS else SYSTEM
    speaker = Speaker(ready.model, "planner", sampling, ready.constrains, system=system)
    if name == "original":
        return OriginalQuestion(TermExtractor(speaker), offers)
    if name == "query2doc":
        return Query2Doc(speaker, TermExtractor(speaker), offers)
    return Prompting(
        Proposer(speaker, offers, form="full" if name == "prompting" else form, asking=asking)
    )


def _results(work: Path) -> list[dict[str, Any]]:
    log = work / "results.jsonl"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]


def table(results: Sequence[dict[str, Any]]) -> str:
    lines = ["| set | planner | n | recall@10 | nDCG@10 | valid | queries | words |"]
    lines.append("|---|---|--:|---|---|--:|--:|--:|")
    for name, planner, of in rows(results):
        recall, ndcg = figures(of)
        valid = sum(one["origin"] == "planner" for one in of) / len(of)
        words = [n for one in of for n in one["words"]]
        lines.append(
            f"| {name} | {planner} | {len(of)} | {recall} | {ndcg} | {valid:.2f}"
            f" | {sum(one['queries'] for one in of) / len(of):.1f}"
            f" | {sum(words) / len(words) if words else 0:.1f} |"
        )
    return "\n".join(lines)


def rows(results: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    names = [*PLANNED, *sorted({one["planner"] for one in results} - set(PLANNED))]
    for set_ in (*SETS, "all"):
        for planner in names:
            of = [one for one in results if one["planner"] == planner]
            of = of if set_ == "all" else [one for one in of if one["set"] == set_]
            if of:
                yield set_, planner, of


def part(results: Sequence[dict[str, Any]], given: argparse.Namespace) -> dict[str, Any]:
    """The part of `benchmarks/quality.toml`."""
    found: dict[str, Any] = {
        "script": "benchmarks/train_planner.py",
        "train": len(read_cases(given.work / "train.jsonl")),
        "seed": given.seed,
    }
    for set_, planner, of in rows(results):
        recall, ndcg = map(figure, figures(of))
        found.setdefault(set_, {})[planner] = {"recall10": recall, "ndcg10": ndcg}
    return found


def _say(stage: str, done: int, total: int | None) -> None:
    print(f"{stage}: {done} of {total}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="kept; the checkpoint")
    parser.add_argument("--only", default="data,explore,judge,make", help=", ".join(STAGES))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--train", type=int, default=150, help="questions of each set")
    parser.add_argument("--long", type=int, default=0, help="messages of patients to train on")
    parser.add_argument("--test", type=int, default=40, help="questions of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--choice", default="random", choices=("random", "best"))
    parser.add_argument("--queries", type=int, default=MOST, help="of a source in a plan learnt")
    parser.add_argument("--prompt", default="full", choices=FORMS, help="of the tuned planners")
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--base", default="", help="model to tune; else the packaged one")
    parser.add_argument("--sft-options", default="", help='as "--epochs 3 --batch 16"')
    parser.add_argument("--dpo-options", default="", help='as "--epochs 1 --batch 16"')
    parser.add_argument(
        "--planners", default="one-search,original,prompting", help="that need no tuning"
    )
    parser.add_argument(
        "--gguf", action="append", help="NAME=FILE: a planner tuned elsewhere; repeatable"
    )
    parser.add_argument(
        "--asking", action="store_true", help="plans evaluated now must have a query (grammar)"
    )
    parser.add_argument("--store", action="store_true", help="write into quality.toml")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"no data in {given.data}", file=sys.stderr)
        return 1
    given.work.mkdir(parents=True, exist_ok=True)
    for stage in given.only.split(","):
        match stage:
            case "data":
                prepare(given)
            case "explore":
                explore(given)
            case "judge":
                judge(given)
            case "make":
                make(given)
            case "tune":
                tune(given)
            case "evaluate":
                asyncio.run(evaluate(given))
            case "table":
                results = _results(given.work)
                print(table(results))
                if given.store:
                    store("train_planner", part(results, given))
            case _:
                parser.error(f"there is no stage {stage}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
