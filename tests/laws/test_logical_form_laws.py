"""Laws of logical forms: what is written reads back, and nothing else escapes."""

import contextlib
import random
import string
from dataclasses import dataclass, replace
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from osler.errors import MalformedOutput
from osler.methods.kag.logical_forms import (
    Comparison,
    Constraint,
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Operation,
    Output,
    Place,
    PlanStep,
    Retrieval,
    SpoNode,
    render_plan,
)
from osler.methods.kag.parse import read_plan, read_search
from osler.methods.kag.variables import find_dependencies

QUICK = settings.get_current_profile_name() == "quick"
PLANS, BROKEN = (625, 2_500) if QUICK else (5_000, 20_000)
"""Random plans and broken strings, beside those that Hypothesis seeks."""

HOSTILE = (
    "a, p=b, o=c",
    "Both Lower Limbs (Including the Buttocks)",
    "it's, s=x",
    "x'], p=p1, o=o1)",
    "say \\'no\\'",
    "糖尿病，o=药物）",
    "s.a=1",
    "Step2: x",
    "Action1: Output(o1)",
    ")->o9",
    "p < 0.05",
    "\\",
    "ends with \\'",
    "“quoted”",
    "’)",
    "a’, p=b”]",
    "a\nb\t c",
    "->",
    "[",
    "]",
    "in ['a']",
)
LETTERS = string.printable + "’“”《》，。：；（）［］＝ 糖尿病İßſ\u0301\u200b\u2028\xa0\U0001fa7a"
texts = st.sampled_from(HOSTILE) | st.text(max_size=25)
said = texts.map(lambda text: " ".join(text.split())).filter(bool)
TAGS = ("<answer", "</answer", "<think", "</think", "<search", "</search")
inside = said.filter(lambda text: not any(tag in text.lower() for tag in TAGS))
aliases = st.from_regex(r"[spo][1-9]", fullmatch=True)
nodes = st.builds(SpoNode, aliases, inside | st.just(""), inside | st.just(""), st.just(""))
places: st.SearchStrategy[Place] = st.sampled_from(get_args(Place))
comparisons: st.SearchStrategy[Comparison] = st.sampled_from(get_args(Comparison))


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    comparison = draw(comparisons)
    several = st.lists(inside, min_size=1, max_size=3).map(tuple)
    value = draw(several if comparison == "in" else inside)
    return Constraint(draw(places), draw(inside), comparison, value)  # type: ignore[arg-type]


items = st.lists(inside, max_size=4).map(tuple)
forms: st.SearchStrategy[Form] = st.one_of(
    st.builds(Retrieval, nodes, nodes, nodes, st.lists(constraints(), max_size=2).map(tuple)),
    st.builds(Math, items, inside, aliases | st.just("")),
    st.builds(Deduce, st.sampled_from(Operation), items, inside, aliases | st.just("")),
    st.builds(Output, st.lists(inside, min_size=1, max_size=3).map(tuple)),
)
LAYOUT = " *_`#>-–—•"


def is_plain(text: str) -> bool:
    """Whether a question has no marks of layout around it: a reply's dress is no part of it."""
    words = text.strip(LAYOUT) == text and text[0].isalnum()
    return words and not text.lower().startswith(("step", "act"))


questions = inside.filter(is_plain)


@st.composite
def plans(draw: st.DrawFn) -> LogicalPlan:
    pairs = draw(st.lists(st.tuples(questions, forms), min_size=1, max_size=5))
    return LogicalPlan(
        tuple(PlanStep(n, question, form) for n, (question, form) in enumerate(pairs, 1))
    )


def reads_back(plan: LogicalPlan) -> None:
    assert read_plan(render_plan(plan)) == plan
    framed = f"<think>so</think>\n\n<answer>{render_plan(plan)}</answer>"
    assert read_plan(framed) == plan


@given(plans())
def test_a_plan_reads_back_as_it_was_written(plan: LogicalPlan) -> None:
    reads_back(plan)


def test_thousands_of_random_plans_read_back_as_they_were_written() -> None:
    draw = Drawn(random.Random(0))
    for _ in range(PLANS):
        reads_back(draw.plan())


@dataclass(frozen=True)
class Drawn:
    """The same plans as `plans`, by chance alone."""

    chance: random.Random

    def plan(self) -> LogicalPlan:
        steps = range(1, self.chance.randint(1, 5) + 1)
        return LogicalPlan(tuple(PlanStep(n, self.question(), self.form()) for n in steps))

    def question(self) -> str:
        while True:
            text = self.inside()
            if is_plain(text):
                return text

    def inside(self) -> str:
        while True:
            letters = self.chance.choices(LETTERS, k=self.chance.randint(1, 25))
            text = self.chance.choice((*HOSTILE, *["".join(letters)] * len(HOSTILE)))
            text = " ".join(text.split())
            if text and not any(tag in text.lower() for tag in TAGS):
                return text

    def several(self, least: int = 0) -> tuple[str, ...]:
        return tuple(self.inside() for _ in range(self.chance.randint(least, 3)))

    def alias(self) -> str:
        return self.chance.choice("spo") + self.chance.choice("123456789")

    def node(self) -> SpoNode:
        maybe = (self.chance.choice(("", self.inside())) for _ in range(2))
        return SpoNode(self.alias(), *maybe)

    def constraint(self) -> Constraint:
        comparison: Comparison = self.chance.choice(get_args(Comparison))
        value = self.several(1) if comparison == "in" else self.inside()
        place: Place = self.chance.choice(get_args(Place))
        return Constraint(place, self.inside(), comparison, value)

    def form(self) -> Form:
        result = self.chance.choice(("", self.alias()))
        match self.chance.randrange(4):
            case 0:
                held = tuple(self.constraint() for _ in range(self.chance.randint(0, 2)))
                return Retrieval(self.node(), self.node(), self.node(), held)
            case 1:
                return Math(self.several(), self.inside(), result)
            case 2:
                kind = self.chance.choice(list(Operation))
                return Deduce(kind, self.several(), self.inside(), result)
            case _:
                return Output(self.several(1))


@given(plans())
def test_every_plan_has_an_order_in_which_each_step_stands_once(plan: LogicalPlan) -> None:
    graph = find_dependencies(plan)
    order = graph.solving_order()
    assert sorted(order) == [step.n for step in plan.steps]
    place = {n: at for at, n in enumerate(order)}
    assert all(place[m] < place[n] for n, waits in graph.waits.items() for m in waits)


@given(plans(), st.data())
def test_a_broken_reply_is_a_plan_or_malformed_and_never_anything_else(
    plan: LogicalPlan, data: st.DataObject
) -> None:
    text = f"<answer>{render_plan(plan)}</answer>"
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        until = data.draw(st.integers(at, min(len(text), at + 12)))
        text = text[:at] + data.draw(st.text(max_size=4) | st.sampled_from(HOSTILE)) + text[until:]
    read_anyway(text)


def test_thousands_of_broken_replies_are_plans_or_malformed() -> None:
    chance = random.Random(0)
    form = Deduce(Operation.CHOICE, ("o1", "it's, p=b"), "which (of them) first", "o3")
    name = SpoNode("s1", "film", "a, p=b")
    steps = (
        PlanStep(1, "Who made it?", Retrieval(name, SpoNode("p1", "by"), SpoNode("o1"))),
        PlanStep(2, "How much is #1?", Math(("o1", "weight=16kg"), "the sum", "o2")),
        PlanStep(3, "Which of #1 and #2?", form),
        PlanStep(4, "Output #3.", Output(("o3",))),
    )
    whole = f"<think>so</think>\n<answer>{render_plan(LogicalPlan(steps))}</answer>"
    for _ in range(BROKEN):
        text = whole
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice((*HOSTILE, "'", "(", "，")) + text[at + 3 :]
        read_anyway(text)


def read_anyway(text: str) -> None:
    with contextlib.suppress(MalformedOutput):
        plan = read_plan(text)
        assert plan.steps
        assert all(isinstance(step.action, get_args(Form)) for step in plan.steps)
    with contextlib.suppress(MalformedOutput):
        assert isinstance(read_search(text).action, Retrieval)


@given(plans())
def test_a_step_that_names_itself_is_reported(plan: LogicalPlan) -> None:
    first = replace(plan.steps[0], question="What of #1?")
    found = find_dependencies(LogicalPlan((first, *plan.steps[1:])))
    assert "step 1 waits for itself (#1)" in found.problems
