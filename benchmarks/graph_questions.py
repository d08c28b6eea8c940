"""Questions of several steps over a concept graph: the graph's route beside one search.

    python benchmarks/graph_questions.py [--data FOLDER] [--seed 0] [--by-hand FILE]

120 questions: 80 from templates that the route's vocabulary was not made with, over the sample and
Hetionet (half Chinese), with answers computed here from the raw relations, and 40 worded by hand.
A question is right when the answer is the whole set, number or verdict. The opponent: one search of
the graph source by words, whose answer is the far ends of its first ten relations. `--by-hand` asks
another file of worded questions over the sample graph and no templates; `--set` chooses among the
sets of `graph_templates.py`, each with other templates and wordings, written before it was asked.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

from graph_templates import SETS, Answer, Relations, Template, read_hetionet, read_sample

from osler.build.hub import read_tokens
from osler.graph.formats import read_graph_files
from osler.graph.store import Graph
from osler.methods.kag.graph_route.answering import SHOWN, GraphRoute, GraphSets, tell_value
from osler.retrieve.graph import GraphRetriever
from osler.retrieve.relevance import OverlapRelevance
from osler.text import language_of
from osler.trace import FormSolved, Run
from osler.types import Question

ROOT = Path(__file__).parents[1]
HETIONET = Path("C_graphs") / "hetionet"
_MOST = SHOWN
_SAMPLE_EACH = 2


@dataclass(frozen=True)
class GraphCase:
    graph: str
    made: str
    question: Question
    answer: Answer


def make_cases(
    graph: str,
    templates: tuple[Template, ...],
    relations: Relations,
    told: dict[str, str],
    seed: int,
    each: int,
) -> Iterator[GraphCase]:
    """Questions of each template whose answer is not empty and can be listed."""
    for language, kinds, words, worked in templates:
        random, made = Random(f"{seed} {words}"), set[str]()
        for _ in range(20_000):
            names = [random.choice(relations.pools[kind]) for kind in kinds.split()]
            answer = worked(relations, *names) if len(set(names)) == len(names) else None
            text = words.format(*(told.get(n, n) if language == "zh" else n for n in names))
            if not answer or text in made or (isinstance(answer, set) and len(answer) > _MOST):
                continue
            yield GraphCase(graph, "template", Question(text, text, (), language_of(text)), answer)
            made.add(text)
            if len(made) == each:
                break


def read_by_hand(path: Path) -> Iterator[GraphCase]:
    """The questions worded by hand; "-" is one that the graph has no answer to."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        _, text, told = line.split("\t")
        answer: Answer = set(told.split("; "))
        verdicts = {"yes": True, "no": False, "-": None}
        answer = int(told) if told.isdigit() else verdicts.get(told, answer)
        yield GraphCase("sample", "by hand", Question(text, text, (), language_of(text)), answer)


async def ask_route(graph: Graph, case: GraphCase) -> Answer:
    """What the route answers, and of a question of one relation, which it leaves to search, what
    its plan comes to; `None` where it has none."""
    run = Run()
    sets = GraphSets(graph, read_tokens)
    solution = await GraphRoute(sets).solve(case.question, run)
    if solution is not None:
        told = [event for event in run.events if isinstance(event, FormSolved)][-1].answer
    elif (found := sets.settle(case.question.text)) and len(found[0].steps) == 2:
        told = tell_value(found[1][found[0].steps[-1].n])
        if told == "not stated":
            return None
    else:
        return None
    if told in ("yes", "no"):
        return told == "yes"
    return int(told) if told.isdigit() else set(told.split("; "))


async def ask_search(graph: Graph, case: GraphCase) -> Answer:
    """The far ends of the first ten relations that a search by words finds."""
    hits = await GraphRetriever(graph, OverlapRelevance()).search(case.question.text, k=10)
    ends = set()
    for hit in hits:
        if triple := re.match(r"Relation: \((.*)\)\.", hit.passage.text):
            parts = triple[1].split(", ")
            own = hit.passage.title.casefold().split("/")
            ends |= {part for part in (parts[0], parts[-1]) if part.casefold() not in own}
    if isinstance(case.answer, bool):
        return True
    return len(ends) if isinstance(case.answer, int) else ends


def is_right(graph: Graph, got: Answer, gold: Answer) -> bool:
    if isinstance(got, set) and isinstance(gold, set):
        return _concepts(graph, got) == _concepts(graph, gold)
    return got == gold and type(got) is type(gold)


def _concepts(graph: Graph, names: set[str]) -> set[str]:
    """The concepts' own names, so that a Chinese name is the same as its English one."""
    found = (graph.find_exact(name) for name in names)
    return {
        concept.name.casefold()
        for matches in found
        for match in matches[:1]
        if (concept := graph.get_concept(match.concept))
    }


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by-hand", type=Path, metavar="FILE", help="only these, no templates")
    parser.add_argument("--set", choices=SETS, default="first")
    asked = parser.parse_args()
    graphs: dict[str, Graph] = {}
    cases: list[GraphCase] = []
    with tempfile.TemporaryDirectory() as made, as_file(files("osler.sample") / "graph") as sample:
        graphs["sample"] = Graph.create(Path(made) / "sample")
        graphs["sample"].add(read_graph_files([sample]))
        by_hand, of_sample, of_hetionet, each = SETS[asked.set]
        cases += read_by_hand(asked.by_hand or by_hand)
        folder = asked.data / HETIONET
        if not asked.by_hand:
            relations, chinese = read_sample(sample)
            cases += make_cases("sample", of_sample, relations, chinese, asked.seed, _SAMPLE_EACH)
        if not asked.by_hand and folder.exists():
            graphs["Hetionet"] = Graph.create(Path(made) / "hetionet")
            names = ("hetionet-v1.0-nodes.tsv", "hetionet-v1.0-edges.sif.gz")
            graphs["Hetionet"].add(read_graph_files([folder / name for name in names]))
            hetionet = read_hetionet(folder)
            cases += make_cases("Hetionet", of_hetionet, hetionet, {}, asked.seed, each)
        await _report(graphs, cases)


async def _report(graphs: dict[str, Graph], cases: list[GraphCase]) -> None:
    rows: dict[tuple[str, str, str], list[tuple[str, bool]]] = defaultdict(list)
    seconds = []
    for case in cases:
        graph = graphs[case.graph]
        began = perf_counter()
        got = await ask_route(graph, case)
        seconds.append(perf_counter() - began)
        right = is_right(graph, got, case.answer)
        verdict = "right" if right else "left" if got is None else "wrong"
        if not right:
            print(f"{verdict}: {case.question.text}\n    gold {case.answer}\n    got  {got}")
        searched = is_right(graph, await ask_search(graph, case), case.answer)
        rows[case.graph, case.question.language, case.made].append((verdict, searched))
    print(
        f"\n{'graph':10}{'language':10}{'made':10}{'n':>4}{'right':>7}{'left':>6}{'wrong':>7}{'search':>8}"
    )
    for (graph_name, language, how), told in sorted(rows.items()):
        counts = [
            sum(verdict == each for verdict, _ in told) for each in ("right", "left", "wrong")
        ]
        searched_right = sum(right for _, right in told)
        print(
            f"{graph_name:10}{language:10}{how:10}{len(told):>4}{counts[0]:>7}{counts[1]:>6}"
            f"{counts[2]:>7}{searched_right:>8}"
        )
    print(f"seconds a question: median {median(seconds):.3f}")


if __name__ == "__main__":
    asyncio.run(main())
