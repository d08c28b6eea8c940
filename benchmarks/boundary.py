"""The knowledge boundary: searches saved at equal accuracy, and risk by coverage.

    python benchmarks/boundary.py --work FOLDER [--kb HOME] [--n 150] [--sets research]
    python benchmarks/boundary.py --work FOLDER --table

Questions of 2WikiMultihopQA (its corpus; none of the held-out ones of `multihop_split.json`) and
yes/no questions of BioASQ and PubMedQA (the experts' test part; `--kb` is a home that holds all
passages). The packaged model answers each one from its head (Table 2, with the examples that a
small model is shown), with the least probability of the box and its own verdict on it (Table 3),
and once more from the passages of one search. A policy keeps the answer from the head, or searches.

Signals: p (the least probability), the dual rule (p, and the verdict), the state value (mean
uncertainty of the box's tokens), the likeness of question, answer and top passage (that one costs
the search), and all of them in a logistic regression. "contrast" answers a yes/no question by which
of the two words is likelier after it than after no question, and is as sure as that margin.
Thresholds and weights are chosen on the half "dev" (by a hash of the id): the lowest threshold at
which accuracy is not below searching always; "controlled" goes down from the surest as long as the
interval of the difference there stays above -.05. The half "test" is reported. One line a question
in FOLDER/boundary.jsonl; a stopped run goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import multihop
import numpy as np
from corpora import DATA
from held_out import build_2wiki, half_of, of_research, settings_of
from sklearn.linear_model import LogisticRegression

from osler.app.config import Settings
from osler.app.wiring.live import live_parts
from osler.evaluate.intervals import mean, proportion
from osler.llm.core.base import Likelihood, Message, TokenScore, score_all
from osler.methods.kag.boundary import GenerateThenAssess, SignalValue
from osler.retrieve import look_up
from osler.trace import Run
from osler.types import Language

Row = dict[str, Any]
SETS = ("2wiki", "research")
SIGNALS = ("p", "dual", "state", "likeness", "all", "contrast")
LOSS = 0.05
"""Accuracy that a controlled threshold may lose."""


class MeanUncertainty:
    """1 − the mean probability of the box's tokens; it refuses nothing here."""

    async def weigh_answer(
        self, question: str, answer: str, tokens: Sequence[TokenScore], language: Language, run: Run
    ) -> SignalValue:
        probabilities = [float(np.exp(token.logprob)) for token in tokens]
        value = 1 - fmean(probabilities) if probabilities else 1.0
        return SignalValue("uct", value, 2.0)


async def ask_both(bench: multihop.Bench, item: multihop.Item) -> Row:
    """The answer from the head with its signals, and the one from a search."""
    boundary = GenerateThenAssess(
        bench.speaker, tau=0.0, always_check=True, examples=True, state=MeanUncertainty()
    )
    run = Run(seed=multihop.SEED)
    own = await boundary.assess(1, item.question, "en", run)
    assert own is not None
    searched = await bench.rag(item)
    found = await look_up(bench.retriever, item.question, Run(), k=1)
    texts = [f"{hit.passage.heading}. {hit.passage.text}" for hit in found.hits]
    likeness = await bench.parts.relevance.relevance(f"{item.question} {own.answer}", texts)
    return {
        "set": bench.name,
        "id": item.id,
        "half": half_of(item.id),
        "answer": own.answer,
        "right": _is_right(own.answer, item),
        "p": own.probability or 0.0,
        "checked": bool(own.self_check),
        "state": own.state if own.state is not None else 1.0,
        "likeness": max(likeness, default=0.0),
        "searched": searched.answer,
        "searched right": _is_right(searched.answer, item),
    }


async def weigh_words(bench: multihop.Bench, item: multihop.Item) -> Row:
    """How much likelier "yes" is than "no" after the question than after an empty one."""
    odds = []
    for question in (item.question, "Answer yes or no."):
        model = bench.parts.model_for("reader")
        assert isinstance(model, Likelihood)
        yes, no = await score_all(model, [Message("user", question)], ("yes", "no"))
        odds.append(yes.tokens[0].logprob - no.tokens[0].logprob)
    return {"yes": item.answer == "yes", "odds": odds[0] - odds[1]}


def _is_right(answer: str, item: multihop.Item) -> bool:
    said, golds = multihop.normalised(answer), (item.answer, *item.others)
    if item.answer in ("yes", "no"):
        said = said.partition(" ")[0]
    return said in {multihop.normalised(gold) for gold in golds}


def yes_no_items(data: Path) -> list[multihop.Item]:
    return [
        multihop.Item(
            one.question.id,
            f"{one.question.text} Answer yes or no.",
            one.question.options["ABC".index(one.right)],
            (),
        )
        for one in of_research(data, ("pubmedqa", "bioasq"))
        if one.right in ("A", "B")
    ]


def hop_items(data: Path) -> list[multihop.Item]:
    items, _ = multihop.items_2wiki(data / "A_questions/multihop/2wikimultihopqa")
    held_out = {item.id for item in multihop.chosen("2wiki", items, "test", len(items))}
    return [item for item in items if item.id not in held_out]


async def gather(given: argparse.Namespace) -> None:
    log, end = given.work / "boundary.jsonl", time.monotonic() + 60 * given.minutes
    done = {row["id"]: row for row in read_rows(log)}
    benches = []
    for name in given.sets:
        items = hop_items(given.data) if name == "2wiki" else yes_no_items(given.data)
        settings: Settings = settings_of(given.work, name, given.kb)
        if name == "2wiki" and not settings.kb.path.exists():
            settings.home.mkdir(parents=True, exist_ok=True)
            build_2wiki(settings, given.data)
        random.Random(multihop.SEED).shuffle(items)
        benches.append((multihop.Bench(name, settings, await live_parts(settings)), items))
    for turn in range(given.n):
        for bench, items in benches:
            if turn >= len(items) or time.monotonic() > end:
                continue
            row = done.get(items[turn].id)
            if row is None or "odds" not in row:
                row = await ask_both(bench, items[turn]) if row is None else row
                row |= await weigh_words(bench, items[turn])
                with log.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def read_rows(log: Path) -> list[Row]:
    """The rows, each once: the last line of one stands."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return list({row["id"]: row for row in map(json.loads, lines)}.values())


def answer_by_odds(row: Row) -> Row:
    """The row as if the likelier word were the model's own answer."""
    said = row["odds"] > 0
    return {**row, "answer": "yes" if said else "no", "right": said == row["yes"]}


def make_signals(dev: Sequence[Row]) -> dict[str, Callable[[Row], float]]:
    """Each gives a row a value: the higher, the surer that its own answer is right."""

    def features(row: Row) -> list[float]:
        return [row["p"], float(row["checked"]), row["state"], row["likeness"]]

    answered = [row for row in dev if row["answer"]]
    right = [row["right"] for row in answered]
    if len(set(right)) < 2:  # nothing to tell apart
        return {**_single_signals(), "all": lambda row: row["p"]}
    fitted = LogisticRegression(C=1.0).fit([features(row) for row in answered], right)
    return {
        **_single_signals(),
        "all": lambda row: float(fitted.predict_proba([features(row)])[0][1]),
    }


def _single_signals() -> dict[str, Callable[[Row], float]]:
    return {
        "p": lambda row: row["p"],
        "dual": lambda row: row["p"] if row["checked"] else -1.0,
        "state": lambda row: -row["state"],
        "likeness": lambda row: row["likeness"],
        "contrast": lambda row: abs(row.get("odds", 0.0)),
    }


def accuracy_with(rows: Sequence[Row], sure: Callable[[Row], float], least: float) -> list[float]:
    """1 for each question that the policy answers right."""
    return [
        float(row["right"] if keeps_own(row, sure, least) else row["searched right"])
        for row in rows
    ]


def keeps_own(row: Row, sure: Callable[[Row], float], least: float) -> bool:
    return bool(row["answer"]) and sure(row) >= least


def choose_threshold(dev: Sequence[Row], sure: Callable[[Row], float]) -> float:
    """The threshold that saves most searches without accuracy below that of always searching."""
    floor = fmean(row["searched right"] for row in dev)
    for least in sorted({sure(row) for row in dev if row["answer"] and sure(row) >= -0.999}):
        if fmean(accuracy_with(dev, sure, least)) >= floor:
            return least
    return float("inf")


def choose_controlled(dev: Sequence[Row], sure: Callable[[Row], float]) -> float:
    """The last threshold, from the surest down, at which no more than `LOSS` is lost for sure."""
    last = float("inf")
    for least in sorted({sure(row) for row in dev if row["answer"]}, reverse=True):
        after = zip(accuracy_with(dev, sure, least), dev, strict=True)
        low = mean([own - float(row["searched right"]) for own, row in after], draws=1_000).low
        if low < -LOSS:
            break
        last = least
    return last


def risk_area(rows: Sequence[Row], sure: Callable[[Row], float]) -> float:
    """Mean share of wrong answers when the surest are kept first; refusals come last, as wrong."""
    order = sorted(rows, key=lambda row: -(sure(row) if row["answer"] else -9.0))
    wrong = np.cumsum([not row["right"] for row in order])
    return float(fmean(wrong / np.arange(1, len(order) + 1)))


def print_tables(rows: Sequence[Row]) -> None:
    for name in sorted({row["set"] for row in rows}):
        halves = [[r for r in rows if (r["set"], r["half"]) == (name, h)] for h in ("dev", "test")]
        print(f"\n{name}: dev {len(halves[0])}, test {len(halves[1])}")
        print("| signal | halves | searches saved | accuracy less always searching |")
        print("|---|---|---|---|")
        for shown, held in (("test", halves[1:]), ("both, crossed", halves)):
            _print_policies(shown, held, halves)
        for shown, of in (("test", halves[1]), ("both", halves[0] + halves[1])):
            own, searched = ([float(r[key]) for r in of] for key in ("right", "searched right"))
            print(f"{shown}: own {mean(own)}, searched {mean(searched)}")
        sure_by, test = make_signals(halves[0]), halves[1]
        known = [n for n in SIGNALS if own_rows(n, test)]
        areas = ((n, risk_area(own_rows(n, test), sure_by[n])) for n in known)
        print("risk-coverage area: " + ", ".join(f"{n} {area:.3f}" for n, area in areas))
        for share in (0.1, 0.25, 0.5):
            risks = ((n, _risk_at(own_rows(n, test), sure_by[n], share)) for n in known)
            print(f"risk at coverage {share}: " + ", ".join(f"{n} {r:.2f}" for n, r in risks))


def own_rows(signal: str, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows with the answer that a signal is about."""
    if signal != "contrast":
        return rows
    return [answer_by_odds(row) for row in rows if "odds" in row]


def _print_policies(shown: str, held: Sequence[list[Row]], halves: Sequence[list[Row]]) -> None:
    """Each half of `held` under signals and thresholds of the half that it is not."""
    others = [halves[half is halves[0]] for half in held]
    print_policy("the paper's, tau 0.5", shown, [(h, make_signals(h)["dual"], 0.5) for h in held])
    for signal in SIGNALS:
        for name, choose in (
            (signal, choose_threshold),
            (f"{signal}, controlled", choose_controlled),
        ):
            parts = []
            for own, other in zip(held, others, strict=True):
                fit, sure = own_rows(signal, other), make_signals(other)[signal]
                parts.append((own_rows(signal, own), sure, choose(fit, sure) if fit else 2.0))
            print_policy(name, shown, parts)


def print_policy(
    name: str,
    shown: str,
    parts: Sequence[tuple[Sequence[Row], Callable[[Row], float], float]],
) -> None:
    """Parts: rows, their signal, and the threshold."""
    kept = [keeps_own(row, sure, least) for rows, sure, least in parts for row in rows]
    gains = [
        after - float(row["searched right"])
        for rows, sure, least in parts
        for after, row in zip(accuracy_with(rows, sure, least), rows, strict=True)
    ]
    if kept:
        print(f"| {name} | {shown} | {proportion(sum(kept), len(kept))} | {mean(gains)} |")


def _risk_at(rows: Sequence[Row], sure: Callable[[Row], float], share: float) -> float:
    order = sorted(rows, key=lambda row: -(sure(row) if row["answer"] else -9.0))
    return fmean(not row["right"] for row in order[: max(1, round(share * len(order)))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--kb", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--n", type=int, default=150, help="of each set")
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--table", action="store_true", help="only print what the log holds")
    given = parser.parse_args()
    if not given.table:
        asyncio.run(gather(given))
    print_tables(read_rows(given.work / "boundary.jsonl"))


if __name__ == "__main__":
    main()
