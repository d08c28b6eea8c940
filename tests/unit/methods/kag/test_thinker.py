"""KAG-Thinker on the paper's own cases, with scripted replies and the real sandbox."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from osler.answer import UNDECIDED, Decision
from osler.answer.written import WrittenComposer
from osler.errors import ModelUnreachable, SourceUnavailable
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Completion, LanguageModel, Message, Sampling
from osler.methods.kag.boundary import Boundary, GenerateThenAssess, NoBoundary
from osler.methods.kag.depth import NOT_DRAWN, DepthSolver
from osler.methods.kag.executors import Calculator, Deducer, choice_grammar
from osler.methods.kag.focus import Focuser, compress_passage
from osler.methods.kag.formulas import FORMULAS
from osler.methods.kag.formulas.targets import nearest_formulas
from osler.methods.kag.logical_forms import LogicalPlan, Math, Retrieval
from osler.methods.kag.output import AnswerFinisher, QuestionSearch
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import Decomposer, FormPlanner, GivenForms
from osler.methods.kag.solver import Thinker
from osler.trace import (
    BoundaryChecked,
    Budget,
    Calculated,
    Focused,
    FormSolved,
    FormsPlanned,
    Retrieved,
    Run,
    Searched,
    list_read_passages,
)
from osler.types import Answer, DecidedBy, Grounding, Halt, Hit, Passage, Question, Retriever, Usage
from osler_lab.testing.scripted import KeyedModel, ScriptedRetriever

YES = "<answer>Yes</answer><reason>Reference 0 says it.</reason>"
NO = "<answer>No</answer><reason>Reference 0 is about adults.</reason>"


def box(answer: str) -> str:
    return rf"<answer>\boxed{{{answer}}}</answer>"


def passage(id: str, text: str) -> Passage:
    return Passage(f"book:{id}#0", text, "book", "Surgery")


def thinker(
    model: LanguageModel,
    retriever: Retriever,
    *,
    boundary: Boundary | None = None,
    planner: FormPlanner | None = None,
    programs_only: bool = False,
    turns: int = 10,
) -> Thinker:
    speaker = Speaker(model, "reader")
    return Thinker(
        planner or Decomposer(speaker),
        DepthSolver(speaker, retriever, boundary or NoBoundary(), Focuser(speaker), turns=turns),
        Calculator(speaker, {} if programs_only else None),
        Deducer(speaker),
        AnswerFinisher(speaker),
        WrittenComposer(),
    )


BURN = Question(
    "burn",
    "Boy, 3 years old, weighing 16kg, scald burns of both lower limbs including buttocks, second"
    " degree. The amount of colloid fluid that should be administered in the first 24 hours is",
    ("500ml", "800ml", "400ml", "600ml", "700ml"),
)
BURN_PLAN = """<think>Area, then ratio, then fluid.</think>

<answer>Step1: Which percentage of the body are both lower limbs with buttocks in children?
Action1: Retrieval(s=s2:BodyParts['Both Lower Limbs (Including the Buttocks)'], p=p3:AreaRatio, \
o=o3:AreaRatio)
Step2: Which share is colloid in second-degree burns of children?
Action2: Retrieval(s=s3:TreatmentPlan['Burn fluid replacement'], p=p5:Colloidal liquid ratio, \
o=o5:Colloidal liquid ratio, p.Degree of burn=II∘)
Step3: Based on #1 and #2, calculate the colloid fluid of the first 24 hours.
Action3: Math(content=['o3', 'o5', 'weight=16kg'], target='The amount of colloid fluid')->math6
Step4: Output #3.
Action4: Output(math6)</answer>"""
AREA = passage("area", "Both lower limbs with buttocks are 46 - (12 - age) percent in children.")
RATIO = passage("ratio", "Children get 2.0 ml per kg and percent, colloid to electrolytes 1:1.")


def burn_model(calculation: str) -> KeyedModel:
    return KeyedModel(
        {
            "decompose the user question": [BURN_PLAN],
            "Answer the last question": [f"{RATIO.text} [2] {box('D')}"],
            "analyze the relationship": [YES],
            "Which percentage of the body": [box("37 percent")],
            "Which share is colloid": [box("1 ml per kg and percent")],
            "Which of these formulas": ['{"formula": "none", "inputs": {}}'],
            "Write a short Python program": [calculation],
        }
    )


async def test_the_burn_case_computes_592_ml_in_the_sandbox_and_chooses_600() -> None:
    pytest.importorskip("pydantic_monty", reason="written calculations need the extra math")
    model = burn_model("<Python>\narea = 46 - (12 - 3)\n16 * area * 1\n</Python>")
    found = ScriptedRetriever({"percentage": [AREA], "colloid": [RATIO]})
    run = Run()
    solution = await thinker(model, found, programs_only=True).solve(BURN, run)
    (calculated,) = [event for event in run.events if isinstance(event, Calculated)]
    assert (calculated.engine, calculated.value) == ("python", "592")
    assert solution.answer.option == "D"
    assert solution.halt is Halt.CONVERGED
    assert solution.answer.evidence[0].passage == RATIO
    solved = {e.n: e.answer for e in run.events if isinstance(e, FormSolved)}
    assert solved == {1: "37 percent", 2: "1 ml per kg and percent", 3: "592", 4: "592"}


async def test_a_verified_formula_is_tried_before_any_program() -> None:
    model = burn_model("never asked for")
    model.replies["Which of these formulas"] = [
        '{"formula": "burn-colloid-zh", "inputs":'
        ' {"weight": "16kg", "burned": 37, "group": "infant", "ratio": "1:1"}}'
    ]
    found = ScriptedRetriever({"percentage": [AREA], "colloid": [RATIO]})
    run = Run()
    solution = await thinker(model, found).solve(BURN, run)
    (calculated,) = [event for event in run.events if isinstance(event, Calculated)]
    assert (calculated.engine, calculated.value) == ("formula", "592 ml")
    assert "Write a short Python program" not in model.asked
    assert solution.answer.option == "D"


async def test_a_program_that_fails_is_shown_its_error_three_times_at_most() -> None:
    pytest.importorskip("pydantic_monty", reason="written calculations need the extra math")
    model = burn_model("")
    model.replies["Write a short Python program"] = ["<Python>1/0</Python>"] * 3
    found = ScriptedRetriever({"percentage": [AREA], "colloid": [RATIO]})
    run = Run()
    await thinker(model, found, programs_only=True).solve(BURN, run)
    tried = [event for event in run.events if isinstance(event, Calculated)]
    assert len(tried) == 3
    assert all("ZeroDivisionError" in event.error for event in tried)
    failed = [e for e in run.events if isinstance(e, FormSolved) and e.status == "failed"]
    assert [event.n for event in failed] == [3, 4]


def test_the_formula_of_burns_is_among_those_offered_for_a_burn() -> None:
    text = "The amount of colloid fluid in burns in the first 24 hours weight=16kg"
    assert "burn-colloid-zh" in [formula.id for formula in nearest_formulas(FORMULAS, text)]
    assert "burn-colloid-zh" in [
        f.id for f in nearest_formulas(FORMULAS, "烧伤第一个 24 小时胶体液量")
    ]
    assert nearest_formulas(FORMULAS, "who wrote it") == []


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("BMI of this patient", "body-mass-index"),
        ("kidney function from creatinine", "ckd-epi-2021"),
        ("creatinine clearance", "cockcroft-gault"),
        ("肌酐清除率", "cockcroft-gault"),
    ],
)
def test_the_nearest_formula_is_found_by_its_other_names(text: str, first: str) -> None:
    assert nearest_formulas(FORMULAS, text)[0].id == first


async def test_a_bare_number_that_fits_two_units_is_computed_by_neither_formula_nor_program() -> (
    None
):
    chosen = '{"formula": "sodium-corrected-for-glucose", "inputs": {"sodium": 130, "glucose": 25}}'
    model = KeyedModel({"Which of these formulas": [chosen], "Write a short Python": ["1"]})
    run = Run()
    form = Math(("sodium 130 mmol/L", "glucose 25"), "sodium corrected for glucose", "math1")
    speaker = Speaker(model, "reader")
    assert await Calculator(speaker).solve(1, form, form.content, "en", run) == ""
    (calculated,) = [event for event in run.events if isinstance(event, Calculated)]
    assert calculated.error == "sodium-corrected-for-glucose: is glucose 25 in mg/dL or mmol/L?"
    assert "Write a short Python" not in model.asked


@pytest.mark.parametrize(
    ("told", "weight"),
    [
        ("weight 58 kg", 58),
        ("weight 128 lb", 128),  # copied as it stands: the text says in which unit
        ("weight 128 lb", 58.06),  # converted, as the prompt asks
    ],
)
async def test_a_formula_takes_the_bare_number_that_its_prompt_asks_for(
    told: str, weight: float
) -> None:
    inputs = {"weight": weight, "height": 170}
    chosen = f'Sure: {{"formula": "body-mass-index", "inputs": {json.dumps(inputs)},}}'
    model = KeyedModel({"Which of these formulas": [chosen]})
    run = Run()
    form = Math((told, "height 170 cm"), "body mass index", "math1")
    value = await Calculator(Speaker(model, "reader")).solve(1, form, form.content, "en", run)
    assert value.startswith("20.")


def test_the_choice_of_a_formula_is_a_format_that_servers_hold() -> None:
    grammar = choice_grammar([FORMULAS["body-mass-index"], FORMULAS["child-pugh"]])
    assert grammar.json_schema is not None
    names = [wanted.name for wanted in FORMULAS["body-mass-index"].inputs]
    for value in (58, 58.5, "128 lb", None):
        inputs = dict.fromkeys(names, value)
        assert grammar.accepts(json.dumps({"formula": "body-mass-index", "inputs": inputs}))
    assert grammar.accepts('{"formula": "none", "inputs": {}}')
    assert not grammar.accepts('{"formula": "apgar", "inputs": {}}')


def test_what_shares_only_a_common_word_with_a_formula_does_not_offer_it() -> None:
    for text in ("kidney function", "liver function", "risk score of a child"):
        assert "maddrey" not in [formula.id for formula in nearest_formulas(FORMULAS, text)]


FILMS = Question("films", "Which film has the director who died first, Hit Parade or Khiladi 420?")
FILM_PLAN = """<answer>Step1: Who is the director of Hit Parade?
Action1: Retrieval(s=s1:film['Hit Parade'], p=p1:director, o=o1:director)
Step2: When did #1 die?
Action2: Retrieval(s=o1, p=p2:deathtime, o=o2:deathtime)
Step3: Who is the director of Khiladi 420?
Action3: Retrieval(s=s2:film['Khiladi 420'], p=p3:director, o=o3:director)
Step4: When did #3 die?
Action4: Retrieval(s=o3, p=p4:deathtime, o=o4:deathtime)
Step5: Which film was directed by the director who died first according to #2 and #4?
Action5: Deduce(op=choice, content=['o2','o4'], target='which film')->o5</answer>"""


def film_model() -> KeyedModel:
    return KeyedModel(
        {
            "decompose the user question": [FILM_PLAN],
            "Answer the last question": [f"Ann died in 1988 [1]. {box('Hit Parade')}"],
            "analyze the relationship": [YES],
            "Question: Who is the director of Hit Parade?": [box("Ann")],
            "Question: When did Ann die?": [box("1988")],
            "Question: Who is the director of Khiladi 420?": [box("Bob")],
            "Question: When did Bob die?": [box("2019")],
            "Choose the one that fits": [box("Hit Parade")],
        }
    )


ANYTHING = ScriptedRetriever({"": [passage("film", "Ann died in 1988.")]})


async def test_answers_are_filled_into_the_steps_that_wait_for_them() -> None:
    run = Run()
    solution = await thinker(film_model(), ANYTHING).solve(FILMS, run)
    solved = {e.n: e.answer for e in run.events if isinstance(e, FormSolved)}
    assert solved == {1: "Ann", 2: "1988", 3: "Bob", 4: "2019", 5: "Hit Parade"}
    assert solution.answer.text == "Ann died in 1988. [1] Hit Parade"
    assert solution.answer.grounding is Grounding.PARTLY
    assert solution.why == "5 of 5 steps answered"


async def test_a_plan_whose_steps_found_nothing_has_not_converged() -> None:
    refusals = ["Unfortunately, the references do not mention this."]
    model = KeyedModel(
        {
            "decompose the user question": [FILM_PLAN],
            "Answer the last question": [f"Ann died in 1988 [1]. {box('Hit Parade')}"],
            "analyze the relationship": [YES],
            "": refusals,
        }
    )
    solution = await thinker(model, ANYTHING).solve(FILMS, Run())
    assert solution.why.startswith("0 of 5 steps answered")
    assert solution.halt is not Halt.CONVERGED


async def test_events_of_concurrent_steps_are_told_in_the_order_of_the_plan() -> None:
    in_order, reversed_ = Run(), Run()
    await thinker(film_model(), ANYTHING).solve(FILMS, in_order)
    model = film_model()
    first, second = (
        f"Question: Who is the director of {film}?" for film in ("Hit Parade", "Khiladi 420")
    )
    model.after = {first: second}
    await thinker(model, ANYTHING).solve(FILMS, reversed_)
    assert in_order.events == reversed_.events
    told = [event.n for event in in_order.events if isinstance(event, FormSolved)]
    assert told == [1, 3, 2, 4, 5]
    assert in_order.usage == reversed_.usage


class Hanging(KeyedModel):
    """Never says who directed a film; `hangs` once it was asked of both."""

    def __init__(self) -> None:
        super().__init__(film_model().replies)
        self.hangs, self.stopped = asyncio.Barrier(3), 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if "Question: Who is the director" in messages[-1].content:
            try:
                await self.hangs.wait()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.stopped += 1
                raise
        return await super().complete(messages, sampling)


class Broken(KeyedModel):
    """Its server goes down at the first question about a director."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        if "Question: Who is the director" in messages[-1].content:
            raise ModelUnreachable("no reply", fix="start it")
        return await super().complete(messages, sampling)


@pytest.mark.parametrize("budget", [Budget(), Budget(calls=99)])
async def test_a_model_that_fails_in_a_step_is_the_one_error_that_it_is(budget: Budget) -> None:
    model = Broken(film_model().replies)
    with pytest.raises(ModelUnreachable, match="no reply"):
        await thinker(model, ANYTHING).solve(FILMS, Run(budget=budget))
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_under_a_budget_steps_run_one_by_one_and_what_is_left_is_said() -> None:
    run = Run(budget=Budget(calls=4))
    solution = await thinker(film_model(), ANYTHING).solve(FILMS, run)
    assert solution.halt is not Halt.CONVERGED
    assert any("was cut short: calls 4 of 4" in getattr(event, "text", "") for event in run.events)
    assert run.usage.calls == 4
    assert "spent: calls 4 of 4" in solution.why


async def test_a_budget_without_room_for_a_plan_is_an_end_and_no_error() -> None:
    run = Run(budget=Budget(calls=1))
    run.spend(Usage(calls=1))
    solution = await thinker(film_model(), ANYTHING).solve(FILMS, run)
    assert (solution.halt, solution.why) == (Halt.BUDGET, "spent: calls 1 of 1")


async def test_what_the_model_knows_is_not_looked_up() -> None:
    model = film_model()
    model.replies = {
        "Analyze whether": [box("True")],
        "Can you answer": [box("Ann"), box("Bob"), box("1988"), box("2019")],
        **model.replies,
    }
    found = ScriptedRetriever({"": [passage("film", "Ann died in 1988.")]})
    run = Run()
    boundary = GenerateThenAssess(Speaker(model, "reader"))
    solution = await thinker(model, found, boundary=boundary).solve(FILMS, run)
    checked = [event for event in run.events if isinstance(event, BoundaryChecked)]
    assert len(checked) == 4
    assert all(event.known for event in checked)
    assert found.asked == []
    assert "out of the model's own knowledge" in solution.why
    assert solution.answer.grounding is Grounding.UNGROUNDED


@dataclass
class Heard(KeyedModel):
    """Keeps what it was asked."""

    prompts: list[str] = field(default_factory=list)

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.prompts.append(messages[-1].content)
        return await super().complete(messages, sampling)


ONE = GivenForms()
SUB = Question("sub", "How much of the body are the legs in children?")


async def test_depth_solver_searches_again_with_a_new_form_until_the_references_suffice() -> None:
    model = KeyedModel(
        {
            "analyze the relationship": [NO, YES],
            "Write one new search": [
                "<search>Step: the rule of nines by age. Action: Retrieval(s=s1:rule['nines'],"
                " p=p1:by age, o=o1)</search>"
            ],
            "Answer the question from the references": [box("37 percent")],
            "Answer the last question": [f"{AREA.text} [1] {box('37')}"],
        }
    )
    found = ScriptedRetriever({"rule of nines": [AREA], "": [RATIO]})
    run = Run()
    await thinker(model, found, planner=ONE).solve(SUB, run)
    assert found.asked == [SUB.text, "the rule of nines by age."]
    assert [e.enough for e in run.events if isinstance(e, Focused)] == [False, True]


async def test_the_same_search_twice_ends_the_depth() -> None:
    model = KeyedModel(
        {
            "analyze the relationship": [NO],
            "Write one new search": [
                f"<search>Step: {SUB.text} Action: Retrieval(s=s1:a['b'], p=p1, o=o1)</search>"
            ],
            "Answer the question from the references": [box("unknown")],
            "Answer the last question": ["The evidence does not say."],
        }
    )
    run = Run()
    solution = await thinker(model, ANYTHING, planner=ONE).solve(SUB, run)
    assert sum(isinstance(event, Searched) for event in run.events) == 1
    assert solution.halt is Halt.NO_EVIDENCE


async def test_turns_are_bounded() -> None:
    searches = [
        f"<search>Step: try {i} Action: Retrieval(s=s1:a['b'], p=p1, o=o1)</search>"
        for i in range(20)
    ]
    model = KeyedModel(
        {
            "analyze the relationship": [NO],
            "Write one new search": searches,
            "Answer the question from the references": [box("unknown")],
            "Answer the last question": ["The evidence does not say."],
        }
    )
    new = {f"try {i} ": [passage(f"new{i}", f"Page {i}.")] for i in range(20)}
    found = ScriptedRetriever({**{key.strip(): value for key, value in new.items()}, "": [AREA]})
    run = Run()
    await thinker(model, found, planner=ONE, turns=4).solve(SUB, run)
    assert sum(isinstance(event, Searched) for event in run.events) == 4


async def test_two_searches_that_find_nothing_new_end_the_depth() -> None:
    searches = [
        f"<search>Step: try {i} Action: Retrieval(s=s1:a['b'], p=p1, o=o1)</search>"
        for i in range(20)
    ]
    model = KeyedModel(
        {
            "analyze the relationship": [NO],
            "Write one new search": searches,
            "Answer the question from the references": [box("unknown")],
            "Answer the last question": ["The evidence does not say."],
        }
    )
    run = Run()
    await thinker(model, ANYTHING, planner=ONE).solve(SUB, run)
    # Other words may find others, once; what was read before is not judged again.
    assert sum(isinstance(event, Searched) for event in run.events) == 3
    assert sum(isinstance(event, Focused) for event in run.events) == 1


async def test_a_further_search_reads_what_no_earlier_one_has_brought() -> None:
    found = [Passage(f"book:p#{n}", f"Passage {n}.", "book", "P") for n in range(9)]
    again = "<search>Step: other words Action: Retrieval(s=s1:a['b'], p=p1, o=o1)</search>"
    model = Heard(
        {
            "analyze the relationship": [NO, YES],
            "Write one new search": [again],
            "Answer the question from the references": [box("five")],
            "Answer the last question": ["Passage 5. [1]"],
        }
    )
    texts, run = ScriptedRetriever({"other words": found[3:], "": found}), Run()
    plain = thinker(model, texts, planner=ONE)
    assert isinstance(plain.depth, DepthSolver)
    await replace(plain, depth=replace(plain.depth, fresh=True)).solve(SUB, run)
    judged = [text for text in model.prompts if "analyze the relationship" in text]
    assert [[f"Passage {n}." in text for n in (0, 5)] for text in judged] == [
        [True, False],
        [False, True],
    ]
    assert list_read_passages(run.events) == tuple(one.id for one in found[:6])


async def test_the_reason_for_another_search_is_why_the_last_one_failed() -> None:
    """Focusing said yes and no answer could be drawn: the reason for the yes is no reason."""
    model = Heard(
        {
            "analyze the relationship": [YES],
            "Answer the question from the references": [box("unknown")],
            "Write one new search": [
                "<search>Step: the rule of nines Action: Retrieval(s=s1:a['b'], p=p1, o=o1)"
                "</search>"
            ],
            "Answer the last question": ["The evidence does not say."],
        }
    )
    speaker = Speaker(model, "reader")
    solver = DepthSolver(speaker, ANYTHING, NoBoundary(), Focuser(speaker), turns=2)
    (step,) = LogicalPlan.single_retrieval(SUB.text).steps
    await solver.solve(step, step.question, (), "en", Run())
    (asked,) = [text for text in model.prompts if "Write one new search" in text]
    assert "Reference 0 says it" not in asked
    assert NOT_DRAWN["en"] in asked


async def test_a_copied_template_is_no_search() -> None:
    copied = (
        "<search>Step: In which town was Anna Holm born? Action: Retrieval("
        "s=s1:person['Anna Holm'], p=p1:place of birth, o=o1:town)</search>"
    )
    model = KeyedModel(
        {
            "analyze the relationship": [NO],
            "Write one new search": [copied],
            "could not be read": [copied],
            "Answer the question from the references": [box("unknown")],
        }
    )
    speaker = Speaker(model, "reader")
    found = ScriptedRetriever({"": [AREA]})
    solver = DepthSolver(speaker, found, NoBoundary(), Focuser(speaker))
    (step,) = LogicalPlan.single_retrieval(SUB.text).steps
    await solver.solve(step, step.question, (), "en", Run())
    assert found.asked == [SUB.text]


async def test_a_reply_with_neither_tag_is_the_answer() -> None:
    """The released executor takes it so, after reasoning and in place of a search alike."""
    model = KeyedModel(
        {
            "analyze the relationship": [NO],
            "Write one new search": ["About 37 percent."],
            "Answer the question from the references": ["37 percent"],
        }
    )
    speaker = Speaker(model, "reader")
    solver = DepthSolver(speaker, ANYTHING, NoBoundary(), Focuser(speaker))
    (step,) = LogicalPlan.single_retrieval(SUB.text).steps
    assert (await solver.solve(step, step.question, (), "en", Run())).text == "About 37 percent."
    model.replies["Write one new search"] = ["I know of no further search."]
    assert (await solver.solve(step, step.question, (), "en", Run())).text == "37 percent"
    model.replies["analyze the relationship"] = [YES]
    assert (await solver.solve(step, step.question, (), "en", Run())).text == "37 percent"


async def test_a_reply_that_is_no_plan_becomes_one_retrieval_and_the_trace_says_so() -> None:
    model = KeyedModel(
        {
            "decompose the user question": ["I would rather not."],
            "could not be read": ["I would rather not."],
            "analyze the relationship": [YES],
            "Answer the question from the references": [box("37 percent")],
            "Answer the last question": [f"{AREA.text} [1] {box('37')}"],
            "": ["I would rather not."],
        }
    )
    run = Run()
    solution = await thinker(model, ScriptedRetriever({"": [AREA]})).solve(SUB, run)
    (planned,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert planned.origin == "fallback"
    assert planned.warnings[0].startswith("no plan could be read")
    assert solution.halt is Halt.CONVERGED


@dataclass
class Graph:
    """What a graph would find for a form."""

    hits: list[Passage]
    forms: list[Retrieval] = field(default_factory=list)
    down: bool = False

    async def find_form(self, form: Retrieval, *, k: int) -> list[Hit]:
        self.forms.append(form)
        if self.down:
            raise SourceUnavailable("the graph is down")
        return [Hit(p, 1.0, n, form.s.name, "graph") for n, p in enumerate(self.hits[:k], 1)]


@pytest.mark.parametrize("down", [False, True])
async def test_the_words_go_to_the_texts_and_the_form_to_the_graph(down: bool) -> None:
    fact = Passage("graph:legs#0", "legs, area in children, 37 percent", "graph", "legs")
    graph = Graph([fact], down=down)
    model = KeyedModel(
        {
            "analyze the relationship": ["<answer>Yes</answer><reason>all</reason>"],
            "Answer the question from the references": [box("37 percent")],
        }
    )
    speaker = Speaker(model, "reader")
    texts = ScriptedRetriever({"": [AREA]})
    solver = DepthSolver(speaker, texts, NoBoundary(), Focuser(speaker), graph)
    (step,) = LogicalPlan.single_retrieval(SUB.text).steps
    run = Run()
    answer = await solver.solve(step, step.question, (), "en", run)
    assert texts.asked == [SUB.text]
    assert graph.forms == [step.action]
    expected = {AREA.id} if down else {AREA.id, fact.id}
    assert {hit.passage.id for hit in answer.hits} == expected
    failed = [reason for e in run.events if isinstance(e, Retrieved) for reason in e.failed]
    assert failed == (["the graph is down"] if down else [])


async def test_the_graph_is_asked_about_what_an_earlier_step_has_found() -> None:
    graph = Graph([Passage("graph:x#0", "Ann, died in, 1988", "graph", "Ann")])
    solver = thinker(film_model(), ANYTHING)
    assert isinstance(solver.depth, DepthSolver)
    with_graph = replace(solver, depth=replace(solver.depth, graph=graph))
    await with_graph.solve(FILMS, Run())
    subjects = {form.s.name for form in graph.forms}
    assert subjects == {"Hit Parade", "Ann", "Khiladi 420", "Bob"}


def test_a_long_reference_is_cut_to_whole_sentences_that_bear_on_the_question() -> None:
    filler = "Tea is a drink made from leaves. " * 40
    text = f"{filler}The colloid share is one half in children. {filler}"
    short = compress_passage(text, "Which share is colloid in children?", 200)
    assert "The colloid share is one half in children." in short
    assert len(short) <= 200
    assert compress_passage("short", "anything", 200) == "short"


async def test_a_cancelled_run_stops_its_steps() -> None:
    run, model = Run(), Hanging()
    task = asyncio.create_task(thinker(model, ANYTHING).solve(FILMS, run))
    await model.hangs.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.stopped == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_the_question_itself_finds_joins_what_the_steps_found() -> None:
    """A plan that looks for the wrong thing leaves what one search of the question would find."""
    model = KeyedModel(
        {
            "analyze the relationship": [YES],
            "Answer the question from the references": [box("37 percent")],
            "Answer the last question": [f"{AREA.text} [2] {box('37')}"],
        }
    )
    plan = read_plan("Step1: Which ratio?\nAction1: Retrieval(s=s1:a['ratio'], p=p1:is, o=o1)")
    found = ScriptedRetriever({"Which ratio": [RATIO], "How much": [AREA, RATIO]})
    solver = replace(thinker(model, found, planner=GivenForms(plan)), pool=QuestionSearch(found))
    run = Run()
    solution = await solver.solve(SUB, run)
    assert found.asked == ["Which ratio?", SUB.text]
    assert solution.answer.evidence[0].passage == AREA
    # Nothing is searched beyond a budget.
    found.asked.clear()
    await solver.solve(SUB, Run(budget=Budget(searches=1)))
    assert found.asked == ["Which ratio?"]


async def test_what_reasoning_found_reaches_a_composer_that_quotes() -> None:
    @dataclass(frozen=True)
    class Quoting(WrittenComposer):
        words: list[str] = field(default_factory=list)

        uses_draft: ClassVar[bool] = False

        async def conclude(
            self,
            question: Question,
            hits: Sequence[Hit],
            draft: str,
            run: Run,
            *,
            decision: Decision = UNDECIDED,
        ) -> Answer:
            self.words.append(decision.words)
            return Answer()

    composer = Quoting()
    solver = replace(thinker(film_model(), ANYTHING), composer=composer)
    solution = await solver.solve(FILMS, Run())
    (words,) = composer.words
    assert "Who is the director of Hit Parade? Ann" in words
    assert "When did Ann die? 1988" in words
    assert solution.decided is DecidedBy.METHOD
    spent = await solver.solve(FILMS, Run(budget=Budget(calls=0)))
    assert spent.decided is DecidedBy.FALLBACK


async def test_an_answer_rests_on_the_references_that_are_said_to_be_relevant() -> None:
    other = passage("tea", "Tea is a drink.")
    model = Heard(
        {
            "analyze the relationship": [
                "<answer>Yes</answer><reason>Reference 0 does not say it."
                " Reference 1 does.</reason>"
            ],
            "Answer the question from the references": [box("37 percent")],
        }
    )
    speaker = Speaker(model, "reader")
    found = ScriptedRetriever({"": [other, AREA]})
    solver = DepthSolver(speaker, found, NoBoundary(), Focuser(speaker))
    (step,) = LogicalPlan.single_retrieval(SUB.text).steps
    answer = await solver.solve(step, step.question, (), "en", Run())
    assert [hit.passage for hit in answer.hits] == [AREA]
    (asked,) = [text for text in model.prompts if "from the references alone" in text]
    assert other.text not in asked


async def test_the_last_answer_is_drawn_from_all_searches_the_last_first() -> None:
    found = [Passage(f"book:p#{n}", f"Passage {n}.", "book", "P") for n in range(6)]
    again = "<search>Step: other words Action: Retrieval(s=s1:a['b'], p=p1, o=o1)</search>"
    model = Heard(
        {
            "analyze the relationship": [NO],
            "Write one new search": [again],
            "Answer the question from the references": [box("five")],
            "Answer the last question": ["Passage 5. [1]"],
        }
    )
    texts = ScriptedRetriever({"other words": found[3:], "": found[:3]})
    await thinker(model, texts, planner=ONE, turns=2).solve(SUB, Run())
    prompt = next(one for one in model.prompts if "Answer the question from the references" in one)
    assert "Passage 3." in prompt
    assert prompt.index("Passage 3.") < prompt.index("Passage 0.")
