"""Gold plans of 2WikiMultihopQA and MuSiQue over their evidence as a graph: the executor by itself.

    python benchmarks/gold_plans.py [--data FOLDER]

Each question's evidence triples are a graph of their own; the plan follows from them (a chain, or
two chains that are compared), and what is compared from the question's words. MuSiQue's are its
decompositions: a step's subject is the step that it names, else the title of its paragraph; of one
that names two steps, what both lead to. Exact match with the gold answer. The opponent: the object
of the last triple. No model.
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
HOPS = Path("A_questions") / "multihop"
_REFERENCE = re.compile(r"#(\d+)")
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


def write_decomposed_plan(row: dict[str, Any]) -> tuple[LogicalPlan, list[Triple]]:
    """The plan of a question of MuSiQue, and the triples that its steps rest on."""
    steps = row["question_decomposition"]
    forms: list[Form] = []
    triples: list[Triple] = []
    for n, step in enumerate(steps, 1):
        named, _, relation = step["question"].rpartition(" >> ")
        title = row["paragraphs"][step["paragraph_support_idx"]]["title"]
        before = [int(k) for k in _REFERENCE.findall(step["question"])]
        for k in before or [0]:
            subject = steps[k - 1]["answer"] if k else (named or title)
            node = SpoNode(f"o{k}") if k else SpoNode(f"s{n}", "thing", subject)
            forms.append(Retrieval(node, SpoNode(f"p{n}", relation), SpoNode(f"o{n}")))
            triples.append((subject, relation, step["answer"]))
    every = [*forms, Output((f"o{len(steps)}",))]
    question = row["question"]
    plan = LogicalPlan(tuple(PlanStep(n, question, form) for n, form in enumerate(every, 1)))
    return plan, triples


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


def answer_question(row: dict[str, Any], folder: Path) -> tuple[str, str]:
    """What the plan comes to, and the object of the last triple."""
    if "question_decomposition" in row:
        plan, triples = write_decomposed_plan(row)
    else:
        triples = [(str(s), str(p), str(o)) for s, p, o in row["evidence"]]
        plan = write_gold_plan(row["question"], split_chains(triples))
    names = dict.fromkeys(end for s, _, o in triples for end in (s, o))
    ids = {name: f"W:{n}" for n, name in enumerate(names)}
    with Graph.create(folder) as graph:
        graph.add(
            [
                *(Name(id, name, "2Wiki", 0) for name, id in ids.items()),
                *(Relation(ids[s], p, ids[o], "2Wiki") for s, p, o in triples),
            ]
        )
        try:
            values = execute_plan(plan, GraphLookup(graph))
        except BadCalculation as error:
            return f"({error.message})", triples[-1][2]
        return word_value(values[len(plan.steps)]), triples[-1][2]


def read_questions(data: Path) -> list[dict[str, Any]]:
    found = []
    for name in ("2wikimultihopqa/questions.json", "musique/qa_train.json"):
        found += json.loads((data / HOPS / name).read_text(encoding="utf-8"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    told: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for n, row in enumerate(read_questions(parser.parse_args().data)):
            got, last = answer_question(row, Path(folder) / str(n))
            golds = {
                normalise_answer(str(one))
                for one in (row["answer"], *row.get("answer_aliases", ()))
            }
            right = normalise_answer(got) in golds
            told[row.get("question_type", "musique")].append(
                (right, normalise_answer(last) in golds)
            )
            if not right:
                print(f"{row['question']}\n    gold {row['answer']!r}, got {got!r}")
    print(f"\n{'type':20}{'n':>5}{'plan':>7}{'last object':>13}")
    told["2wiki"] = [pair for kind, each in told.items() if kind != "musique" for pair in each]
    for kind, pairs in told.items():
        plan, end = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
        print(f"{kind:20}{len(pairs):>5}{plan:>7.3f}{end:>13.3f}")


if __name__ == "__main__":
    main()
