"""Templates of `graph_questions.py`, with answers computed from the raw relations of two graphs."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Answer = set[str] | int | bool | None


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
# The fourth set, written before anything was mended for it.
FOURTH_HETIONET: tuple[Template, ...] = (
    *_twice(
        "Compound Disease",
        "Which genes bound by {} are associated with {}?",
        "{}结合的基因中，哪些与{}相关？",
        lambda r, c, d: r.to("CbG", c) & r.to("DaG", d),
    ),
    *_twice(
        "Disease",
        "How many anatomical structures does {} affect?",
        "{}累及多少个部位？",
        lambda r, d: len(r.to("DlA", d)),
    ),
    *_twice(
        "Disease Disease",
        "Which genes are upregulated in both {} and {}?",
        "在{}和{}中都上调的基因有哪些？",
        lambda r, a, b: r.to("DuG", a) & r.to("DuG", b),
    ),
    *_twice(
        "Compound",
        "Which diseases resemble a disease that {} treats?",
        "与{}治疗的疾病相似的疾病有哪些？",
        lambda r, c: r.to("DrD", *r.to("CtD", c)),
    ),
    *_twice(
        "Disease Disease",
        "Which of {} and {} affects fewer organs?",
        "{}和{}中，哪一个累及的器官更少？",
        lambda r, a, b: _smaller(r, "DlA", a, b),
    ),
    *_twice(
        "Compound",
        "What diseases does a drug that resembles {} palliate?",
        "与{}相似的药物能缓解哪些疾病？",
        lambda r, c: r.to("CpD", *r.to("CrC", c)),
    ),
    *_twice(
        "Disease Disease",
        "Which symptoms occur in {} but not in {}?",
        "{}有而{}没有的症状是什么？",
        lambda r, a, b: r.to("DpS", a) - r.to("DpS", b),
    ),
    *_twice(
        "Compound Compound",
        "Do {} and {} bind any gene in common?",
        "{}和{}有没有共同结合的基因？",
        lambda r, a, b: bool(r.to("CbG", a) & r.to("CbG", b)) or None,
    ),
    *_twice(
        "Gene",
        "In which cellular components do the genes that interact with {} take part?",
        "与{}相互作用的基因参与哪些细胞组分？",
        lambda r, g: r.to("GpCC", *r.to("GiG", g)),
    ),
    *_twice(
        "Gene",
        "Which drugs treat diseases that are associated with {}?",
        "与{}相关的疾病用哪些药物治疗？",
        lambda r, g: r.of("CtD", *r.of("DaG", g)),
    ),
)
FOURTH_SAMPLE: tuple[Template, ...] = (
    *_twice(
        "Drug",
        "Which tests can diagnose the diseases treated by {}?",
        "{}所治疗的疾病可以用什么检查诊断？",
        lambda r, c: r.of("may_diagnose", *r.to("may_treat", c)),
    ),
    *_twice(
        "Disease",
        "Which diseases can be caused by drugs that treat {}?",
        "治疗{}的药物会引起哪些疾病？",
        lambda r, d: r.to("cause_of", *r.of("may_treat", d)),
    ),
    *_twice(
        "Symptom",
        "Which drugs treat a disease with {}?",
        "有{}症状的疾病用什么药物治疗？",
        lambda r, s: r.of("may_treat", *r.of("has_finding", s)),
    ),
    *_twice(
        "Drug Drug",
        "Which diseases can be treated with both {} and {}?",
        "哪些疾病既可用{}治疗，也可用{}治疗？",
        lambda r, a, b: r.to("may_treat", a) & r.to("may_treat", b),
    ),
    *_twice(
        "Drug",
        "Which drugs treat the diseases that {} causes?",
        "{}引起的疾病用哪些药物治疗？",
        lambda r, c: r.of("may_treat", *r.to("cause_of", c)),
    ),
    *_twice(
        "Drug Disease",
        "Does {} interact with a drug that treats {}?",
        "{}是否与治疗{}的药物有相互作用？",
        lambda r, c, d: bool(r.to("interacts_with", c) & r.of("may_treat", d)) or None,
    ),
    *_twice(
        "Disease Disease",
        "Which drugs treat {} but not {}?",
        "能治疗{}但不能治疗{}的药物是什么？",
        lambda r, a, b: r.of("may_treat", a) - r.of("may_treat", b),
    ),
    *_twice(
        "Drug",
        "Which symptoms are seen in the diseases in which {} is contraindicated?",
        "禁用{}的疾病有什么症状？",
        lambda r, c: r.to("has_finding", *r.to("contraindicated_with_disease", c)),
    ),
    *_twice(
        "Drug Drug",
        "Which of {} and {} is used for more diseases?",
        "{}和{}中哪一个治疗的疾病更多？",
        lambda r, a, b: (
            _larger(r, "may_treat", a, b) if r.to("may_treat", a) and r.to("may_treat", b) else None
        ),
    ),
    *_twice(
        "Disease",
        "How many drugs are used to treat {}?",
        "治疗{}的药物有多少种？",
        lambda r, d: len(r.of("may_treat", d)),
    ),
)
FIXTURES = Path(__file__).parents[1] / "tests" / "fixtures" / "graph_questions"
SETS: dict[str, tuple[Path, tuple[Template, ...], tuple[Template, ...], int]] = {
    "first": (FIXTURES / "by_hand.tsv", SAMPLE_TEMPLATES, HETIONET_TEMPLATES, 3),
    "third": (FIXTURES / "third.tsv", THIRD_SAMPLE, THIRD_HETIONET, 3),
    "fourth": (FIXTURES / "fourth.tsv", FOURTH_SAMPLE, FOURTH_HETIONET, 2),
}
"""Worded by hand, templates over the sample and over Hetionet, instances of each of these."""
