"""Two hand-made cases that go through all three parts, in English and in Chinese.

The model's words, the passages and the probabilities are written here. Under cppl a text scored
at probability p has the value 1/p, so SURE (2) lies below sigma = 10 and UNSURE (50) above it.
Events and film are golden (`tests/golden/unified`), written anew with
`python tests/unit/methods/unified/test_unified_cases.py` when a change is meant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import unescape
from pathlib import Path

import pytest

from osler.answer.written import WrittenComposer
from osler.cli.film import draw_film
from osler.cli.page import render_page
from osler.cli.render import RunPage
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Message, Scored
from osler.methods.kag.boundary import GenerateThenAssess
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import Retrieval
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.planner import Decomposer
from osler.methods.kag.solver import Thinker
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.single import Prompting, Proposer
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.tcrag.machine import TuringMachine
from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.stack import Cppl
from osler.methods.tcrag.tools import KG_FORM, PLANNED_RAG
from osler.methods.unified import (
    BRIEFLY,
    FormTool,
    MachineDepth,
    PlannedSearch,
    PlannedTool,
    StateSignal,
)
from osler.trace import (
    Asked,
    BoundaryChecked,
    Budget,
    FormBegun,
    FormSolved,
    Noted,
    Pushed,
    Run,
    SourcesPlanned,
    to_line,
)
from osler.types import Halt, Hit, Language, Passage, Question, Solution, Usage
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever, tokens_of

GOLDEN = Path(__file__).parents[3] / "golden" / "unified"
SURE, UNSURE = 1 / 2, 1 / 50
SIGMA = 10.0


@dataclass
class Scoring(KeyedModel):
    """A keyed model that scores given texts as well."""

    scores: Mapping[str, float] = field(default_factory=dict)
    """Text → probability of each of its tokens; SURE for others."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        tokens = tokens_of(text, self.scores.get(text, SURE))
        return Scored(tokens, Usage(calls=1, scored_tokens=len(tokens)))


@dataclass
class Graph:
    """A graph that is asked by form."""

    passages: Sequence[Passage] = ()
    forms: list[Retrieval] = field(default_factory=list)

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        self.forms.append(form)
        return [Hit(p, 1.0, n, "form", "graph") for n, p in enumerate(self.passages[:k], 1)]


@dataclass(frozen=True)
class Case:
    question: Question
    replies: Mapping[str, Sequence[str]]
    scores: Mapping[str, float]
    passages: Mapping[str, Mapping[str, Sequence[Passage]]]
    """Source → what its queries find."""
    relations: Sequence[Passage]

    def model(self) -> Scoring:
        return Scoring(dict(self.replies), scores=self.scores)

    def solver(self, model: Scoring | None = None, graph: Graph | None = None) -> Thinker:
        """All parts on."""
        model = model or self.model()
        reader, planner = Speaker(model, "reader"), Speaker(model, "planner")
        sources = {name: ScriptedRetriever(dict(found)) for name, found in self.passages.items()}
        offers = tuple(SourceDescription(name) for name in sources)
        search = PlannedSearch(Prompting(Proposer(planner, offers)), PlannedRetriever(sources, 3))
        tools = (PlannedTool(search), FormTool(graph or Graph(self.relations)))
        moves = AnyMove(frozenset({PLANNED_RAG, KG_FORM}))
        machine = TuringMachine(model, tools, Cppl(model), WrittenComposer(), moves, sigma=SIGMA)
        signal = StateSignal(Cppl(model), SIGMA)
        boundary = GenerateThenAssess(reader, state=signal)
        nobody = ScriptedRetriever({})
        short = DepthSolver(reader, nobody, boundary, Focuser(reader))
        return Thinker(
            Decomposer(planner),
            MachineDepth(machine, boundary, short),
            Calculator(reader, {}),
            Deducer(reader),
            AnswerFinisher(reader),
            WrittenComposer(),
        )


def box(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def _passage(id: str, text: str, title: str, language: Language = "en") -> Passage:
    return Passage(id, text, id.split(":")[0], title, language=language)


RISES = _passage(
    "guideline:inr#0",
    "Amiodarone slows the clearance of warfarin. The INR rises, so the warfarin dose is lowered.",
    "Anticoagulation",
)
FORUM = _passage("web:w#0", "Warfarin must be doubled with amiodarone.", "A forum")
RELATION = _passage("graph:warfarin#1", "warfarin, interacts with, amiodarone", "warfarin")

ENGLISH = Case(
    Question(
        "dose",
        "Amiodarone is added to the oral anticoagulant that vitamin K reverses."
        " How is the dose of the anticoagulant changed?",
        ("it is raised", "it is lowered", "it is left as it is"),
    ),
    {
        "decompose the user question": [
            "<answer>Step1: Which oral anticoagulant does vitamin K reverse?\n"
            "Action1: Retrieval(s=s1:drug['vitamin K'], p=p1:reverses, o=o1:drug)\n"
            "Step2: What does amiodarone do to the INR of patients on #1?\n"
            "Action2: Retrieval(s=o1, p=p2:interacts with, o=o2:effect)\n"
            "Step3: Is the dose raised or lowered, given #2?\n"
            "Action3: Deduce(op=choice, content=['o2'], target='change of the dose')->o3\n"
            "Step4: Output #3.\n"
            "Action4: Output(o3)</answer>"
        ],
        # The boundary: known by itself, not known by itself.
        "Can you answer the following question step by step?\nIf you can, wrap your answer with"
        " <answer>\\boxed{your answer}</answer>.\nIf you can't, just reply that based on my"
        " internal knowledge, I can't answer this question, I need to retrieve external"
        " knowledge.\nQuestion: Which oral": [f"It is warfarin. {box('warfarin')}"],
        "Question: Which oral anticoagulant does vitamin K reverse?\nAnswer: warfarin": [
            box("True")
        ],
        "knowledge.\nQuestion: What does amiodarone": [f"I think that it falls. {box('it falls')}"],
        # The machine: a tool, noise popped, a doubt, the graph by form, a conclusion.
        "What earlier steps have found": [
            "Tool_Use: PLANNED_RAG\nTool_Input: warfarin with amiodarone",
            "Tool_Use: PLANNED_RAG\nTool_Input: amiodarone, warfarin and the INR",
        ],
        "Tool_Observation: [1] A forum": ["Backtrack: a forum is no authority"],
        "Tool_Observation: [1] Anticoagulation": [
            "Conclusion: The INR goes up or down. [1]",
        ],
        "Thought: The INR goes up or down": ["Tool_Use: KG_FORM"],
        "Tool_Observation: [2] warfarin": ["Conclusion: The INR rises with amiodarone. [1]"],
        # The planner of sources.
        "# Question\nwarfarin with amiodarone": [
            "<guideline></guideline>\n<web> warfarin amiodarone dose </web>"
        ],
        "# Question\namiodarone, warfarin and the INR": [
            "<guideline> amiodarone warfarin INR ; warfarin clearance </guideline>\n<web></web>"
        ],
        # What later steps are asked with, what is worked out, and the last answer.
        "Answer the question from the references alone": [box("it rises")],
        "Choose the one that fits": [f"A high INR means too much. {box('lowered')}"],
        "Answer the last question": [
            f"The INR rises, so the warfarin dose is lowered. [1] {box('B')}"
        ],
    },
    {"it falls": UNSURE, "The INR goes up or down. [1]": UNSURE},
    {
        "guideline": {"INR": (RISES,), "clearance": (RISES,)},
        "web": {"dose": (FORUM,)},
    },
    (RELATION,),
)

ZH_RISES = _passage(
    "guideline:inr-zh#0", "胺碘酮减慢华法林的代谢。INR升高，应减少华法林剂量。", "抗凝治疗", "zh"
)
CHINESE = Case(
    Question("zh", "服用华法林的患者加用胺碘酮后，INR如何变化？", language="zh"),
    {
        "拆解为一个或多个逻辑步骤": [
            "<answer>Step1: 胺碘酮对服用华法林患者的INR有什么影响？\n"
            "Action1: Retrieval(s=s1:药物['华法林'], p=p1:相互作用, o=o1:影响)\n"
            "Step2: 输出 #1。\nAction2: Output(o1)</answer>"
        ],
        "需要检索外部知识。": ["我无法回答这个问题，需要检索外部知识。"],
        BRIEFLY["zh"]: ["Tool_Use: PLANNED_RAG\nTool_Input: 胺碘酮 华法林 INR"],
        "# 来源说明": ["<guideline> 胺碘酮 华法林 </guideline>\n<web></web>"],
        "Tool_Observation: [1]": ["Conclusion: INR升高，应减少华法林剂量。[1]"],
        "请仅根据参考资料": [box("INR升高")],
        "参考资料：\n[1] 抗凝治疗": [f"INR升高，应减少华法林剂量。[1] {box('INR升高')}"],
    },
    {},
    {"guideline": {"胺碘酮": (ZH_RISES,)}, "web": {}},
    (),
)
CASES: Mapping[str, Case] = {
    "a_question_goes_through_all_three_parts": ENGLISH,
    "a_chinese_question_goes_through_all_three_parts": CHINESE,
}


async def played(case: Case) -> tuple[Solution, Run]:
    run = Run()
    return await case.solver().solve(case.question, run), run


def log(run: Run) -> str:
    """The events as JSON Lines; of a prompt its name, for its wording has golden files."""
    named = [
        replace(e, prompt=e.prompt.split("@")[0]) if isinstance(e, Asked) else e for e in run.events
    ]
    return "".join(f"{to_line(event)}\n" for event in named)


def shown(run: Run) -> str:
    """The film, without the hashes of prompts."""
    named = (
        replace(e, prompt=e.prompt.split("@")[0]) if isinstance(e, Asked) else e for e in run.events
    )
    return "".join(f"{line.plain}\n" for line in draw_film(named))


@pytest.mark.parametrize("name", sorted(CASES))
async def test_a_case_goes_as_its_golden_log_and_its_film(name: str) -> None:
    solution, run = await played(CASES[name])
    assert solution.halt is Halt.CONVERGED
    assert log(run) == (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8")
    assert shown(run) == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


async def test_unified_parts_hand_on_to_each_other() -> None:
    """KAG plans, the boundary lets one step stand, the machine solves the other."""
    solution, run = await played(ENGLISH)
    assert [e.n for e in run.events if isinstance(e, FormBegun)] == [1, 2]
    known, unknown = [e for e in run.events if isinstance(e, BoundaryChecked)]
    assert (known.known, known.metric, known.state, known.sigma) == (True, "cppl", 2, SIGMA)
    # Likely in its own words, and yet unsure given the question: the state value decides.
    assert (unknown.known, unknown.probability, unknown.self_check) == (False, 0.9, None)
    assert unknown.state == pytest.approx(50)
    plans = [e for e in run.events if isinstance(e, SourcesPlanned)]
    assert [{q.source for q in plan.queries} for plan in plans] == [{"web"}, {"guideline"}]
    solved = {e.n: e for e in run.events if isinstance(e, FormSolved)}
    assert {n: e.answer for n, e in solved.items()} == {
        1: "warfarin",
        2: "The INR rises with amiodarone.",
        3: "lowered",
        4: "lowered",
    }
    assert solved[2].confidence == pytest.approx(0.5)
    assert solution.answer.option == "B"


async def test_there_is_one_list_of_evidence_without_what_was_popped() -> None:
    solution, run = await played(ENGLISH)
    rested_on = {id for e in run.events if isinstance(e, FormSolved) for id in e.passages}
    assert rested_on == {RISES.id}  # what the machine's conclusion cites, and is borne out by
    assert [e.passage.id for e in solution.answer.evidence] == [RISES.id]


async def test_the_graph_is_asked_with_what_an_earlier_step_found() -> None:
    graph = Graph((RELATION,))
    await ENGLISH.solver(graph=graph).solve(ENGLISH.question, Run())
    assert [(form.s.name, form.p.type) for form in graph.forms] == [("warfarin", "interacts with")]


async def test_what_earlier_steps_found_stands_in_the_memory_of_a_step() -> None:
    _, run = await played(ENGLISH)
    first = [e for e in run.events if isinstance(e, Pushed) and e.i == 0]
    assert [e.kind for e in first] == ["User_Query", "Thought", "Thought"]
    assert first[1].text.endswith("vitamin K reverse? warfarin")
    assert first[2].text == BRIEFLY["en"]  # another step is asked with its answer


async def test_only_a_long_answer_that_others_wait_for_is_shortened() -> None:
    long = "Tool_Observation: [2] warfarin"
    said = "Conclusion: The INR rises with amiodarone, and so the dose of it is lowered soon. [1]"
    case = replace(ENGLISH, replies={**ENGLISH.replies, long: [said]})
    _, run = await played(case)
    solved = {e.n: e.answer for e in run.events if isinstance(e, FormSolved)}
    assert solved[2] == "it rises"
    _, short = await played(ENGLISH)
    asked = [e.prompt.split("@")[0] for e in short.events if isinstance(e, Asked)]
    assert "kag/solve" not in asked


async def test_a_deduce_that_ends_the_plan_is_left_to_the_answer() -> None:
    plan, _, _ = ENGLISH.replies["decompose the user question"][0].partition("Step4")
    replies = {**ENGLISH.replies, "decompose the user question": [f"{plan}</answer>"]}
    solver = replace(ENGLISH, replies=replies).solver()
    run = Run()
    solution = await replace(solver, last_deduce=False).solve(ENGLISH.question, run)
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.option == "B"
    assert [e.n for e in run.events if isinstance(e, FormSolved)] == [1, 2]
    assert "step 3 is left to the answer" in [e.text for e in run.events if isinstance(e, Noted)]


async def test_a_step_s_question_is_looked_up_before_its_machine_is_asked() -> None:
    asked = "# Question\nWhat does amiodarone do to the INR of patients on warfarin?"
    planned = ["<guideline> amiodarone warfarin INR </guideline>\n<web></web>"]
    solver = replace(ENGLISH, replies={**ENGLISH.replies, asked: planned}).solver()
    assert isinstance(solver.depth, MachineDepth)
    machine = replace(solver.depth.machine, search_first=True)
    solver = replace(solver, depth=replace(solver.depth, machine=machine))
    run = Run()
    await solver.solve(ENGLISH.question, run)
    pushed = [e for e in run.events if isinstance(e, Pushed) and e.i <= 1]
    assert [e.kind for e in pushed] == ["User_Query", "Thought", "Thought", "Tool_Observation"]


@pytest.mark.parametrize("calls", range(19))
async def test_unified_run_has_one_budget_for_all_parts(calls: int) -> None:
    run = Run(budget=Budget(calls=calls))
    solution = await ENGLISH.solver().solve(ENGLISH.question, run)
    assert run.usage.calls <= calls
    assert solution.halt is Halt.BUDGET


async def test_without_its_budget_a_run_asks_what_the_whole_one_asks() -> None:
    """The bound is what cuts, not the order that a budget brings."""
    free, bounded = Run(), Run(budget=Budget(calls=19))
    for run in (free, bounded):
        await ENGLISH.solver().solve(ENGLISH.question, run)
    assert log(free) == log(bounded)


async def test_the_page_has_every_line_of_the_film_with_plan_and_state() -> None:
    solution, run = await played(ENGLISH)
    report = RunPage("r", "unified", "", {}, solution, run.events, ENGLISH.question)
    page = unescape(render_page(report))
    lines = [line.plain for line in draw_film(run.events)]
    assert all(line.strip() in page for line in lines)
    assert any("sigma" in line for line in lines)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, case in CASES.items():
        _, run = asyncio.run(played(case))
        (GOLDEN / f"{name}.jsonl").write_text(log(run), encoding="utf-8")
        (GOLDEN / f"{name}.txt").write_text(shown(run), encoding="utf-8")
