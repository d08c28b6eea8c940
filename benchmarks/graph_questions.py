"""Questions of several steps over a concept graph: the graph's route beside one search.

    python benchmarks/graph_questions.py [--data FOLDER] [--seed 0] [--by-hand FILE]

120 questions: 80 from templates that the route's vocabulary was not made with, over the sample and
Hetionet (half Chinese), with answers computed here from the raw relations, and 40 worded by hand.
A question is right when the answer is the whole set, number or verdict. The opponent: one search of
the graph source by words, whose answer is the far ends of its first ten relations. `--by-hand` asks
another file of worded questions over the sample graph and no templates; `--third` a set of 120 made
as the first, with other templates and wordings.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.resources import as_file, files
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter

from osler.graph.formats import read_graph_files
from osler.graph.store import Graph
from osler.methods.kag.graph_route import GraphRoute, GraphSets
from osler.methods.kag.graph_route.answering import SHOWN
from osler.retrieve.graph import GraphRetriever
from osler.retrieve.relevance import OverlapRelevance
from osler.text import language_of
from osler.trace import FormSolved, Run
from osler.types import Question

ROOT = Path(__file__).parents[1]
BY_HAND = ROOT / "tests" / "fixtures" / "graph_questions" / "by_hand.tsv"
THIRD = BY_HAND.with_name("third.tsv")
HETIONET = Path("C_graphs") / "hetionet"
Answer = set[str] | int | bool | None
_MOST = SHOWN
_CASES_EACH = {"sample": 2, "Hetionet": 3}


@dataclass
class Relations:
    """Raw relations of a graph, read without Osler: (kind of relation, node) → nodes."""

    out: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    into: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    pools: dict[str, list[str]] = field(default_factory=dict)
    """Names of each kind that stand for one node alone."""

    def add(self, subject: str, kind: str, object_: str, *, symmetric: bool = False) -> None:
        self.out[kind, subject].add(object_)
        self.into[kind, object_].add(subject)
        if symmetric:
            self.out[kind, object_].add(subject)
            self.into[kind, subject].add(object_)

    def to(self, kind: str, *nodes: str) -> set[str]:
        return {far for node in nodes for far in self.out[kind, node]}

    def of(self, kind: str, *nodes: str) -> set[str]:
        return {far for node in nodes for far in self.into[kind, node]}


def read_hetionet(folder: Path) -> Relations:
    relations, names, kinds = Relations(), {}, {}
    with (folder / "hetionet-v1.0-nodes.tsv").open(encoding="utf-8") as lines:
        for id, name, kind in csv.reader(lines, delimiter="\t"):
            names[id], kinds[id] = name, kind
    count: dict[str, int] = defaultdict(int)
    for name in names.values():
        count[name.casefold()] += 1
    for id, kind in kinds.items():
        if count[names[id].casefold()] == 1 and len(names[id]) > 3 and not names[id].isdigit():
            relations.pools.setdefault(kind, []).append(names[id])
    with gzip.open(folder / "hetionet-v1.0-edges.sif.gz", "rt", encoding="utf-8") as lines:
        for one, kind, other in csv.reader(lines, delimiter="\t"):
            if kind != "metaedge":
                same = kind in ("CrC", "DrD", "GiG", "GcG")
                relations.add(names[one], kind, names[other], symmetric=same)
    return relations


def read_sample(folder: Path) -> tuple[Relations, dict[str, str]]:
    """The relations, and a Chinese name of each concept."""
    names: dict[str, str] = {}
    chinese: dict[str, str] = {}
    for row in _rows(folder / "META" / "MRCONSO.RRF"):
        if row[1] == "ENG" and row[2] == "P" and row[6] == "Y" and row[11] == "OSLER":
            names[row[0]] = row[14]
        if row[1] == "CHI" and row[2] == "P":
            chinese.setdefault(row[0], row[14])
    relations = Relations()
    for row in _rows(folder / "META" / "MRREL.RRF"):
        # REL is read from the second concept to the first.
        if row[7] in ("may_treat", "cause_of", "interacts_with", "has_finding", "may_prevent"):
            relations.add(names[row[4]], row[7], names[row[0]])
        if row[7] in ("contraindicated_with_disease", "may_diagnose"):
            relations.add(names[row[4]], row[7], names[row[0]])
    kinds = {"T047": "Disease", "T121": "Drug", "T184": "Symptom", "T195": "Drug"}
    for row in _rows(folder / "META" / "MRSTY.RRF"):
        if row[1] in kinds:
            relations.pools.setdefault(kinds[row[1]], []).append(names[row[0]])
    return relations, {names[id]: name for id, name in chinese.items()}


def _rows(path: Path) -> list[list[str]]:
    return [line.split("|") for line in path.read_text(encoding="utf-8").splitlines()]


def _larger(r: Relations, kind: str, one: str, other: str) -> Answer:
    a, b = len(r.to(kind, one)), len(r.to(kind, other))
    return None if a == b else {one if a > b else other}


Worked = Callable[..., Answer]
Template = tuple[str, str, str, Worked]
"""Language, kinds of its names, words, and how its answer is worked out."""
HETIONET_TEMPLATES: tuple[Template, ...] = (
    (
        "en",
        "Compound",
        "If a patient takes {} for its usual disease, which symptoms might that disease show?",
        lambda r, c: r.to("DpS", *r.to("CtD", c)),
    ),
    (
        "en",
        "Disease Disease",
        "Name genes that {} and {} are both associated with.",
        lambda r, a, b: r.to("DaG", a) & r.to("DaG", b),
    ),
    (
        "en",
        "Compound Compound",
        "What genes does {} bind that {} does not?",
        lambda r, a, b: r.to("CbG", a) - r.to("CbG", b),
    ),
    ("en", "Gene", "Count the compounds which bind {}.", lambda r, g: len(r.of("CbG", g))),
    (
        "en",
        "Compound Compound",
        "Between {} and {}, which one binds more genes?",
        lambda r, a, b: _larger(r, "CbG", a, b),
    ),
    (
        "en",
        "Compound",
        "In which biological processes do the genes that {} upregulates participate?",
        lambda r, c: r.to("GpBP", *r.to("CuG", c)),
    ),
    (
        "en",
        "Compound",
        "Which other drugs resemble a drug that resembles {}?",
        lambda r, c: r.to("CrC", *r.to("CrC", c)),
    ),
    (
        "en",
        "Disease Compound",
        "Is any gene associated with {} bound by {}?",
        lambda r, d, c: bool(r.to("DaG", d) & r.to("CbG", c)) or None,
    ),
    (
        "en",
        "Disease",
        "To which drug classes do the medicines treating {} belong?",
        lambda r, d: r.of("PCiC", *r.of("CtD", d)),
    ),
    (
        "en",
        "Symptom",
        "What drugs are there against diseases presenting with {}?",
        lambda r, s: r.of("CtD", *r.of("DpS", s)),
    ),
    ("zh", "Compound", "{}所治疗的疾病会累及哪些器官？", lambda r, c: r.to("DlA", *r.to("CtD", c))),
    (
        "zh",
        "Disease Disease",
        "{}与{}有哪些共同的相关基因？",
        lambda r, a, b: r.to("DaG", a) & r.to("DaG", b),
    ),
    (
        "zh",
        "Compound Compound",
        "{}能结合而{}不能结合的基因是哪些？",
        lambda r, a, b: r.to("CbG", a) - r.to("CbG", b),
    ),
    ("zh", "Gene", "能与{}结合的化合物共有多少种？", lambda r, g: len(r.of("CbG", g))),
    (
        "zh",
        "Compound Compound",
        "{}和{}相比，谁结合的基因更多？",
        lambda r, a, b: _larger(r, "CbG", a, b),
    ),
    (
        "zh",
        "Compound",
        "被{}上调的基因参与什么生物过程？",
        lambda r, c: r.to("GpBP", *r.to("CuG", c)),
    ),
    (
        "zh",
        "Disease Compound",
        "{}的相关基因里有没有被{}结合的？",
        lambda r, d, c: bool(r.to("DaG", d) & r.to("CbG", c)) or None,
    ),
    (
        "zh",
        "Disease",
        "用于{}的药物分别属于什么药理类别？",
        lambda r, d: r.of("PCiC", *r.of("CtD", d)),
    ),
    (
        "zh",
        "Symptom",
        "出现{}的疾病可以用哪些药物治疗？",
        lambda r, s: r.of("CtD", *r.of("DpS", s)),
    ),
    ("zh", "Gene", "受{}调控的基因参与哪些通路？", lambda r, g: r.to("GpPW", *r.to("Gr>G", g))),
)
SAMPLE_TEMPLATES: tuple[Template, ...] = (
    (
        "en",
        "Drug",
        "Which diseases can result from a disease that {} treats?",
        lambda r, c: r.to("cause_of", *r.to("may_treat", c)),
    ),
    (
        "en",
        "Drug Drug",
        "Which drugs interact with {} as well as with {}?",
        lambda r, a, b: r.to("interacts_with", a) & r.to("interacts_with", b),
    ),
    (
        "en",
        "Disease",
        "What are the findings in a disease that is caused by {}?",
        lambda r, d: r.to("has_finding", *r.to("cause_of", d)),
    ),
    (
        "en",
        "Disease",
        "Which drugs interact with a drug that treats {}?",
        lambda r, d: r.to("interacts_with", *r.of("may_treat", d)),
    ),
    (
        "en",
        "Disease",
        "Which medications prevent what {} leads to?",
        lambda r, d: r.of("may_prevent", *r.to("cause_of", d)),
    ),
    (
        "zh",
        "Drug",
        "{}能治疗的疾病会导致哪些疾病？",
        lambda r, c: r.to("cause_of", *r.to("may_treat", c)),
    ),
    (
        "zh",
        "Drug Drug",
        "哪些药物与{}、{}都有相互作用？",
        lambda r, a, b: r.to("interacts_with", a) & r.to("interacts_with", b),
    ),
    (
        "zh",
        "Disease",
        "由{}引起的疾病有什么体征？",
        lambda r, d: r.to("has_finding", *r.to("cause_of", d)),
    ),
    (
        "zh",
        "Disease",
        "哪些药物会与治疗{}的药物相互作用？",
        lambda r, d: r.to("interacts_with", *r.of("may_treat", d)),
    ),
    (
        "zh",
        "Disease",
        "预防{}所引起疾病的药物有哪些？",
        lambda r, d: r.of("may_prevent", *r.to("cause_of", d)),
    ),
)


def _smaller(r: Relations, kind: str, one: str, other: str) -> Answer:
    a, b = len(r.to(kind, one)), len(r.to(kind, other))
    return None if a == b or not a or not b else {one if a < b else other}


def _twice(kinds: str, english: str, chinese: str, worked: Worked) -> tuple[Template, Template]:
    return ("en", kinds, english, worked), ("zh", kinds, chinese, worked)


# Written before anything was mended for them, and looked at once.
THIRD_HETIONET: tuple[Template, ...] = (
    *_twice(
        "Disease Disease",
        "Which anatomical sites are affected by both {} and {}?",
        "{}和{}都会累及的部位有哪些？",
        lambda r, a, b: r.to("DlA", a) & r.to("DlA", b),
    ),
    *_twice(
        "Compound Compound",
        "Which side effects do {} and {} have in common?",
        "{}与{}共同的副作用有哪些？",
        lambda r, a, b: r.to("CcSE", a) & r.to("CcSE", b),
    ),
    *_twice(
        "Disease",
        "Which pathways involve genes that are downregulated in {}?",
        "在{}中下调的基因参与哪些通路？",
        lambda r, d: r.to("GpPW", *r.to("DdG", d)),
    ),
    *_twice(
        "Gene Gene",
        "Do {} and {} take part in any common pathway?",
        "{}和{}是否参与同一条通路？",
        lambda r, a, b: bool(r.to("GpPW", a) & r.to("GpPW", b)) or None,
    ),
    *_twice(
        "Disease",
        "How many symptoms does {} present with?",
        "{}有几种症状？",
        lambda r, d: len(r.to("DpS", d)),
    ),
    *_twice(
        "Symptom Symptom",
        "Which diseases present with {} but not with {}?",
        "会出现{}但不会出现{}的疾病是哪些？",
        lambda r, a, b: r.of("DpS", a) - r.of("DpS", b),
    ),
    *_twice(
        "Compound",
        "What are the molecular functions of the genes bound by {}?",
        "{}所结合的基因具有哪些分子功能？",
        lambda r, c: r.to("GpMF", *r.to("CbG", c)),
    ),
    *_twice(
        "Disease Disease",
        "Is there a compound that is used to treat both {} and {}?",
        "有没有药物既能治疗{}又能治疗{}？",
        lambda r, a, b: bool(r.of("CtD", a) & r.of("CtD", b)) or None,
    ),
    *_twice(
        "Disease Disease",
        "Which has fewer known symptoms, {} or {}?",
        "{}和{}哪个的症状较少？",
        lambda r, a, b: _smaller(r, "DpS", a, b),
    ),
    *_twice(
        "Disease",
        "Diseases resembling {} are treated by which compounds?",
        "与{}相似的疾病用什么化合物治疗？",
        lambda r, d: r.of("CtD", *r.to("DrD", d)),
    ),
)
THIRD_SAMPLE: tuple[Template, ...] = (
    *_twice(
        "Disease",
        "Which tests diagnose the diseases that {} gives rise to?",
        "哪些检查可以诊断由{}导致的疾病？",
        lambda r, d: r.of("may_diagnose", *r.to("cause_of", d)),
    ),
    *_twice(
        "Drug",
        "In which diseases must the drugs that interact with {} not be given?",
        "与{}有相互作用的药物禁用于哪些疾病？",
        lambda r, c: r.to("contraindicated_with_disease", *r.to("interacts_with", c)),
    ),
    *_twice(
        "Disease Disease",
        "Which findings occur in {} and in {} alike?",
        "{}和{}共有的表现是什么？",
        lambda r, a, b: r.to("has_finding", a) & r.to("has_finding", b),
    ),
    *_twice(
        "Symptom",
        "Which tests can detect a disease that shows {}?",
        "出现{}的疾病可用什么检查诊断？",
        lambda r, s: r.of("may_diagnose", *r.of("has_finding", s)),
    ),
    *_twice(
        "Drug",
        "How many drugs does {} interact with?",
        "{}与几种药物存在相互作用？",
        lambda r, c: len(r.to("interacts_with", c)),
    ),
)


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
) -> Iterator[GraphCase]:
    """Questions of each template whose answer is not empty and can be listed."""
    for language, kinds, words, worked in templates:
        random, made = Random(f"{seed} {words}"), 0
        for _ in range(20_000):
            names = [random.choice(relations.pools[kind]) for kind in kinds.split()]
            answer = worked(relations, *names) if len(set(names)) == len(names) else None
            if not answer or (isinstance(answer, set) and len(answer) > _MOST):
                continue
            shown = [told.get(name, name) if language == "zh" else name for name in names]
            text = words.format(*shown)
            yield GraphCase(graph, "template", Question(text, text, (), language_of(text)), answer)
            made += 1
            if made == _CASES_EACH[graph]:
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
    """What the route answers; `None` where it leaves the question to others."""
    run = Run()
    solution = await GraphRoute(GraphSets(graph)).solve(case.question, run)
    if solution is None:
        return None
    told = [event for event in run.events if isinstance(event, FormSolved)][-1].answer
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
    parser.add_argument("--third", action="store_true", help="the third set: 120 other questions")
    asked = parser.parse_args()
    graphs: dict[str, Graph] = {}
    cases: list[GraphCase] = []
    with tempfile.TemporaryDirectory() as made, as_file(files("osler.sample") / "graph") as sample:
        graphs["sample"] = Graph.create(Path(made) / "sample")
        graphs["sample"].add(read_graph_files([sample]))
        cases += read_by_hand(THIRD if asked.third else asked.by_hand or BY_HAND)
        of_sample = THIRD_SAMPLE if asked.third else SAMPLE_TEMPLATES
        of_hetionet = THIRD_HETIONET if asked.third else HETIONET_TEMPLATES
        folder = asked.data / HETIONET
        if not asked.by_hand:
            relations, chinese = read_sample(sample)
            cases += make_cases("sample", of_sample, relations, chinese, asked.seed)
        if not asked.by_hand and folder.exists():
            graphs["Hetionet"] = Graph.create(Path(made) / "hetionet")
            names = ("hetionet-v1.0-nodes.tsv", "hetionet-v1.0-edges.sif.gz")
            graphs["Hetionet"].add(read_graph_files([folder / name for name in names]))
            hetionet = read_hetionet(folder)
            cases += make_cases("Hetionet", of_hetionet, hetionet, {}, asked.seed)
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
