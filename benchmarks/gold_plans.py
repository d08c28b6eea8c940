"""Gold plans of 2WikiMultihopQA over its own evidence as a graph: the executor by itself.

    python benchmarks/gold_plans.py [--data FOLDER]

Each question's evidence triples are a graph of their own; the plan follows from them (a chain, or
two chains that are compared), and what is compared from the question's words. Exact match with the
gold answer. The opponent: the object of the last triple. No model.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from osler.errors import BadCalculation
from osler.evaluate.metrics.words import normalise_answer
from osler.graph.items import Name, Relation
from osler.graph.store import Graph
from osler.methods.kag.graph_route.sets import (
    Comparison,
    ConceptSet,
    GraphLookup,
    Value,
    Verdict,
    execute_plan,
)
from osler.methods.kag.logical_forms import (
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Operation,
    Output,
    PlanStep,
    Retrieval,
    SpoNode,
)

ROOT = Path(__file__).parents[1]
QUESTIONS = Path("A_questions") / "multihop" / "2wikimultihopqa" / "questions.json"
_LATER = re.compile(r"\b(?:later|last|younger|recent(?:ly)?|latest|newer)\b", re.IGNORECASE)
_SAME = re.compile(r"\b(?:same|both|share)\b", re.IGNORECASE)
Triple = tuple[str, str, str]


def split_chains(triples: list[Triple]) -> list[list[Triple]]:
    """The triples as chains, each from a subject that no other triple leads to."""
    objects = {object_ for _, _, object_ in triples}
    chains = []
    for first in triples:
        if first[0] in objects:
            continue
        chain = [first]
        while following := [t for t in triples if t[0] == chain[-1][2] and t not in chain]:
            chain.append(following[0])
        chains.append(chain)
    return chains


def write_gold_plan(question: str, chains: list[list[Triple]]) -> LogicalPlan:
    """Retrievals along each chain, and what the question does with their ends."""
    forms: list[Form] = []
    ends = []
    for chain in chains:
        node = SpoNode(f"s{len(forms) + 1}", "thing", chain[0][0])
        for _, predicate, _ in chain:
            n = len(forms) + 1
            forms.append(Retrieval(node, SpoNode(f"p{n}", predicate), SpoNode(f"o{n}")))
            node = SpoNode(f"o{n}")
        ends.append(node.alias)
    last = ends[0]
    if len(chains) > 1:
        last = "d0"
        if _SAME.search(question):
            forms.append(Deduce(Operation.JUDGEMENT, tuple(ends), "shared", last))
        else:
            order = "latest" if _LATER.search(question) else "earliest"
            forms.append(Math(tuple(ends), order, last))
    forms.append(Output((last,)))
    return LogicalPlan(tuple(PlanStep(n, question, form) for n, form in enumerate(forms, 1)))


def word_value(value: Value) -> str:
    match value:
        case Verdict(holds, _):
            return "yes" if holds else "no"
        case Comparison(best, _):
            return best.origin
        case ConceptSet():
            return "; ".join(value.names)
        case _:
            return f"{value.value:g}"


def answer_question(row: dict[str, Any], folder: Path) -> str:
    triples = [(str(s), str(p), str(o)) for s, p, o in row["evidence"]]
    names = dict.fromkeys(end for s, _, o in triples for end in (s, o))
    ids = {name: f"W:{n}" for n, name in enumerate(names)}
    with Graph.create(folder) as graph:
        graph.add(
            [
                *(Name(id, name, "2Wiki", 0) for name, id in ids.items()),
                *(Relation(ids[s], p, ids[o], "2Wiki") for s, p, o in triples),
            ]
        )
        plan = write_gold_plan(row["question"], split_chains(triples))
        try:
            values = execute_plan(plan, GraphLookup(graph))
        except BadCalculation as error:
            return f"({error.message})"
        return word_value(values[len(plan.steps)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    rows = json.loads((parser.parse_args().data / QUESTIONS).read_text(encoding="utf-8"))
    told: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for n, row in enumerate(rows):
            got, gold = answer_question(row, Path(folder) / str(n)), str(row["answer"])
            right = normalise_answer(got) == normalise_answer(gold)
            last = normalise_answer(str(row["evidence"][-1][2])) == normalise_answer(gold)
            told[row["question_type"]].append((right, last))
            if not right:
                print(f"{row['question']}\n    gold {gold!r}, got {got!r}")
    print(f"\n{'type':20}{'n':>5}{'plan':>7}{'last object':>13}")
    told["all"] = [pair for each in list(told.values()) for pair in each]
    for kind, pairs in told.items():
        plan, last = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
        print(f"{kind:20}{len(pairs):>5}{plan:>7.3f}{last:>13.3f}")


if __name__ == "__main__":
    main()
