"""KAG-Thinker end to end on questions of several hops, with the model that is configured.

    python benchmarks/multihop.py DATA [--log FILE] [--set 2wiki musique] [--part test] [--n 100]
    python benchmarks/multihop.py DATA --log FILE --table

DATA is the folder with `2wikimultihopqa`, `musique` and `hotpotqa`. The corpus that comes with each
set is the knowledge base. Each question is answered in the ways named, and written to the log as it
is done; a run that was stopped goes on where it stopped. `--table` only prints what the log holds.
`multihop_split.json` keeps the questions of 2wiki and musique that may be learnt from (dev) from
the held-out ones (test), by hashes of their ids.

| way | what it is |
|---|---|
| planned | the model's plan and its boundary |
| no boundary | the plan of `planned` and the model, everything looked up |
| rag | one search with the question, one answer from what was found |
| rule | nothing is read: the first of two things named, "yes" to what asks yes or no |
| direct | the model's own answer, always boxed: its least probability is calibrated |

The answer is what the last step that has one says (the box), as the packaged model words no
answers. Recall is of what the steps found; of `rag`, of the first five passages. EM and F1 as
HotpotQA's script. Bounds (two lookups a plan, one search a lookup, two passages of 350 characters,
60 characters of reasoning) keep a question to seconds on one core.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import string
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

from osler.answer import UNDECIDED, Decision
from osler.build import Parts
from osler.build.live import live_parts
from osler.build.models import load_encoder
from osler.errors import MalformedOutput
from osler.kb.base import KnowledgeBase
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, Sampling
from osler.llm.core.spans import answer_span, least_probability
from osler.methods.kag import boundary
from osler.methods.kag.boundary import Boundary, GenerateThenAssess, NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import LogicalPlan
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.parse import boxed_grammar, reply_answer
from osler.methods.kag.planner import Decomposer, FormPlanner, GivenForms
from osler.methods.kag.solver import Thinker
from osler.prompts import render_prompt
from osler.retrieve import look_up
from osler.settings import Settings
from osler.trace import BoundaryChecked, FormSolved, FormsPlanned, Retrieved, Run
from osler.types import Answer, Hit, Question, Retriever
from osler_lab.evaluate.intervals import difference, mean, proportion

SEED, K, REFERENCE, BRIEF = 0, 2, 350, 60
WAYS = ("planned", "no boundary", "rag", "rule", "direct")
SPLIT = Path(__file__).with_name("multihop_split.json")
SHOWN = 5
"""Passages that count for recall."""


@dataclass(frozen=True)
class Item:
    id: str
    question: str
    answer: str
    gold: tuple[str, ...]
    """Ids of the documents that answer it; empty where the corpus has none of them."""
    others: tuple[str, ...] = ()
    """Other wordings of the answer."""


@dataclass
class Row:
    set: str
    id: str
    way: str
    asked: str
    gold: str
    answer: str
    seconds: float
    searches: int = 0
    calls: int = 0
    recall: float | None = None
    """Share of the question's passages that a search found; `None` where there are none."""
    steps: int = 0
    origin: str = ""
    processor: float = 0.0
    """Seconds of the processor."""
    others: tuple[str, ...] = ()
    decisions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def em(self) -> int:
        return max(int(normalised(self.answer) == normalised(one)) for one in self.golds)

    @property
    def f1(self) -> float:
        return max(f1(self.answer, one) for one in self.golds)

    @property
    def golds(self) -> tuple[str, ...]:
        return (self.gold, *self.others)


def items_2wiki(folder: Path) -> tuple[list[Item], list[dict[str, str]]]:
    """Those questions all of whose subjects are titles of the corpus."""
    corpus = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    titles = {each["title"] for each in corpus}
    items = []
    for row in json.loads((folder / "questions.json").read_text(encoding="utf-8")):
        gold = tuple(dict.fromkeys(fact[0] for fact in row["evidence"]))
        if set(gold) <= titles:
            items.append(Item(row["id"], row["question"], row["answer"], gold))
    return items, corpus


def items_hotpotqa(folder: Path) -> tuple[list[Item], list[dict[str, str]]]:
    """Those with passages first; then questions whose passages are not there."""
    listed = json.loads((folder / "train_corpus.json").read_text(encoding="utf-8"))
    corpus = [{"title": title, "text": "".join(text)} for title, text in listed.items()]
    items = [
        Item(
            row["_id"],
            row["question"],
            row["answer"],
            tuple(dict.fromkeys(fact[0] for fact in row["supporting_facts"])),
        )
        for row in json.loads((folder / "qa_train.json").read_text(encoding="utf-8"))
    ]
    other = folder.parent / "r1_searcher_eval" / "hotpotqa_500.jsonl"
    for line in other.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        items.append(Item(f"r1-{row['idx']}", row["question"], row["answer"], ()))
    return items, corpus


def items_musique(folder: Path) -> tuple[list[Item], list[dict[str, str]]]:
    """Its corpus has several paragraphs of a title: each is a document of its own."""
    listed = json.loads((folder / "train_corpus.json").read_text(encoding="utf-8"))
    corpus = [{"id": f"p{n}", **each} for n, each in enumerate(listed)]
    by_text = {(each["title"], each["text"]): each["id"] for each in corpus}
    items = []
    for row in json.loads((folder / "qa_train.json").read_text(encoding="utf-8")):
        told = [(p["title"], p["paragraph_text"]) for p in row["paragraphs"] if p["is_supporting"]]
        gold = tuple(by_text[each] for each in told if each in by_text)
        others = tuple(map(str, row["answer_aliases"]))
        items.append(Item(row["id"], row["question"], str(row["answer"]), gold, others))
    return items, corpus


SETS = {
    "musique": ("musique", items_musique),
    "2wiki": ("2wikimultihopqa", items_2wiki),
    "hotpotqa": ("hotpotqa", items_hotpotqa),
}


def chosen(name: str, items: Sequence[Item], part: str, n: int) -> list[Item]:
    """Those of a part of the split; without a split a seeded sample, where questions without
    passages stand last."""
    split = json.loads(SPLIT.read_text(encoding="utf-8")).get(name)
    if split is not None:
        by_key = {hashlib.sha256(item.id.encode()).hexdigest()[:10]: item for item in items}
        return [by_key[key] for key in split[part]][:n]
    chance = random.Random(SEED)
    answered = [item for item in items if item.gold]
    rest = [item for item in items if not item.gold]
    chance.shuffle(answered)
    chance.shuffle(rest)
    return (answered + rest)[:n]


def normalised(text: str) -> str:
    """As SQuAD: lower case, without punctuation and articles, single spaces."""
    plain = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def f1(answer: str, gold: str) -> float:
    """Of words; yes and no count whole, as in HotpotQA's script."""
    said, wanted = normalised(answer), normalised(gold)
    if said != wanted and {"yes", "no", "noanswer"} & {said, wanted}:
        return 0.0
    same = sum((Counter(said.split()) & Counter(wanted.split())).values())
    return 2 * same / (len(said.split()) + len(wanted.split())) if same else 0.0


def guess_answer(question: str) -> str:
    """What the form of a question alone gives: the first of two things named, else "yes" where
    it asks yes or no, else nothing."""
    either = re.search(
        r"(?:,|\b(?:was|is|were|are|between))\s+([^,]+?)\s+or\s", question, re.IGNORECASE
    )
    if either:
        return either[1]
    asks = re.match(r"(?:are|is|was|were|do|does|did|has|have)\b", question, re.IGNORECASE)
    return "yes" if asks else ""


@dataclass
class Bench:
    """What answers the questions of one set."""

    name: str
    settings: Settings
    parts: Parts
    ways: Sequence[str] = WAYS

    @property
    def speaker(self) -> Speaker:
        ready = self.parts.models["reader"]
        sampling = Sampling(0.6, 200, seed=SEED)
        return Speaker(ready.model, "reader", sampling, ready.constrains, BRIEF)

    @property
    def retriever(self) -> Retriever:
        return self.parts.retriever("multihop", self.parts.sources)

    async def item(self, item: Item) -> list[Row]:
        """The ways asked for; of `planned` and `no boundary` the plan is made once, so that the
        boundary alone tells them apart."""
        made = []
        if "planned" in self.ways:
            planner = Decomposer(self.speaker, example=True)
            first, plan = await self.think(item, "planned", planner, tau=True)
            second, _ = await self.think(item, "no boundary", GivenForms(plan), tau=False)
            second.origin = first.origin
            made += [first, second]
        if "rag" in self.ways:
            made.append(await self.rag(item))
        if "rule" in self.ways:
            row = self.row(item, "rule", Run(seed=SEED), time.perf_counter())
            row.answer = guess_answer(item.question)
            made.append(row)
        if "direct" in self.ways:
            made.append(await self.direct(item))
        return made

    async def think(
        self, item: Item, way: str, planner: FormPlanner, *, tau: bool
    ) -> tuple[Row, LogicalPlan]:
        run, began = Run(seed=SEED), time.perf_counter()
        kept = Kept(planner)
        bound = GenerateThenAssess(self.speaker, examples=True) if tau else NoBoundary()
        await self.thinker(kept, bound).solve(Question(item.id, item.question), run)
        solved = [event for event in run.events if isinstance(event, FormSolved)]
        row = self.row(item, way, run, began)
        row.answer = next((step.answer for step in reversed(solved) if step.answer), "")
        found = [event for event in run.events if isinstance(event, Retrieved)]
        row.recall = recall({hit.passage for each in found for hit in each.hits}, item)
        row.steps = len(solved)
        row.origin = next(e.origin for e in run.events if isinstance(e, FormsPlanned))
        row.decisions = [
            {"known": e.known, "p": e.probability, "self": e.self_check, "answer": e.answer}
            for e in run.events
            if isinstance(e, BoundaryChecked)
        ]
        return row, kept.plan

    def thinker(self, planner: FormPlanner, bound: Boundary) -> Thinker:
        focuser, speaker = Focuser(self.speaker, REFERENCE), self.speaker
        sources = self.parts.sources
        depth = DepthSolver(speaker, self.retriever, bound, focuser, sources=sources, k=K, turns=1)
        calculator, deducer = Calculator(speaker), Deducer(speaker)
        return Thinker(planner, depth, calculator, deducer, AnswerFinisher(speaker), Silent())

    async def rag(self, item: Item) -> Row:
        run, began, cpu = Run(seed=SEED), time.perf_counter(), time.process_time()
        found = await look_up(self.retriever, item.question, run, k=SHOWN)
        read = found.hits[:K]
        references = Focuser(self.speaker, REFERENCE).list_references(item.question, read)
        prompt = render_prompt(
            "kag/solve", "en", references=references, question=item.question, known=[]
        )
        answer = await self.speaker.ask(prompt, _read, run, grammar=boxed_grammar())
        row = self.row(item, "rag", run, began)
        row.processor = round(time.process_time() - cpu, 2)
        row.answer = answer
        row.recall = recall({hit.passage.id for hit in found.hits}, item)
        return row

    async def direct(self, item: Item) -> Row:
        run, began = Run(seed=SEED), time.perf_counter()
        prompt = render_prompt("kag/attempt", "en", question=item.question)
        reply = await self.speaker.ask(
            prompt,
            lambda reply: reply,
            run,
            grammar=boxed_grammar(reason=BRIEF),
            top=1,
            shown=boundary.example_turns("en"),
        )
        row = self.row(item, "direct", run, began)
        row.answer = _read(reply)
        if row.answer and (span := answer_span(reply.text)):
            sure = least_probability(reply.tokens, span)
            row.decisions = [{"p": sure.value if sure else None, "answer": row.answer}]
        return row

    def row(self, item: Item, way: str, run: Run, began: float) -> Row:
        seconds = round(time.perf_counter() - began, 2)
        usage = run.usage
        return Row(
            self.name,
            item.id,
            way,
            item.question,
            item.answer,
            "",
            seconds,
            usage.searches,
            usage.calls,
            others=item.others,
        )


def _read(reply: Completion) -> str:
    """Empty also for a reply that was cut in its box: it counts as wrong, like no answer."""
    try:
        return reply_answer(reply)
    except MalformedOutput:
        return ""


@dataclass
class Kept:
    """A planner that remembers its plan."""

    planner: FormPlanner
    plan: LogicalPlan = field(default_factory=lambda: LogicalPlan(()))

    async def decompose(self, question: Question, run: Run) -> LogicalPlan:
        self.plan = await self.planner.decompose(question, run)
        return self.plan


class Silent:
    """No words around the answer: the last step's is taken."""

    uses_draft = False
    writes_answer = False

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        return Answer()


def recall(passages: Iterable[str], item: Item) -> float | None:
    """By the passages' document ids, which are the titles."""
    found = {slug(id.partition(":")[2].rpartition("#")[0]) for id in passages}
    return fmean(slug(title) in found for title in item.gold) if item.gold else None


def slug(title: str) -> str:
    return re.sub(r"\W+", "", title).casefold()


async def answer(given: argparse.Namespace) -> None:
    """One question of each set in turn, so that a run that is stopped has both."""
    log = given.log
    done = Counter((row.set, row.id) for row in rows(log) if row.way in given.ways)
    with tempfile.TemporaryDirectory() as temporary:
        home = given.home or Path(temporary)
        benches = [await opened(name, home / name, given) for name in given.set]
        for turn in range(given.n):
            for bench, items in benches:
                if turn >= len(items) or done[bench.name, items[turn].id] >= len(given.ways):
                    continue
                found = await bench.item(items[turn])
                with log.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(asdict(row)) + "\n" for row in found)


async def opened(name: str, home: Path, given: argparse.Namespace) -> tuple[Bench, list[Item]]:
    where, read = SETS[name]
    items, corpus = read(given.data / where)
    settings = Settings.model_validate(
        {"home": home, "model": {"threads": 1}, "strategy": {"kind": "kag-thinker"}}
    )
    if not home.exists():  # noqa: ASYNC240
        build(settings, corpus)
    bench = Bench(name, settings, await live_parts(settings), given.ways)
    return bench, chosen(name, items, given.part, given.n)


def build(settings: Settings, corpus: Sequence[dict[str, str]]) -> None:
    settings.home.mkdir(parents=True)
    file = settings.home / "corpus.jsonl"
    lines = [
        json.dumps(
            {"id": each.get("id", each["title"]), "title": each["title"], "content": each["text"]}
        )
        for each in corpus
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    with KnowledgeBase.create(settings.kb.path) as kb:
        print(kb.add([file], source="wiki"))
        kb.build(load_encoder(settings))


def rows(log: Path) -> list[Row]:
    if not log.exists():
        return []
    return [Row(**json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def table(found: Sequence[Row]) -> None:
    print("| set | way | n | EM | F1 | recall@5 | searches | calls | seconds | processor s |")
    print("|---|---|--:|---|---|--:|--:|--:|--:|--:|")
    for name in SETS:
        for way in WAYS:
            of = [row for row in found if (row.set, row.way) == (name, way)]
            if of:
                print(line(name, way, of))
    for name in SETS:
        with_it, without = ([r for r in found if (r.set, r.way) == (name, way)] for way in WAYS[:2])
        if with_it:
            decisions(name, with_it)
            more = difference([r.f1 for r in without], [r.f1 for r in with_it])
            print(f"{name}: F1 with the boundary less without, paired: {more}")


def line(name: str, way: str, of: Sequence[Row]) -> str:
    told = [row.recall for row in of if row.recall is not None]
    return (
        f"| {name} | {way} | {len(of)} | {proportion(sum(row.em for row in of), len(of))}"
        f" | {mean([row.f1 for row in of])} | {fmean(told) if told else 0:.2f}"
        f" | {fmean(row.searches for row in of):.2f} | {fmean(row.calls for row in of):.1f}"
        f" | {median(row.seconds for row in of):.2f} | {median(row.processor for row in of):.2f} |"
    )


def decisions(name: str, of: Sequence[Row]) -> None:
    made = [each for row in of for each in row.decisions]
    boxed = [each for each in made if each["answer"]]
    sure = [each for each in boxed if each["self"] is not None]
    print(
        f"{name}: {len(made)} sub-questions assessed; {len(made) - len(boxed)} refused,"
        f" {len(boxed) - len(sure)} below tau, {sum(not e['self'] for e in sure)} not stood by,"
        f" {sum(e['known'] for e in made)} known; plans: {dict(Counter(r.origin for r in of))}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--log", type=Path, default=Path("multihop.jsonl"))
    parser.add_argument("--set", nargs="+", choices=SETS, default=["2wiki", "musique"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["planned", "rag"])
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--home", type=Path, help="folder of knowledge bases that are kept")
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        asyncio.run(answer(given))
    found = rows(given.log)
    table(found)


if __name__ == "__main__":
    main()
