"""The order of evidence over all sources, and the gate that decides what is evidence.

    python benchmarks/evidence.py [--data FOLDER] [--questions N] [--absent N] [--work FOLDER]

One knowledge base of four sources, made of the documents of `planning.py`. No language model is
asked: every source is asked the question itself.

*Order*: the first ten of what all sources found, in turns of the queries, in one fused order, and
of one search over all sources: nDCG@10, recall@10, hit@1 and hit@3, and the paired differences.

*Gate*: what would be quoted of five passages: with the expert `answerable`, with the rule that it
replaces (a passage names the question's subject), and with simple rules that look at no names.
Answerable questions: answered at all, and with a quote of a gold document among
the first three. Absent ones are of pages of MedQuAD that are not in the knowledge base, and whose
subject none of its documents names: any answer is a leak. Questions are split by a hash of their
id; whoever tunes the gate looks at `dev` alone, and the figures are those of `test`. The split is
written to the work folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import planning
from planning import CUT, DATA, SOURCES, Asked, Entry, document_of, scores
from quality import figure, store

from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.app.config import Settings
from osler.app.wiring import Parts
from osler.app.wiring.composers import evidence_gate
from osler.app.wiring.knowledge import make_retriever, open_knowledge_base
from osler.app.wiring.live import with_knowledge
from osler.app.wiring.models import load_encoder
from osler.evaluate.intervals import Estimate, mean, proportion
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.retriever import PlannedRetriever, interleave_hits, order_results
from osler.retrieve.naming import NAMED
from osler.trace import Run
from osler.types import Hit, Language, Relevance

PER_SOURCE, STATEMENTS, READ = 5, 3, 5
ORDERS = ("turns", "fused", "one search")
GATES = ("answerable", "entity gate", "cosine .7", "coverage", "no names")
MEASURES = ("ndcg10", "recall10", "hit1", "hit3")


def absent_pages(data: Path, held: Iterable[Entry], seed: int) -> Iterable[Asked]:
    """Questions about subjects that no document names."""
    texts = "\n".join(f"{entry.title} {entry.text}" for entry in held).casefold()
    pages = planning.medquad_pages(data)
    random.Random(seed + 1).shuffle(pages)
    for page in pages:
        asked, entry = page[0]
        subject = entry.title.casefold().partition(" (")[0]
        if len(subject) > 3 and subject not in texts:
            yield replace(asked, set="absent", gold=frozenset())


def part_of(asked: Asked) -> str:
    return "dev" if sha256(asked.question.id.encode()).digest()[0] % 2 else "test"


async def ordered(asked: Asked, parts: Parts, found: PlannedRetriever) -> dict[str, list[Hit]]:
    """The first ten hits in each order."""
    words = asked.question.text
    plan = SourcePlan.of([Query.of(source, words) for source in SOURCES])
    results = await found.gather_results(plan, Run())
    whole = parts.retriever("all", SOURCES)
    return {
        "turns": list(interleave_hits(results, PER_SOURCE))[:CUT],
        "fused": list(await order_results(words, results, PER_SOURCE, parts.order))[:CUT],
        "one search": await whole.search(words, k=CUT),
    }


def measures(hits: Sequence[Hit], gold: frozenset[str]) -> dict[str, float]:
    recall, ndcg = scores(hits, gold)
    ranked = list(dict.fromkeys(map(document_of, hits)))
    at = {f"hit{n}": float(bool(gold.intersection(ranked[:n]))) for n in (1, 3)}
    return {"ndcg10": ndcg, "recall10": recall, **at}


async def quoted(gate: EvidenceGate, asked: Asked, hits: Sequence[Hit]) -> list[str]:
    """The documents of the sentences that would be quoted first."""
    found = await gate.find_evidence(asked.question, hits)
    return [document_of(candidate.hit) for candidate in found[:STATEMENTS]]


def only(*, coverage: float = 2.0, relevance: float = 2.0) -> dict[Language, QuoteThresholds]:
    """Thresholds of which one alone can be reached."""
    return {"en": QuoteThresholds(coverage, relevance)}


class Remembered:
    """Scores of texts by a scorer that is asked for each text once; both gates read the same."""

    def __init__(self, scorer: Relevance) -> None:
        self._scorer = scorer
        self._scores: dict[tuple[str, str], float] = {}

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        unseen = [text for text in dict.fromkeys(texts) if (query, text) not in self._scores]
        for text, score in zip(
            unseen, await self._scorer.relevance(query, unseen) if unseen else (), strict=True
        ):
            self._scores[query, text] = score
        return tuple(self._scores[query, text] for text in texts)


async def measured(asked: Asked, parts: Parts, found: PlannedRetriever, gates: Gates) -> Result:
    lists = await ordered(asked, parts, found)
    result: Result = {"set": asked.set, "id": asked.question.id, "part": part_of(asked)}
    if asked.gold:
        result["orders"] = {name: measures(hits, asked.gold) for name, hits in lists.items()}
    for name, gate in gates.items():
        cited = await quoted(gate, asked, lists["one search"][:READ])
        gold = bool(asked.gold.intersection(cited))
        result[name] = {"answered": bool(cited), "gold": gold, "cited": cited}
    return result


Result = dict[str, Any]
Gates = dict[str, EvidenceGate]


async def go(given: argparse.Namespace) -> list[Result]:
    asked, entries = planning.gathered(given.data, given.questions, given.seed)
    known = absent_pages(given.data, entries, given.seed)
    asked = asked[: given.limit]
    asked += [one for _, one in zip(range(given.absent), known, strict=False)]
    random.Random(given.seed).shuffle(asked)  # a run that was cut short has some of each
    given.work.mkdir(parents=True, exist_ok=True)
    split = {one.question.id: part_of(one) for one in asked}
    (given.work / "split.json").write_text(json.dumps(split, indent=0))
    settings = Settings.model_validate({"home": given.work})
    if not (given.work / "built").exists():
        planning.build(settings, entries, given.data)
        (given.work / "built").touch()
    with open_knowledge_base(settings) as kb:
        encoder = load_encoder(settings)
        parts = with_knowledge(settings, {}, kb, encoder, None)
        found = PlannedRetriever(
            {source: make_retriever(settings, kb, encoder, (source,)) for source in SOURCES}, CUT
        )
        gate = evidence_gate(settings, parts)
        gate = replace(gate, relevance=Remembered(gate.relevance))
        gates = {
            "answerable": gate,
            "entity gate": replace(gate, expert=None),
            "cosine .7": replace(gate, expert=None, naming=None, least=only(relevance=0.7)),
            "coverage": replace(gate, expert=None, naming=None, least=only(coverage=0.49)),
            "no names": replace(gate, expert=None, naming=None),
        }
        log, results = given.work / "results.jsonl", []
        with log.open("w", encoding="utf-8") as out:
            for one in asked:
                results.append(await measured(one, parts, found, gates))
                out.write(json.dumps(results[-1]) + "\n")
                out.flush()
        return results


def estimate(values: Sequence[float]) -> Estimate:
    """Right and wrong by Wilson's interval; means and paired differences by a bootstrap."""
    if {*values} <= {0.0, 1.0}:
        return proportion(int(sum(values)), len(values))
    return mean(values)


def order_table(results: Sequence[Result]) -> dict[str, Any]:
    asked = [one for one in results if "orders" in one]
    found: dict[str, Any] = {}
    for set_ in ("all", *planning.SETS):
        of = [one["orders"] for one in asked if set_ in ("all", one["set"])]
        for measure in MEASURES if of else ():
            row = {name: [one[name][measure] for one in of] for name in ORDERS}
            cells = {name.replace(" ", "_"): estimate(values) for name, values in row.items()}
            for other in ("turns", "one search"):
                pairs = zip(row["fused"], row[other], strict=True)
                cells[f"fused_less_{other.replace(' ', '_')}"] = mean([a - b for a, b in pairs])
            found.setdefault(set_, {})[measure] = cells
    return found


def gate_table(results: Sequence[Result], part: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for set_ in ("answerable", *planning.SETS, "absent"):
        of = [one for one in results if one["part"] == part and _is_of(one, set_)]
        for measure in ("answered", "gold") if of else ():
            row = {name: [float(one[name][measure]) for one in of] for name in GATES}
            cells = {name.replace(" ", "_"): estimate(values) for name, values in row.items()}
            pairs = zip(row["answerable"], row["entity gate"], strict=True)
            cells["difference"] = mean([a - b for a, b in pairs])
            found.setdefault(set_, {})[measure] = cells
    return found


def _is_of(one: Result, set_: str) -> bool:
    return one["set"] == set_ or (set_ == "answerable" and one["set"] != "absent")


def lines_of(table: dict[str, Any]) -> Iterable[str]:
    for set_, rows in table.items():
        for measure, cells in rows.items():
            head = f"| {set_} | {measure} | {next(iter(cells.values())).n} | "
            yield head + " | ".join(map(str, cells.values())) + " |"


def as_figures(table: dict[str, Any]) -> dict[str, Any]:
    return {
        set_: {
            measure: {name: figure(cell) for name, cell in cells.items()}
            for measure, cells in rows.items()
        }
        for set_, rows in table.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=int, default=60, help="of each set")
    parser.add_argument("--limit", type=int, help="questions that are asked, of all sets")
    parser.add_argument("--absent", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="knowledge base and results; kept")
    parser.add_argument("--part", default="test", choices=("dev", "test"), help="of the gate")
    parser.add_argument("--store", action="store_true", help="write into quality.toml")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"no data in {given.data}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as place:
        given.work = given.work or Path(place)
        results = asyncio.run(go(given))
    order, gate = order_table(results), gate_table(results, given.part)
    print("| set | measure | n | turns | fused | one search | fused - turns | fused - one |")
    print("\n".join(lines_of(order)))
    gates = " | ".join(GATES)
    print(f"\n| set ({given.part}) | quoted | n | {gates} | answerable - entity gate |")
    print("\n".join(lines_of(gate)))
    if given.store:
        head = {"script": "benchmarks/evidence.py", "seed": given.seed, "named": NAMED}
        parts = {"order": as_figures(order), "gate": as_figures(gate)}
        store("evidence", {**head, **parts})
    return 0


if __name__ == "__main__":
    sys.exit(main())
