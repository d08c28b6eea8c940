"""Golden wire strings of KAG-Thinker (Tables 1, 5, 9), the broken ones among them."""

import pytest

from osler.errors import MalformedOutput
from osler.methods.kag.logical_forms import (
    Constraint,
    Deduce,
    Form,
    LogicalPlan,
    Math,
    Operation,
    Output,
    PlanStep,
    Retrieval,
    SpoNode,
    render_form,
    render_plan,
)
from osler.methods.kag.parse import MOST_STEPS, read_plan, read_plan_tolerantly, read_search
from osler.methods.kag.reader import read_form
from osler.methods.kag.variables import fill_references, find_dependencies

FILMS = """<think>Two films, two directors, two dates.</think>

<answer>Step1: Who is the director of Hit Parade Of 1947?
Action1: Retrieval(s=s1:film['Hit Parade Of 1947'], p=p1:director, o=o1:director)
Step2: When did #1 die?
Action2: Retrieval(s=o1, p=p2:deathtime, o=o2:deathtime)
Step3: Who is the director of Khiladi 420?
Action3: Retrieval(s=s2:film['Khiladi 420'], p=p3:director, o=o3:director)
Step4: When did #3 die?
Action4: Retrieval(s=o3, p=p4:deathtime, o=o4:deathtime)
Step5: Which film was directed by the director who died first according to #2 and #4?
Action5: Deduce(op=choice, content=['o2','o4'], target='which film was directed by the \
director who died first according to o2 and o4')->o5 </answer>"""

GOLDEN: list[tuple[str, Form]] = [
    (
        "Retrieval(s=s1:offense[credit card fraud], p=p1: found, o=o1:elements)",
        Retrieval(
            SpoNode("s1", "offense", "credit card fraud"),
            SpoNode("p1", "found"),
            SpoNode("o1", "elements"),
        ),
    ),
    (
        "Retrieval(s=s1:Medical formula['Fluid Requirement Formula'], p=p1, o=o1)",
        Retrieval(
            SpoNode("s1", "Medical formula", "Fluid Requirement Formula"),
            SpoNode("p1"),
            SpoNode("o1"),
        ),
    ),
    (
        "Retrieval(s=s1, p=p2:time, o=o2:time['The first 24 hours'])",
        Retrieval(
            SpoNode("s1"), SpoNode("p2", "time"), SpoNode("o2", "time", "The first 24 hours")
        ),
    ),
    (
        "Retrieval(s=s2:BodyParts['Both Lower Limbs (Including the Buttocks)'],"
        " p=p3:AreaRatio, o=o3:AreaRatio)",
        Retrieval(
            SpoNode("s2", "BodyParts", "Both Lower Limbs (Including the Buttocks)"),
            SpoNode("p3", "AreaRatio"),
            SpoNode("o3", "AreaRatio"),
        ),
    ),
    (
        "Retrieval(s=s3:TreatmentPlan['Burn fluid replacement'], p=p5:Colloidal liquid ratio,"
        " o=o5:Colloidal liquid ratio, p.Degree of burn=II∘)",
        Retrieval(
            SpoNode("s3", "TreatmentPlan", "Burn fluid replacement"),
            SpoNode("p5", "Colloidal liquid ratio"),
            SpoNode("o5", "Colloidal liquid ratio"),
            (Constraint("p", "Degree of burn", "=", "II∘"),),
        ),
    ),
    (
        "Math(content=['o1', 'o2', 'weight=16kg'], target='The amount of colloid fluid to be"
        " administered in the first 24 hours')->math6",
        Math(
            ("o1", "o2", "weight=16kg"),
            "The amount of colloid fluid to be administered in the first 24 hours",
            "math6",
        ),
    ),
    (
        "Math(content=[o1, o2], target=What's the total amount involved in Zhang's credit card"
        " fraud.)->o3",
        Math(("o1", "o2"), "What's the total amount involved in Zhang's credit card fraud.", "o3"),
    ),
    (
        "Deduce(op=extract, content=[o1, Zhang found 5,000 yuan, and a card], target=Which"
        " amounts (of these) are part of the fraud?)->o2",
        Deduce(
            Operation.EXTRACT,
            ("o1", "Zhang found 5,000 yuan, and a card"),
            "Which amounts (of these) are part of the fraud?",
            "o2",
        ),
    ),
    (
        "Deduce(op=judgement, content=[o1, 铁剂，每日1,500毫克 ,3 次, o2, x1;o3], target=够吗)->o4",
        Deduce(
            Operation.JUDGEMENT,
            ("o1", "铁剂，每日1,500毫克 ,3 次", "o2", "x1;o3"),
            "够吗",
            "o4",
        ),
    ),
    (
        "Deduce(op=extract, content=[5,000 yuan,, a card,, o1,], target=Which?)->o2",
        Deduce(Operation.EXTRACT, ("5,000 yuan,, a card", "o1"), "Which?", "o2"),
    ),
    ("Output(o3)", Output(("o3",))),
    ("Output(A,B)", Output(("A", "B"))),
    ("Output #3.", Output(("#3",))),
    (
        "Retrieval（s=s1:疾病['糖尿病']，p=p1：治疗，o=o1：药物）",
        Retrieval(SpoNode("s1", "疾病", "糖尿病"), SpoNode("p1", "治疗"), SpoNode("o1", "药物")),
    ),
    (
        "get_spo(s=s1:film[`Men in Black`], p=p1:DirectedBy, o=o1:Person, s.ReleaseYear>=2002,"
        " o.born in ['1950', '1951'])",
        Retrieval(
            SpoNode("s1", "film", "Men in Black"),
            SpoNode("p1", "DirectedBy"),
            SpoNode("o1", "Person"),
            (
                Constraint("s", "ReleaseYear", ">=", "2002"),
                Constraint("o", "born", "in", ("1950", "1951")),
            ),
        ),
    ),
    (
        "Retrieval(s=s1:sovereignState[‘Panama’], p=p1, o=o1:city[Colón][Q123])",
        Retrieval(
            SpoNode("s1", "sovereignState", "Panama"),
            SpoNode("p1"),
            SpoNode("o1", "city", "Colón", "Q123"),
        ),
    ),
    (
        "retrieval(s=s1:drug['a, p=b'], p=p1:dose, o=o1",
        Retrieval(SpoNode("s1", "drug", "a, p=b"), SpoNode("p1", "dose"), SpoNode("o1")),
    ),
]


@pytest.mark.parametrize(("text", "form"), GOLDEN, ids=[text[:40] for text, _ in GOLDEN])
def test_a_golden_action_reads_as_what_it_says(text: str, form: Form) -> None:
    assert read_form(text)[0] == form


@pytest.mark.parametrize("form", [form for _, form in GOLDEN], ids=str)
def test_a_golden_form_reads_back_as_it_was_written(form: Form) -> None:
    assert read_form(render_form(form)) == (form, len(render_form(form)))


def test_the_paper_s_plan_of_two_films_is_five_steps_in_three_levels() -> None:
    plan = read_plan(FILMS)
    assert [step.n for step in plan.steps] == [1, 2, 3, 4, 5]
    assert find_dependencies(plan).solving_levels() == ((1, 3), (2, 4), (5,))
    assert find_dependencies(plan).problems == ()
    assert read_plan(render_plan(plan)) == plan


@pytest.mark.parametrize(
    "reply",
    [
        "Step 1: What is it?\nAction 1: Output(o1)",
        "step1: What is it?\naction1: output(o1)",
        "Step: What is it?\nAction: Output(o1)",
        "  Step1： What is it?\n  Action1： Output（o1）",
        "Step1: What is it? Action1: Output(o1)",
        "步骤1：What is it?\n动作1：Output(o1)",
        "I think\n</think>\n<answer>Step1: What is it?\nAction1: Output(o1)",
    ],
)
def test_a_plan_is_read_in_any_layout(reply: str) -> None:
    assert read_plan(reply) == LogicalPlan((PlanStep(1, "What is it?", Output(("o1",))),))


def test_several_steps_on_one_line_are_several_steps() -> None:
    reply = "Step1: A? Action1: Output(a) Step2: B? Action2: Output(b)"
    assert [step.question for step in read_plan(reply).steps] == ["A?", "B?"]


def test_a_question_about_a_mechanism_of_action_keeps_its_words() -> None:
    reply = "Step1: What is the mechanism of Action: of Step-by-step dosing?\nAction1: Output(o1)"
    (step,) = read_plan(reply).steps
    assert step.question == "What is the mechanism of Action: of Step-by-step dosing?"


def test_the_tenth_reference_is_not_the_first_one() -> None:
    assert (
        fill_references("Is #10 older than #1?", {1: "Ann", 10: "Bob"}) == "Is Bob older than Ann?"
    )
    assert fill_references("Is #2 here?", {1: "Ann"}) == "Is #2 here?"


def test_the_search_of_table_9_is_read_without_numbers() -> None:
    step = read_search(
        "<search>Step: What belongs to the lower limbs in Children. Action: Retrieval("
        "s=s2, p=p4:BelongTo, o=o4:Crowd['Children'])</search>"
    )
    assert step.question == "What belongs to the lower limbs in Children."
    assert step.action == Retrieval(
        SpoNode("s2"), SpoNode("p4", "BelongTo"), SpoNode("o4", "Crowd", "Children")
    )


def test_an_unterminated_search_is_read() -> None:
    step = read_search("<search>Step1: How much?\nAction1: Retrieval(s=s1:drug['x'], p=p1, o=o1)")
    assert step.question == "How much?"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I cannot plan this.",
        "Step1: no action here",
        "Step1: x\nAction1: Fly(to=moon)",
        "Step1: x\nAction1: Deduce(op=guess, content=[o1",
        "Step1: x\nAction1: Retrieval()",
        "Step1: x\nAction1: Retrieval(s=s1, s=s2, p=p1, o=o1)",
        "Step1: x\nAction1: Output()",
        "Step1: x\nAction1: Math(content=[o1",
    ],
)
def test_what_is_no_plan_says_what_was_expected(reply: str) -> None:
    with pytest.raises(MalformedOutput, match="expected"):
        read_plan(reply)


@pytest.mark.parametrize(
    ("told", "op"),
    [
        ("op=judgment, ", "judgement"),
        ("op=multi-choice, ", "multiChoice"),
        ("op=extraction, ", "extract"),
        ("op=Choices, ", "choice"),
        ("op=guess, ", "entailment"),
        ("op='infer', ", "entailment"),
        ("", "entailment"),
    ],
)
def test_an_unknown_operation_is_the_nearest_one_and_loses_no_plan(told: str, op: str) -> None:
    plan = read_plan(f"Step1: x\nAction1: Deduce({told}content=['o1'], target='y')->o2")
    (step,) = plan.steps
    assert step.action == Deduce(Operation(op), ("o1",), "y", "o2")


def test_one_bad_step_is_looked_up_in_its_words_and_loses_no_plan() -> None:
    reading = read_plan_tolerantly(
        "1. **Step1**: Who directed Solaris?\n   - **Action1**: Fly(to=moon)\n"
        "2. **Step2**: When did #1 die?\n   - **Action2**: Retrieval(s=o1, p=p2:death, o=o2)"
    )
    first, second = reading.plan.steps
    assert first.question == "Who directed Solaris?"
    assert isinstance(first.action, Retrieval)
    assert first.action.o.alias == "o1"
    assert isinstance(second.action, Retrieval)
    assert reading.mended == ("step 1's action could not be read: its words are looked up",)
    assert find_dependencies(reading.plan).waits[2] == {1}


def test_what_was_expected_comes_with_the_reply_that_was_not_read() -> None:
    with pytest.raises(MalformedOutput, match="I would first look up"):
        read_plan("I would first look up the film, then its director.")


def test_a_plan_is_read_where_the_tag_holds_something_else() -> None:
    reply = "Step1: What is it?\nAction1: Output(o1)\n\n<answer>see above</answer>"
    assert len(read_plan(reply).steps) == 1


def test_a_plan_of_two_hundred_steps_is_refused() -> None:
    lines = [f"Step{n}: q{n}?\nAction{n}: Output(o{n})" for n in range(1, 201)]
    with pytest.raises(MalformedOutput, match=f"at most {MOST_STEPS} steps, not 200"):
        read_plan("\n".join(lines))


def test_no_search_tag_is_no_search() -> None:
    with pytest.raises(MalformedOutput, match="<search>"):
        read_search("<answer>\\boxed{592}</answer>")


def plan_of(*actions: tuple[str, str]) -> LogicalPlan:
    lines = [f"Step{n}: {q}\nAction{n}: {a}" for n, (q, a) in enumerate(actions, 1)]
    return read_plan("\n".join(lines))


def test_a_named_entity_used_again_is_no_reason_to_wait() -> None:
    plan = plan_of(
        ("Formula?", "Retrieval(s=s1:formula['Fluid'], p=p1, o=o1)"),
        ("When?", "Retrieval(s=s1, p=p2:time, o=o2:time['The first 24 hours'])"),
    )
    assert find_dependencies(plan).solving_levels() == ((1, 2),)
    assert find_dependencies(plan).given == {"s1": "Fluid", "o2": "The first 24 hours"}


def test_a_step_that_waits_for_itself_or_for_nobody_is_reported() -> None:
    plan = plan_of(
        ("Is #1 right?", "Retrieval(s=s1:a['x'], p=p1:b, o=o1)"),
        ("And #7?", "Retrieval(s=o9, p=p2:c, o=o2)"),
        ("Sum?", "Math(content=['o1', 'o8', 'weight=16kg'], target='sum')->math3"),
        ("Out?", "Output(o5)"),
    )
    assert find_dependencies(plan).problems == (
        "step 1 waits for itself (#1)",
        "step 2 refers to #7, and there is no such step",
        "step 2 uses o9, and nothing declares it",
        "step 3 uses o8, and nothing declares it",
        "step 4 uses o5, and nothing declares it",
    )
    assert find_dependencies(plan).solving_order() == (1, 2, 4, 3)


def test_a_cycle_is_named_and_opened_at_its_forward_edge() -> None:
    plan = plan_of(
        ("From #2?", "Retrieval(s=s1:a['x'], p=p1:b, o=o1)"),
        ("From #1?", "Retrieval(s=s2:a['y'], p=p2:b, o=o2)"),
    )
    found = find_dependencies(plan)
    assert found.problems == ("the steps 1 → 2 → 1 wait for each other",) or found.problems == (
        "the steps 2 → 1 → 2 wait for each other",
    )
    assert found.solving_order() == (1, 2)


def test_a_constraint_that_names_a_result_waits_for_it() -> None:
    plan = plan_of(
        ("When?", "Retrieval(s=s1:film['x'], p=p1:year, o=o1:year)"),
        ("Which?", "Retrieval(s=s2:award['y'], p=p2:given, o=o2:film, o.year='o1')"),
    )
    assert find_dependencies(plan).solving_levels() == ((1,), (2,))


def test_a_step_whose_words_begin_with_an_earlier_answer_keeps_its_sign() -> None:
    plan = read_plan(
        "Step1: 华法林的拮抗剂是什么？\nAction1: Retrieval(s=s1:药物['华法林'], p=p1:拮抗, o=o1)\n"
        "## Step2: #1的剂量是多少？\nAction2: Retrieval(s=o1, p=p2:剂量, o=o2)"
    )
    assert plan.steps[1].question == "#1的剂量是多少？"
