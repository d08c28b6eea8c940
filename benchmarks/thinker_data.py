"""KAG-Thinker's training data from structured data: questions over two graphs, solved by the graph.

    python benchmarks/thinker_data.py --out FOLDER [--data FOLDER] [--each 20] [--labels 200]

App. 9's pipeline with the graph's route as its teacher: the questions of `graph_templates.py`, in
other instances than those reported on, each solved by sets, written as the paper's chat (plan,
searches with the relations as references, programs that the sandbox runs, the answer with its
citations), and filtered: wrong against the answer from the raw relations, broken, too long, or
unsound by the rules of App. 10. FOLDER/data holds `data.jsonl` and its card. Of the kept ones
`--labels` are labelled by construction, half as they are and half with one fault planted, and the
rules are held against these labels (Tables 12 and 13).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from graph_questions import HETIONET, ROOT, GraphCase, make_cases
from graph_templates import SETS, read_hetionet, read_sample

from osler.errors import BadCalculation, MalformedOutput
from osler.evaluate.record import Gold, Sample
from osler.graph.formats import read_graph_files
from osler.graph.store import Graph
from osler.methods.kag.dependencies import fill_references
from osler.methods.kag.depth import SubAnswer
from osler.methods.kag.executors import calculation_prompt, deduction_prompt
from osler.methods.kag.graph_route import GraphRoute, GraphSets
from osler.methods.kag.logical_forms import Deduce, LogicalPlan, Math, Retrieval
from osler.methods.kag.notation import render_form, render_plan
from osler.methods.kag.output import answer_prompt
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import DECOMPOSE, plan_prompt
from osler.methods.kag.sandbox import run_calculation
from osler.trace import FormSolved, FormsPlanned, Run
from osler.train.thinker import export
from osler.train.thinker.dialogue import Stage
from osler.train.thinker.inspector import inspect_all
from osler.train.thinker.quality import QualityItem, read_items
from osler.train.thinker.rounds import TeachingConfig, TeachingJob
from osler.train.thinker.rules import RuleInspector
from osler.train.thinker.tables import render_report, validate_judge, verdict_shares
from osler.train.thinker.teacher import Teacher
from osler.train.thinker.trajectory import SearchTurn, SolvedStep, Trajectory
from osler.types import Answer, Language, Question

_SEED = 1000
"""Of the instances: none that `graph_questions.py` reports on by default."""
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "plan": "The question needs {n} steps: {steps}.",
        "then": ", then ",
        "enough": "The references state it of {names}, so step {n} is answered.",
        "Retrieval": "look up what is reached by {what}",
        "Math": "work out the {what} of these sets",
        "Deduce": "see whether the sets share a member",
        "Output": "give the answer",
        "final": "The steps give {value}, and each is borne out by its references.",
    },
    "zh": {
        "plan": "这个问题需要 {n} 步：{steps}。",
        "then": "，然后",
        "enough": "资料写明了{names}，因此第 {n} 步已有答案。",
        "Retrieval": "沿关系 {what} 查找",
        "Math": "对这些集合计算 {what}",
        "Deduce": "判断这些集合是否有共同成员",
        "Output": "给出答案",
        "final": "各步骤得出{value}，每一步都有资料支持。",
    },
}


@dataclass(frozen=True)
class GraphTeacher:
    """Solves a question by the graph's route and writes it down as a teacher's run."""

    graphs: Mapping[str, Graph]
    name: str = "graph sets"

    @property
    def student(self) -> Any:
        """No model's boundary is determined: everything is looked up."""
        return SimpleNamespace(model=SimpleNamespace(name=""))

    async def teach_question(
        self, question: Question, stage: Stage, seed: int
    ) -> tuple[Trajectory, Run]:
        """Raises `MalformedOutput` where the graph has no answer."""
        graph, run = self.graphs[question.id.partition(":")[0]], Run(id=question.id, seed=seed)
        solution = await GraphRoute(GraphSets(graph)).solve(question, run)
        if solution is None or not any(isinstance(one, FormsPlanned) for one in run.events):
            raise MalformedOutput("", expected="an answer of the graph")
        return await write_trajectory(graph, question, solution.answer, run), run


async def write_trajectory(
    graph: Graph, question: Question, answer: Answer, run: Run
) -> Trajectory:
    planned = next(one for one in run.events if isinstance(one, FormsPlanned))
    solved = {one.n: one for one in run.events if isinstance(one, FormSolved)}
    wire = "\n".join(
        f"Step{one.n}: {one.step}\nAction{one.n}: {one.action}" for one in planned.nodes
    )
    plan, words = read_plan(wire), _WORDS[question.language]
    answers = {n: _in_words(one.answer, question.language) for n, one in solved.items()}
    steps = [await _write_step(graph, plan, n, answers, solved, question.language) for n in solved]
    parts = [words[one.fn].format(what=_what_of(plan, one.n)) for one in planned.nodes]
    value = answers[plan.steps[-1].n]
    asked = [
        SubAnswer(one.n, fill_references(one.step, answers), answers[one.n])
        for one in planned.nodes[:-1]
    ]
    hits = [one.hit for one in answer.evidence]
    said = " ".join(
        f"{one.text} {''.join(f'[{n}]' for n in one.cites)}" for one in answer.statements
    )
    return Trajectory(
        plan_prompt(DECOMPOSE, question).text,
        words["plan"].format(n=len(parts), steps=words["then"].join(parts)),
        render_plan(plan),
        "planner",
        planned.warnings,
        tuple(steps),
        answer_prompt(question, asked, hits).text,
        words["final"].format(value=value),
        f"{said}\n<answer>\\boxed{{{value}}}</answer>",
    )


def _in_words(answer: str, language: Language) -> str:
    return {"yes": "是"}.get(answer, answer) if language == "zh" else answer


def _what_of(plan: LogicalPlan, n: int) -> str:
    match plan.step_numbered(n).action:
        case Retrieval() as form:
            return form.p.type or form.p.name
        case Math(target=target):
            return target
        case _:
            return ""


async def _write_step(
    graph: Graph,
    plan: LogicalPlan,
    n: int,
    answers: Mapping[int, str],
    solved: Mapping[int, FormSolved],
    language: Language,
) -> SolvedStep:
    step = plan.step_numbered(n)
    before = {m: answers[m] for m in answers if m < n}
    form, name = step.action, type(step.action).__name__
    asked = f"Step{n}: {fill_references(step.question, before)}\nAction{n}: {render_form(form)}"
    written = SolvedStep(n, name, asked, answers[n])
    match form:
        case Retrieval():
            passages = [graph.get_passage(id) for id in solved[n].passages]
            reason = _WORDS[language]["enough"].format(names=answers[n], n=n)
            references = tuple(f"{one.title}: {one.text}" for one in passages)
            ids = tuple(one.id for one in passages)
            turn = SearchTurn(asked, references, ids, True, reason)
            return replace(written, assessed=True, turns=(turn,))
        case Math(content=content):
            sets = [answers[_step_of(plan, item)] for item in content]
            code = _write_program(form.target, sets, [_origin_of(plan, item) for item in content])
            told = str((await run_calculation(code)).value)
            if told != answers[n]:
                raise MalformedOutput(told, expected="a program that gives the set's value")
            prompt = calculation_prompt(form, sets, language).text
            return replace(written, prompt=prompt, code=code)
        case Deduce(content=content):
            sets = [_value_of(plan, item, answers) for item in content]
            return replace(written, prompt=deduction_prompt(form, sets, language).text)
        case _:
            return written


def _step_of(plan: LogicalPlan, alias: str) -> int:
    """The step that binds an alias."""
    for one in reversed(plan.steps):
        form = one.action
        if isinstance(form, Retrieval):
            bound = form.o.alias if not form.o.name else form.s.alias
        else:
            bound = getattr(form, "alias", "")
        if alias in (bound, getattr(form, "alias", "")) or (
            isinstance(form, Retrieval) and alias in (form.s.alias, form.o.alias)
        ):
            return one.n
    raise BadCalculation(f"nothing binds {alias}")


def _value_of(plan: LogicalPlan, item: str, answers: Mapping[int, str]) -> str:
    try:
        return answers[_step_of(plan, item)]
    except BadCalculation:
        return item  # a name


def _origin_of(plan: LogicalPlan, alias: str) -> str:
    """The name that a chain begins with."""
    form = plan.step_numbered(_step_of(plan, alias)).action
    if not isinstance(form, Retrieval):
        return alias
    named = form.s.name or form.o.name
    if named:
        return named
    start = form.s.alias if form.o.alias == alias else form.o.alias
    return _origin_of(plan, start) if start != alias else alias


def _write_program(target: str, sets: Sequence[str], origins: Sequence[str]) -> str:
    """The Math as a program; its last line is the result."""
    lines = [f"s{n} = {each.split('; ')!r}" for n, each in enumerate(sets, 1)]
    last = {
        "count": "len(s1)",
        "intersection": "'; '.join([x for x in s1 if x in s2])",
        "difference": "'; '.join([x for x in s1 if x not in s2])",
        "union": "'; '.join(s1 + [x for x in s2 if x not in s1])",
        "most": "{0!r} if len(s1) > len(s2) else {1!r}",
        "fewest": "{0!r} if len(s1) < len(s2) else {1!r}",
    }[target]
    if target in ("most", "fewest"):
        last = last.format(*origins)
    return "\n".join([*lines, last])


def make_samples(cases: Sequence[GraphCase], chinese: Mapping[str, str]) -> list[Sample]:
    return [
        Sample(
            "graph",
            "short",
            replace(case.question, id=f"{case.graph}:{n}"),
            Gold(texts=_gold_texts(case, chinese)),
        )
        for n, case in enumerate(cases)
    ]


def _gold_texts(case: GraphCase, chinese: Mapping[str, str]) -> tuple[str, ...]:
    zh = case.question.language == "zh"
    match case.answer:
        case bool():
            return ("是" if zh else "yes",)
        case int() as number:
            return (str(number),)
        case set() as names:
            told = [chinese.get(name, name) if zh else name for name in sorted(names)]
            return ("; ".join(told),)
        case None:
            return ()


_FILLER = "So it is said of this one here and of that one there in other words again. " * 80
FAULTS: Mapping[str, tuple[str, int, str, str]] = {
    "another answer": ("accuracy", -1, r"\\boxed\{.*?\}", r"\\boxed{zorvane}"),
    "a member too many": ("accuracy", -1, r"\\boxed\{(.*?)\}", r"\\boxed{\1; Warfarin; Zorvane}"),
    "no answer": ("accuracy", -1, r"\\boxed\{.*?\}", r"\\boxed{unknown}"),
    "an invented source": ("accuracy", -1, r"\[\d+\]", "[97]"),
    "an open tag": ("fluency", -1, "</answer>", ""),
    "no thought": ("fluency", -1, "(?s)<think>.*?</think>", ""),
    "repetition": ("fluency", -1, "</think>", " It is as it is said." * 4 + "</think>"),
    "a telephone number": ("security", -1, r"\Z", " Call 13812345678."),
    "a harmful word": ("security", -1, "</think>", " Doubling every dose never hurts.</think>"),
    "shouting": ("emotion", -1, r"\Z", " WRONG!!!"),
    "rudeness": ("emotion", -1, "</think>", " Only a fool would ask this.</think>"),
    "a long answer": ("relevance", -1, "<answer>", _FILLER + "<answer>"),
    "beside the point": ("relevance", -1, "</think>", " My cat likes milk.</think>"),
    "a step that waits for none": ("logic", 2, "Output\\(", "Output(#9, "),
    "a wrong inference": ("logic", -1, "</think>", " Since it is Monday, this follows.</think>"),
}
"""What is planted: the dimension that it makes bad, the turn, and what replaces what. A rule cannot
see five of them."""


def plant_faults(items: list[dict[str, Any]], count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Half of `count` items as they are, half with one fault each; labelled accordingly."""
    chance = random.Random(seed)
    chosen = chance.sample(items, min(count, len(items)))
    labelled = []
    for n, item in enumerate(chosen):
        line: dict[str, Any] = json.loads(json.dumps(item))
        line["labels"] = "good"
        if n % 2:
            name = [*FAULTS][n // 2 % len(FAULTS)]
            dimension, at, old, new = FAULTS[name]
            turn = line["messages"][at]
            turn["content"] = re.sub(old, new, turn["content"], count=1)
            line["labels"], line["meta"]["fault"] = [dimension], name
        labelled.append(line)
    return labelled


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--each", type=int, default=20, help="instances of a template")
    parser.add_argument("--labels", type=int, default=200)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made, as_file(files("osler.sample") / "graph") as sample:
        graphs = {name: Graph.create(Path(made) / name) for name in ("sample", "Hetionet")}
        names = ("hetionet-v1.0-nodes.tsv", "hetionet-v1.0-edges.sif.gz")
        folder = given.data / HETIONET
        graphs["sample"].add(read_graph_files([sample]))
        graphs["Hetionet"].add(read_graph_files([folder / name for name in names]))
        (small, chinese), large = read_sample(sample), read_hetionet(folder)
        cases = [
            case
            for _, of_sample, of_hetionet, _ in SETS.values()
            for graph, templates, relations, told in (
                ("sample", of_sample, small, chinese),
                ("Hetionet", of_hetionet, large, {}),
            )
            for case in make_cases(graph, templates, relations, told, _SEED, given.each)
        ]
        teacher = cast("Teacher", GraphTeacher(graphs))
        course = TeachingConfig(teacher, "thinker", 1, 0, inspector=RuleInspector())
        await TeachingJob(given.out / "log", course).run(make_samples(cases, chinese))
    written = export.export_data(
        given.out / "log", given.out / "data", stages=("thinker",), licence="cc0-1.0"
    )
    for tally in written.tallies:
        print(f"questions {tally.questions}, kept {tally.kept}, dropped {tally.dropped}")
    print(f"{written.lines} lines in {written.folder}")
    lines = (given.out / "data" / "data.jsonl").read_text(encoding="utf-8").splitlines()
    labelled = given.out / "labelled.jsonl"
    planted = plant_faults([json.loads(line) for line in lines], given.labels)
    labelled.write_text(
        "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in planted), encoding="utf-8"
    )
    items: list[QualityItem] = read_items(labelled)
    found = (await inspect_all(items, RuleInspector())).found
    print(render_report(verdict_shares(found), validate_judge(items, found)))


if __name__ == "__main__":
    asyncio.run(main())
