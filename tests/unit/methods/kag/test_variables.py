"""What the references of a plan stand for: subjects, objects, constraints, texts, sets (§3.1.1)."""

from collections.abc import Sequence

import pytest

from osler.answer.written import WrittenComposer
from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import NoBoundary
from osler.methods.kag.depth import DepthSolver
from osler.methods.kag.executors import Calculator, Deducer
from osler.methods.kag.focus import Focuser
from osler.methods.kag.logical_forms import Constraint, Deduce, Math, PlanStep, Retrieval, SubAnswer
from osler.methods.kag.output import AnswerFinisher
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import GivenForms
from osler.methods.kag.solver import Thinker
from osler.methods.kag.variables import Variables, find_dependencies, split_entities
from osler.trace import FormSolved, Noted, Run
from osler.types import Hit, Language, Passage, Question
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever

YES = "<answer>Yes</answer><reason>Reference 0 says it.</reason>"
TEXT = Passage("book:a#0", "Aspirin and ibuprofen are NSAIDs.", "book", "NSAIDs")


def variables(plan: str, n: int, **said: str) -> tuple[Variables, Retrieval | Math | Deduce]:
    steps = read_plan(plan)
    answers = {int(key[1:]): SubAnswer(int(key[1:]), "", text) for key, text in said.items()}
    action = steps.step_numbered(n).action
    assert isinstance(action, Retrieval | Math | Deduce)
    return Variables(find_dependencies(steps), answers, n), action


FILMS = """Step1: Who directed Hit Parade?
Action1: Retrieval(s=s1:film['Hit Parade'], p=p1:director, o=o1:person)
Step2: Which films star #1?
Action2: Retrieval(s=s2:film, p=p2:stars, o=o1, s.director=o1, s.since='#1')"""


def test_a_bound_object_and_a_constraint_are_filled_in() -> None:
    known, form = variables(FILMS, 2, a1="Ann")
    assert isinstance(form, Retrieval)
    (filled,) = known.fill_form(form)
    assert filled.o.name == "Ann"
    assert filled.s.name == ""
    assert filled.constraints == (
        Constraint("s", "director", "=", "Ann"),
        Constraint("s", "since", "=", "Ann"),
    )


def test_a_variable_is_a_set_of_entities() -> None:
    known, form = variables(FILMS, 2, a1="Ann; Bob")
    assert isinstance(form, Retrieval)
    filled = known.fill_form(form)
    assert [each.o.name for each in filled] == ["Ann", "Bob"]
    assert filled[0].constraints[0] == Constraint("s", "director", "in", ("Ann", "Bob"))


def test_a_step_s_own_unknown_is_not_filled_in_from_itself() -> None:
    known, form = variables(FILMS, 1, a1="Ann")
    assert isinstance(form, Retrieval)
    assert known.fill_form(form) == [form]


@pytest.mark.parametrize(
    ("text", "entities"),
    [
        ("aspirin", ("aspirin",)),
        ("aspirin; ibuprofen", ("aspirin", "ibuprofen")),
        ("aspirin, ibuprofen and naproxen", ("aspirin", "ibuprofen", "naproxen")),
        ("阿司匹林、布洛芬", ("阿司匹林", "布洛芬")),
        ("Hit and Run", ("Hit and Run",)),
        ("1,000 mg", ("1,000 mg",)),
        ("Diabetes Mellitus, Type 2", ("Diabetes Mellitus, Type 2",)),
        ("Anemia, Sickle Cell; Leukemia, Acute", ("Anemia, Sickle Cell", "Leukemia, Acute")),
        ("Leukemia, Myeloid, Acute", ("Leukemia, Myeloid, Acute",)),
        ("fever, cough", ("fever", "cough")),
        ("type 1, type 2", ("type 1", "type 2")),
        ("It rises, as it does in most patients who take both for a long time.",) * 1
        + (("It rises, as it does in most patients who take both for a long time.",),),
    ],
)
def test_an_answer_is_split_into_its_entities(text: str, entities: tuple[str, ...]) -> None:
    assert split_entities(text) == entities


async def solved(plan: str, replies: dict[str, list[str]], graph: object = None) -> tuple[Run, ...]:
    model = KeyedModel({**replies, "analyze the relationship": [YES], "": ["nothing [1]"]})
    speaker = Speaker(model, "reader")
    solver = Thinker(
        GivenForms(read_plan(plan)),
        DepthSolver(speaker, SEARCHED, NoBoundary(), Focuser(speaker), graph),  # type: ignore[arg-type]
        Calculator(speaker, {}),
        Deducer(speaker),
        AnswerFinisher(speaker),
        WrittenComposer(),
    )
    SEARCHED.asked.clear()
    run = Run()
    await solver.solve(Question("q", "Which of them thins blood?"), run)
    return (run,)


SEARCHED = ScriptedRetriever({"": [TEXT]})
CHAIN = """Step1: Which NSAIDs are there?
Action1: Retrieval(s=s1:class['NSAID'], p=p1:member, o=o1:drug)
Step2: What does #1 do to platelets?
Action2: Retrieval(s=o1, p=p2:effect, o=o2:effect)
Step3: Which of #1 is strongest?
Action3: Deduce(op=choice, content=['o1', '#2'], target='the strongest of #1')->o3"""


class FormsAsked:
    def __init__(self) -> None:
        self.subjects: list[str] = []

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        self.subjects.append(form.s.name)
        return []


async def test_each_entity_of_a_variable_is_looked_up_and_targets_are_filled_in() -> None:
    graph = FormsAsked()
    replies = {
        "Question: Which NSAIDs": [r"<answer>\boxed{aspirin; ibuprofen}</answer>"],
        "Question: What does": [r"<answer>\boxed{less}</answer>"],
        "Asked: the strongest of aspirin; ibuprofen": [r"<answer>\boxed{aspirin}</answer>"],
    }
    (run,) = await solved(CHAIN, replies, graph)
    assert graph.subjects == ["NSAID", "aspirin", "ibuprofen"]
    assert SEARCHED.asked == [
        "Which NSAIDs are there?",
        "What does aspirin; ibuprofen do to platelets?",
    ]
    answers = {event.n: event.answer for event in run.events if isinstance(event, FormSolved)}
    assert answers[3] == "aspirin"


@pytest.mark.parametrize(
    "reply", ["unknown", "no_answer", "sample", r"\scriptsize(2)", "N/A", "无"]
)
async def test_a_step_without_an_answer_is_neither_searched_nor_filled_in(reply: str) -> None:
    replies = {"Question: Which NSAIDs": [rf"<answer>\boxed{{{reply}}}</answer>"]}
    (run,) = await solved(CHAIN, replies)
    assert SEARCHED.asked == ["Which NSAIDs are there?"]
    notes = [event.text for event in run.events if isinstance(event, Noted)]
    assert "step 2 waits for #1, which has no answer" in notes
    assert {e.n: e.status for e in run.events if isinstance(e, FormSolved)} == {
        1: "failed",
        2: "failed",
        3: "failed",
    }


DRUGS = """Step1: Which drugs treat gout?
Action1: Retrieval(s=s1:disease['gout'], p=p1:treated_by, o=o1:drug)
Step2: Which drugs interact with warfarin?
Action2: Retrieval(s=s2:drug['warfarin'], p=p2:interacts_with, o=o2:{kind})
Step3: Which of them are both?
Action3: Math(content=['o1', '#2'], target='{target}')->math1"""


@pytest.mark.parametrize(
    ("target", "kind", "text"),
    [
        ("intersection", "drug", "Allopurinol"),
        ("union", "drug", "Allopurinol; colchicine; aspirin"),
        ("difference", "drug", "colchicine"),
        ("intersection", "disease", None),  # sets of two types are not combined
        ("the share of both", "drug", None),
        ("count", "drug", None),
    ],
)
def test_a_math_over_sets_needs_no_model(target: str, kind: str, text: str | None) -> None:
    said = {"a1": "Allopurinol; colchicine", "a2": "allopurinol; aspirin"}
    known, form = variables(DRUGS.format(target=target, kind=kind), 3, **said)
    assert isinstance(form, Math)
    assert known.compute_set(form) == text


def test_a_set_is_counted_and_a_text_or_an_unknown_is_no_set() -> None:
    known, _ = variables(DRUGS.format(target="count", kind="drug"), 3, a1="Allopurinol; colchicine")
    assert known.compute_set(Math(("o1",), "count")) == "2"
    assert known.compute_set(Math(("#2",), "count")) is None
    assert known.compute_set(Math(("weight=16kg",), "count")) is None


async def test_a_plan_of_sets_runs_to_its_end_without_a_model_for_the_math() -> None:
    plan = read_plan(DRUGS.format(target="intersection", kind="drug"))
    run = Run()
    last = r"It is allopurinol. <answer>\boxed{Allopurinol}</answer>"
    speaker = Speaker(KeyedModel({"Answer the last question": [last]}), "reader")
    thinker = Thinker(
        GivenForms(plan),
        TwoDrugs(),
        Calculator(speaker),
        Deducer(speaker),
        AnswerFinisher(speaker),
        WrittenComposer(),
    )
    await thinker.solve(Question("q", "Which drugs for gout interact with warfarin?"), run)
    solved = [event.answer for event in run.events if isinstance(event, FormSolved)]
    assert solved[2] == "Allopurinol"
    assert run.usage.calls == 1  # the last answer's


class TwoDrugs:
    """A depth solver that answers each step with two drugs."""

    async def solve(
        self, step: PlanStep, question: str, known: Sequence[str], language: Language, run: Run
    ) -> SubAnswer:
        told = ("", "Allopurinol; colchicine", "allopurinol; aspirin")
        return SubAnswer(step.n, question, told[step.n])
