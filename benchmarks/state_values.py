"""What TC-RAG's state values know: is gold cited, and is the answer right?

    python benchmarks/state_values.py --work FOLDER [--data FOLDER] [--questions N] [--minutes M]
    python benchmarks/state_values.py --work FOLDER --table

Sets: PubMedQA and BioASQ (questions of the experts' test part, one knowledge base of all their
passages and MedQuAD's: `--kb HOME` takes one that is built), 2Wiki (its corpus), and the 40 sample
questions. Each question is answered twice: from the first five hits of one search ("found"), and
from the first five that are no gold document ("gold-less"). The gate is open, so that there is an
answer to value each time; gold is cited when a quote lies in a gold document.

Measured are the area under the ROC curve (how often a good answer has the lower value than a bad
one) and the area under the risk-coverage curve (mean share of bad answers when the surest are
answered first; 0 is best), with bootstraps over questions. Opponents: cppl (the paper's), the
cosine of the best quote, the question's words that it covers, the search's score; a constant has
.500. Halves "dev" and "test" by a hash of the question: choose on one, report the other.

One line a case in FOLDER/state_values.jsonl; a run that was stopped goes on. Values of experts are
taken of all cases first, then those of the model, which cost seconds each, by chance of the seed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, TextIO

import multihop
import numpy as np
from sample_questions import samples

from osler.answer import plain_text
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.app.config import Settings
from osler.app.wiring import Parts, roles_of
from osler.app.wiring.composers import _verdict_chooser, evidence_gate
from osler.app.wiring.knowledge import build_sample, open_knowledge_base, open_or_create
from osler.app.wiring.live import with_knowledge
from osler.app.wiring.models import load_encoder, load_roles
from osler.errors import CapabilityMissing
from osler.llm.core.base import Likelihood, Message, Scored, score_all
from osler.methods.tcrag.evidence_values import (
    AnswersMonitor,
    EvidenceGain,
    OptionEntropy,
    QuestionGain,
    question_messages,
    read_documents,
)
from osler.methods.tcrag.monitor import (
    Cppl,
    Draft,
    Monitor,
    TokenMonitor,
    low_probability,
    mean_uct,
)
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.retrieve.relevance import CoverageRelevance
from osler.sources.catalogue import RESEARCH, WIKI
from osler.trace import Run
from osler.train.experts.pair_evaluation import area_under_curve
from osler.train.experts.searches import document_name, open_corpus, read_searches
from osler.train.experts.splits import read_split
from osler.types import Answer, Hit, Question

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
SETS = ("pubmedqa", "bioasq", "2wiki", "sample")
CELLS = ("found", "gold-less")
K, SEED = 5, 0
OPEN = QuoteThresholds(-1.0, -1.0)
Case = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    set: str
    question: Question
    gold: frozenset[str]
    """Names of documents; of the sample, ids of passages."""
    right: str = ""
    """Letter; empty for open questions."""


@dataclass
class RememberedScores:
    """A model that is not asked twice for one text after one context."""

    model: Likelihood
    known: dict[tuple[str, str], Scored] = field(default_factory=dict)

    async def score_all(
        self, context: Sequence[Message] | str, texts: Sequence[str]
    ) -> tuple[Scored, ...]:
        place = str(context)
        if lacking := [text for text in texts if (place, text) not in self.known]:
            scored = await score_all(self.model, context, lacking)
            self.known |= {(place, text): one for text, one in zip(lacking, scored, strict=True)}
        return tuple(self.known[place, text] for text in texts)

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        return (await self.score_all(context, [text]))[0]


def of_research(data: Path, sets: Sequence[str] = SETS) -> list[Asked]:
    """Questions that no expert learnt from, of PubMedQA, BioASQ, MedQuAD."""
    split = read_split(ROOT / "benchmarks/experts/split.json")
    labels = {**_pubmedqa_labels(data), **_bioasq_labels(data)}
    found = []
    for one in split.choose_items(read_searches(data), "test"):
        if one.source in sets:
            said = labels.get(one.id.partition(":")[2], "")
            options = ("yes", "no", "maybe")[: 3 if one.source == "pubmedqa" else 2]
            chosen = options if said in options else ()
            letter = "ABC"[options.index(said)] if chosen else ""
            found.append(Asked(one.source, Question(one.id, one.text, chosen), one.gold, letter))
    return found


def _pubmedqa_labels(data: Path) -> dict[str, str]:
    folder = data / "A_questions/pubmedqa"
    return {
        id: record["final_decision"]
        for name in ("test_set", "ori_pqal_rest")
        for id, record in json.loads((folder / f"{name}.json").read_text("utf-8")).items()
    }


def _bioasq_labels(data: Path) -> dict[str, str]:
    path = data / "A_questions/bioasq/bioasq_yesno_golden.json"
    return {
        one["id"]: str(one["exact_answer"]).casefold()
        for one in json.loads(path.read_text("utf-8"))["questions"]
    }


def of_sample() -> list[Asked]:
    every = samples("questions_en.jsonl") + samples("questions_zh.jsonl")
    return [
        Asked("sample", one.question, one.gold, one.answer if one.question.options else "")
        for one in every
    ]


def of_2wiki(data: Path) -> list[Asked]:
    items, _ = multihop.items_2wiki(data / "A_questions/multihop/2wikimultihopqa")
    return [Asked("2wiki", Question(f"2wiki:{i.id}", i.question), frozenset(i.gold)) for i in items]


def build_2wiki(settings: Settings, data: Path) -> None:
    _, corpus = multihop.items_2wiki(data / "A_questions/multihop/2wikimultihopqa")
    file = settings.home / "2wiki.jsonl"
    lines = [
        json.dumps({"id": str(n), "title": one["title"], "content": one["text"]})
        for n, one in enumerate(corpus)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    with open_or_create(settings) as kb:
        kb.add([file], source=WIKI)
        kb.build(load_encoder(settings))


def names_of(hit: Hit) -> set[str]:
    return {document_name(hit.passage), hit.passage.id, hit.passage.heading}


def half_of(id: str) -> str:
    return ("dev", "test")[hashlib.sha256(id.encode()).digest()[0] % 2]


@dataclass(frozen=True)
class Bench:
    """One set's knowledge base with what answers and values."""

    parts: Parts
    gate: EvidenceGate
    composer: ExtractiveComposer
    """Without a model: it ranks no quotes by likelihood and chooses no option by it."""
    coverage: CoverageRelevance
    sources: tuple[str, ...]

    @property
    def reader(self) -> Likelihood:
        model = self.parts.model_for("reader")
        if not isinstance(model, Likelihood):
            raise SystemExit(f"{model.name} scores no given text")
        return model

    async def first_pass(self, asked: Asked) -> list[Case]:
        """Both cases of a question, with the values that ask no language model."""
        search = self.parts.retriever("rag", self.sources)
        hits = await search.search(asked.question.text, k=4 * K)
        others = [hit for hit in hits if not asked.gold & names_of(hit)]
        return [
            await self._answer(asked, cell, given[:K])
            for cell, given in zip(CELLS, (hits, others), strict=True)
            if given
        ]

    async def _answer(self, asked: Asked, cell: str, hits: Sequence[Hit]) -> Case:
        question = asked.question
        began = time.perf_counter()
        answer = await self.composer.conclude(question, hits, "", Run(seed=SEED))
        quotes = [one.quote for one in answer.evidence]
        if not quotes:
            return {"id": question.id, "set": asked.set, "cell": cell, "silent": True}
        draft, memory = drafted(question, answer, hits)
        sureness = (await self.gate.weigh_evidence(question, hits)).sureness
        cosines = await self.parts.relevance.relevance(question.text, quotes)
        covered = await self.coverage.relevance(
            question.text, [q.passage.text for q in answer.evidence]
        )
        values = {
            "sureness": 1 - sureness.probability if sureness else 1.0,
            "cosine": -max(cosines),
            "coverage": -max(covered),
            "search score": -max(one.hit.score for one in answer.evidence),
        }
        if answer.sureness is not None and asked.right:
            values["verdict"] = 1 - answer.sureness.probability
        if self.parts.judge is not None:
            judged = await AnswersMonitor(self.parts.judge).state_value(draft, memory, Run())
            values["answers"] = judged.value
        return {
            "id": question.id,
            "set": asked.set,
            "cell": cell,
            "half": half_of(question.id),
            "gold": any(asked.gold & names_of(one.hit) for one in answer.evidence),
            "right": answer.option == asked.right if asked.right and answer.option else None,
            "values": values,
            "text": draft.text,
            "quotes": [[one.passage.id, one.start, one.end] for one in answer.evidence],
            "seconds": time.perf_counter() - began,
            "_asked": asked,
            "_answer": answer,
            "_hits": hits,
        }


def drafted(question: Question, answer: Answer, hits: Sequence[Hit]) -> tuple[Draft, MemoryStack]:
    memory = MemoryStack(question)
    memory.push(FrameKind.OBSERVATION, "", hits=tuple(hits))
    draft = Draft(plain_text(answer, question), (), (), answer)
    asked = question_messages(question, read_documents(draft, memory))
    return Draft(draft.text, (), asked, answer), memory


async def add_model_values(model: Likelihood, case: Case) -> None:
    """Adds the values that ask a language model, and the option where it has to choose it.

    Metrics of tokens read the text after the evidence, where a run has the whole stack.
    """
    asked, answer, hits = case["_asked"], case["_answer"], case["_hits"]
    question, remembered = asked.question, RememberedScores(model)
    draft, memory = drafted(question, answer, hits)
    documents = question_messages(question, read_documents(draft, memory))
    if question.options and answer.option is None:
        scored = await remembered.score_all(documents, question.options)
        means = [fmean(token.logprob for token in one.tokens) for one in scored]
        answer = replace(answer, option=question.letters[means.index(max(means))])
        case["right"] = answer.option == asked.right
        draft, memory = drafted(question, answer, hits)
    # One reading of each context scores the answer and all options.
    for context in (documents, question_messages(question, ())):
        await remembered.score_all(context, [draft.text, *question.options])
    monitors: dict[str, Monitor] = {
        "cppl": Cppl(remembered),
        "gain": EvidenceGain(remembered),
        "gain, whole": EvidenceGain(remembered, whole=True),
        "question-gain": QuestionGain(remembered),
        "uct": TokenMonitor(remembered),
        "uct-mean": TokenMonitor(remembered, "uct-mean", mean_uct),
        "low-prob": TokenMonitor(remembered, "low-prob", low_probability),
        "option-entropy": OptionEntropy(remembered),
        "option-entropy, change": OptionEntropy(remembered, change=True),
    }
    for name, monitor in monitors.items():
        with suppress(CapabilityMissing):
            case["values"][name] = (await monitor.state_value(draft, memory, Run())).value


async def add_text_values(
    model: Likelihood,
    chosen: Sequence[Asked],
    known: dict[tuple[str, str], Case],
    lines: TextIO,
    end: float,
) -> None:
    """Adds the values that read question and answer alone, to cases that are known."""
    for asked in chosen:
        for cell in CELLS:
            row = known.get((asked.question.id, cell), {})
            if "values" not in row or "cppl" in row["values"] or time.monotonic() > end:
                continue
            draft, memory = Draft(row["text"]), MemoryStack(asked.question)
            for name, monitor in (("cppl", Cppl(model)), ("question-gain", QuestionGain(model))):
                row["values"][name] = (await monitor.state_value(draft, memory, Run())).value
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            lines.flush()


async def open_bench(settings: Settings, name: str) -> Bench:
    models = await load_roles(settings, roles_of(settings))
    kb, encoder = open_knowledge_base(settings), load_encoder(settings)
    parts = with_knowledge(settings, models, kb, encoder, None)
    gate = evidence_gate(settings, parts)
    never = EvidenceGate(gate.coverage, gate.relevance, {"en": OPEN, "zh": OPEN})
    composer = ExtractiveComposer(
        never, judge=parts.judge, order=parts.order, verdicts=_verdict_chooser(settings, parts)
    )
    # Pages of MedQuAD would be easy to tell from research.
    sources = parts.sources if name != "research" else (RESEARCH,)
    return Bench(parts, gate, composer, CoverageRelevance(kb.term_rarity), sources)


def settings_of(work: Path, name: str, kb: Path | None) -> Settings:
    home = kb if kb and name == "research" else work / name
    home.mkdir(parents=True, exist_ok=True)
    return Settings.model_validate(
        {"home": home, "model": {"threads": 1}, "strategy": {"kind": "rag"}}
    )


def require_built(settings: Settings, name: str, data: Path) -> None:
    if settings.kb.path.exists():
        return
    if name == "sample":
        build_sample(settings)
    elif name == "2wiki":
        build_2wiki(settings, data)
    else:
        encoder = load_encoder(settings)
        open_corpus(data, settings.kb.path.parent, encoder, read_searches(data)).close()


async def measure(given: argparse.Namespace) -> None:
    given.work.mkdir(parents=True, exist_ok=True)
    log, end = given.work / "state_values.jsonl", time.monotonic() + 60 * given.minutes
    known = {(row["id"], row["cell"]): row for row in read_rows(given.work)}
    every = [*of_research(given.data), *of_2wiki(given.data), *of_sample()]
    chance, chosen = random.Random(SEED), []
    for name in SETS:
        own = [one for one in every if one.set == name]
        chosen += chance.sample(own, min(given.questions, len(own)))
    chance.shuffle(chosen)
    benches = {}
    for name in ("research", "2wiki", "sample"):
        settings = settings_of(given.work, name, given.kb)
        require_built(settings, name, given.data)
        benches[name] = await open_bench(settings, name)
    with log.open("a", encoding="utf-8") as lines:
        for full in (False, True):
            if full:
                await add_text_values(benches["sample"].reader, chosen, known, lines, end)
            for asked in chosen:
                if time.monotonic() > end:
                    return
                cells = [known.get((asked.question.id, c)) for c in CELLS]
                if all(
                    row is not None and (not full or "gain" in row.get("values", {"gain": 0}))
                    for row in cells
                ):
                    continue
                bench = benches.get(asked.set, benches["research"])
                for case in await bench.first_pass(asked):
                    if full and "values" in case:
                        began = time.perf_counter()
                        await add_model_values(bench.reader, case)
                        case["model seconds"] = time.perf_counter() - began
                    kept = {key: one for key, one in case.items() if not key.startswith("_")}
                    known[kept["id"], kept["cell"]] = kept
                    lines.write(json.dumps(kept, ensure_ascii=False) + "\n")
                    lines.flush()


def read_rows(work: Path) -> list[Case]:
    """The cases, each once: the last line of one stands."""
    path = work / "state_values.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return list({(row["id"], row["cell"]): row for row in rows}.values())


def area_under_risk(values: np.ndarray, good: np.ndarray) -> float:
    """Mean share of bad answers among the surest 1, 2, … n; ties share their places evenly."""
    order = np.argsort(values, kind="stable")
    bad = 1.0 - good[order].astype(float)
    _, inverse = np.unique(values[order], return_inverse=True)
    bad = (np.bincount(inverse, bad) / np.bincount(inverse))[inverse]
    return float((np.cumsum(bad) / np.arange(1, len(bad) + 1)).mean())


def auroc(values: np.ndarray, good: np.ndarray) -> float:
    return area_under_curve(list(zip(-values, good, strict=True)))


def bootstrapped(
    rows: Sequence[Case], label: str, names: Sequence[str], draws: int = 1_000
) -> dict[str, dict[str, tuple[float, ...]]]:
    """Value, low and high of AUROC, AURC and the gain in AUROC over the first of the values, by
    draws of questions."""
    ids = sorted({row["id"] for row in rows})
    place = {id: n for n, id in enumerate(ids)}
    owner = np.array([place[row["id"]] for row in rows])
    good = np.array([bool(row[label]) for row in rows])
    values = {name: np.array([row["values"][name] for row in rows]) for name in names}
    chance = np.random.default_rng(SEED)
    members = [np.flatnonzero(owner == n) for n in range(len(ids))]
    drawn = [chance.integers(0, len(ids), len(ids)) for _ in range(draws)]
    every = [np.arange(len(rows))]
    every += [np.concatenate([members[n] for n in one]) for one in drawn]
    measured: dict[str, dict[str, list[float]]] = {
        n: {"auroc": [], "aurc": [], "gain": []} for n in names
    }
    for at in every:
        if good[at].all() or not good[at].any():
            continue
        for name in names:
            area = auroc(values[name][at], good[at])
            measured[name]["auroc"].append(area)
            measured[name]["aurc"].append(area_under_risk(values[name][at], good[at]))
            measured[name]["gain"].append(area - measured[names[0]]["auroc"][-1])
    return {
        name: {
            key: (found[0], *map(float, np.quantile(found[1:] or found, (0.025, 0.975))))
            for key, found in own.items()
        }
        for name, own in measured.items()
    }


def print_tables(rows: Sequence[Case]) -> None:
    answered = [row for row in rows if "values" in row]
    print(f"{len(rows)} cases, {len(rows) - len(answered)} without an answer")
    for half in ("dev", "test"):
        for label in ("gold", "right"):
            for name in (*SETS, "all"):
                own = [
                    row
                    for row in answered
                    if row["half"] == half
                    and name in (row["set"], "all")
                    and row[label] is not None
                ]
                _print_table(own, f"{name}, {label}, {half} half", label)


def _print_table(own: Sequence[Case], title: str, label: str) -> None:
    full = [row for row in own if "cppl" in row["values"]]
    for kept, where in ((full, "with the model's values"), (own, "all cases, without the model")):
        good = [bool(row[label]) for row in kept]
        if not kept or len({*good}) < 2:
            continue
        names = [n for n in sorted({*kept[0]["values"]}) if all(n in row["values"] for row in kept)]
        opponent = "cppl" if "cppl" in names else "cosine"
        names.sort(key=lambda n: n != opponent)
        print(f"\n**{title}**, {where}: n {len(kept)}, good {sum(good)}\n")
        print(f"| value | AUROC | AURC | AUROC - {opponent} |\n|---|---|---|---|")
        for name, found in bootstrapped(kept, label, names).items():
            cells = [f"{v:.3f} [{low:.3f}, {high:.3f}]" for v, low, high in found.values()]
            print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument(
        "--work", type=Path, required=True, help="knowledge bases and results; kept"
    )
    parser.add_argument("--kb", type=Path, help="a home that holds all passages of the data")
    parser.add_argument("--questions", type=int, default=150, help="of each set")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--table", action="store_true", help="only print what the log holds")
    given = parser.parse_args()
    if not given.table:
        asyncio.run(measure(given))
    print_tables(read_rows(given.work))


if __name__ == "__main__":
    main()
