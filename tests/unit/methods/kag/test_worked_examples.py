"""The paper's credit card case (Table 5) as a golden plan and a golden run, and plans in another
language than their question. Films and burn: test_thinker.py.

The table's own figures disagree: its Math prints 4989.40 and its Output 4894.40. The amounts of the
question sum to 4894.30, which is what is asked for here.
"""

import pytest

from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import Deduce, Math, Output, Retrieval
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import Decomposer
from osler.methods.kag.solver import Thinker
from osler.trace import Calculated, FormSolved, Run
from osler.types import Halt, Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever

pytest.importorskip("pydantic_monty", reason="written calculations need the extra math")

CARD = Question(
    "card",
    "Zhang found a wallet and spent 210.4, 569.2, 1035.2, 2044.5 and 1035 yuan with the card in it."
    " What's the total amount involved in Zhang's credit card fraud?",
)
CARD_PLAN = """<answer>Step1: What are the elements of credit card fraud?
Action1: Retrieval(s=s1:offense[credit card fraud], p=p1: found, o=o1:elements)
Step2: Based on #1, which amounts meet the elements of credit card fraud?
Action2: Deduce(op=extract, content=[o1, Zhang found a wallet, and spent 210.4, 569.2, 1035.2, \
2044.5 and 1035 yuan], target=Which amounts meet the elements of credit card fraud?)->o2
Step3: What's the total of #2?
Action3: Math(content=[o1, o2], target=What's the total amount involved in Zhang's credit card \
fraud.)->o3
Step4: Output #3
Action4: Output(o3)</answer>"""
LAW = Passage("book:law#0", "Using another's credit card is credit card fraud.", "book", "Law")


def box(text: str) -> str:
    return rf"<answer>\boxed{{{text}}}</answer>"


def thinker(model: KeyedModel, found: ScriptedRetriever) -> Thinker:
    speaker = Speaker(model, "reader")
    depth = DepthSolver(speaker, found, NoBoundary(), Focuser(speaker))
    parts = (Calculator(speaker, {}), Deducer(speaker), AnswerFinisher(speaker), WrittenComposer())
    return Thinker(Decomposer(speaker), depth, *parts)


def test_the_credit_card_plan_reads_with_bare_names_and_apostrophes() -> None:
    plan = read_plan(CARD_PLAN)
    assert [type(step.action) for step in plan.steps] == [Retrieval, Deduce, Math, Output]
    deduced = plan.steps[1].action
    assert isinstance(deduced, Deduce)
    assert deduced.content[0] == "o1"
    assert "210.4" in " ".join(deduced.content)
    summed = plan.steps[2].action
    assert isinstance(summed, Math)
    assert summed.target == "What's the total amount involved in Zhang's credit card fraud."
    assert summed.alias == "o3"


async def test_the_credit_card_case_sums_4894_30_in_the_sandbox() -> None:
    model = KeyedModel(
        {
            "decompose the user question": [CARD_PLAN],
            "analyze the relationship": ["<answer>Yes</answer><reason>reference 0</reason>"],
            "Extract from what is known": [box("210.4, 569.2, 1035.2, 2044.5, 1035")],
            "Write a short Python program": [
                "<Python>amounts = [210.4, 569.2, 1035.2, 2044.5, 1035]\n"
                "round(sum(amounts), 2)</Python>"
            ],
            "Answer the last question": [f"{LAW.text} [1] {box('4894.3')}"],
            "from the references": [box("use of another's credit card")],
        }
    )
    run = Run()
    solution = await thinker(model, ScriptedRetriever({"": [LAW]})).solve(CARD, run)
    (computed,) = [event for event in run.events if isinstance(event, Calculated)]
    assert (computed.engine, computed.value, computed.error) == ("python", "4894.3", "")
    answers = {e.n: e.answer for e in run.events if isinstance(e, FormSolved)}
    assert (answers[3], answers[4]) == ("4894.3", "4894.3")
    assert solution.halt is Halt.CONVERGED
    assert [each.passage for each in solution.answer.evidence] == [LAW]


CHINESE = """<answer>步骤1：信用卡诈骗罪的构成要件是什么？
动作1：Retrieval（s=s1:罪名['信用卡诈骗罪'], p=p1:构成要件, o=o1:要件）
步骤2：输出 #1。
动作2：Output（o1）</answer>"""
ENGLISH = (
    "<answer>Step1: Which drug is first?\n"
    "Action1: Retrieval(s=s1:disease['anaphylaxis'], p=p1:first drug, o=o1:drug)</answer>"
)


@pytest.mark.parametrize(
    ("question", "reply", "asks", "found"),
    [
        (CARD, CHINESE, "decompose the user question", "信用卡诈骗罪的构成要件是什么？"),
        (
            Question("zh", "过敏性休克首选什么药物？", language="zh"),
            ENGLISH,
            "用户问题拆解",
            "Which drug is first?",
        ),
    ],
)
async def test_a_plan_in_the_other_language_is_a_plan(
    question: Question, reply: str, asks: str, found: str
) -> None:
    texts = ScriptedRetriever({"": [LAW]})
    model = KeyedModel(
        {
            asks: [reply],
            "<reason>": ["<answer>Yes</answer><reason>all</reason>"],
            "unknown": [box("it is so")],
            "": [f"{LAW.text} [1] {box('it is so')}"],
        }
    )
    solution = await thinker(model, texts).solve(question, Run())
    assert texts.asked == [found]
    assert solution.halt is Halt.CONVERGED


GRANDMOTHER = Question("cleves", "Who is the paternal grandmother of John III, Duke Of Cleves?")
GRANDMOTHER_PLAN = """<answer>Step1: Who is the father of John III, Duke Of Cleves?
Action1: Retrieval(s=s1:person['John III, Duke Of Cleves'], p=p1:father, o=o1:person)
Step2: Who is the mother of #1?
Action2: Retrieval(s=o1, p=p2:mother, o=o2:person)
Step3: Output #2
Action3: Output(o2)</answer>"""


async def test_the_bad_case_of_the_paper_is_solved_over_the_father() -> None:
    """§4.4: the name has a comma and a numeral, and each step needs the one before."""
    father = Passage("wiki:a#0", "The father of John III was John II.", "wiki", "John III")
    mother = Passage("wiki:b#0", "The mother of John II was Elizabeth.", "wiki", "John II")
    model = KeyedModel(
        {
            "decompose the user question": [GRANDMOTHER_PLAN],
            "Answer the last question": [
                r"It was Elizabeth [2]. <answer>\boxed{Elizabeth}</answer>"
            ],
            "analyze the relationship": ["<answer>Yes</answer><reason>all of it</reason>"],
            "Question: Who is the father of": [r"<answer>\boxed{John II}</answer>"],
            "Question: Who is the mother of John II?": [r"<answer>\boxed{Elizabeth}</answer>"],
        }
    )
    speaker = Speaker(model, "reader")
    found = ScriptedRetriever({"mother of John II": [mother], "father": [father]})
    solver = Thinker(
        Decomposer(speaker),
        DepthSolver(speaker, found, NoBoundary(), Focuser(speaker)),
        Calculator(speaker),
        Deducer(speaker),
        AnswerFinisher(speaker),
        WrittenComposer(),
    )
    run = Run()
    solution = await solver.solve(GRANDMOTHER, run)
    assert found.asked == [
        "Who is the father of John III, Duke Of Cleves?",
        "Who is the mother of John II?",
    ]
    assert solution.answer.evidence[0].passage == mother
    assert solution.halt is Halt.CONVERGED
    (first, *_) = read_plan(GRANDMOTHER_PLAN).steps
    assert isinstance(first.action, Retrieval)
    assert first.action.s.name == "John III, Duke Of Cleves"
