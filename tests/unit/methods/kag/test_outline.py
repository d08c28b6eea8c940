"""The plan of a model that is too small for Table 1."""

import pytest

from osler.llm.core.speaker import Speaker
from osler.methods.kag.logical_forms import Deduce, Operation, Output, Retrieval
from osler.methods.kag.outline import Outliner, drop_repeated_lookups, outline_grammar
from osler.methods.kag.parse import read_plan
from osler.retrieve.names import names_in
from osler.testing.scripted import ScriptedModel
from osler.trace import FormsPlanned, Run
from osler.types import Question

CHAIN = (
    "<answer>Step1: Where was Anna Holm born?\n"
    "Action1: Retrieval(s=s1:person['Anna Holm'], p=p1:birth place, o=o1:town)\n"
    "Step2: Which river flows through #1?\n"
    "Action2: Retrieval(s=o1, p=p2:river, o=o2:river)\n"
    "Step3: Give the river.\nAction3: Output(o2)</answer>"
)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("When did Lothair Ii's mother die?", ("Lothair Ii",)),
        (
            "Were Scott Derrickson and Ed Wood of the same nationality?",
            ("Scott Derrickson and Ed Wood", "Scott Derrickson", "Ed Wood"),
        ),
        ('Who sang on "Dear Brother"?', ("Dear Brother",)),
        ("Who was the Duke of York in 1800?", ("Duke of York",)),
        ("What is the dose of adrenaline in anaphylaxis?", ("anaphylaxis", "adrenaline")),
        ("妊娠期高血压患者禁用哪类降压药？", ("妊娠期高血压患者禁用", "类降压药")),
        ("Why?", ()),
    ],
)
def test_the_names_are_those_of_the_question(question: str, names: tuple[str, ...]) -> None:
    assert set(names) <= set(names_in(question))
    assert all(name in question for name in names_in(question))


@pytest.mark.parametrize("hostile", ["'x', p=b", "a]b", 'It is "a\nb".', "<b>Bold</b>", "''"])
def test_a_hostile_name_is_left_out_and_the_grammar_still_stands(hostile: str) -> None:
    grammar = outline_grammar(names_in(hostile))
    assert grammar.accepts_prefix("<answer>Step1: ")


async def test_a_chain_is_a_plan_in_the_paper_s_notation() -> None:
    model = ScriptedModel([CHAIN])
    run = Run()
    asked = Question("q", "Which river flows through the town where Anna Holm was born?")
    plan = await Outliner(Speaker(model, "planner", constrains=True)).decompose(asked, run)
    assert [type(step.action) for step in plan.steps] == [Retrieval, Retrieval, Output]
    (event,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert (event.origin, [node.needs for node in event.nodes]) == ("planner", [(), (1,), (2,)])
    held = model.samplings[0].grammar
    assert held is not None
    assert held.accepts(CHAIN)


async def test_without_a_plan_the_question_itself_is_looked_up() -> None:
    run = Run()
    outliner = Outliner(Speaker(ScriptedModel(["no"] * 3), "planner"))
    plan = await outliner.decompose(Question("q", "Why?"), run)
    assert len(plan.steps) == 1
    assert [e.origin for e in run.events if isinstance(e, FormsPlanned)] == ["fallback"]


def test_a_lookup_stands_once_and_what_it_gave_is_referred_to() -> None:
    again = CHAIN.replace("s=o1, p=p2:", "s=s2:person['Anna Holm'], p=p2:")
    plan = read_plan(
        "Step1: Where was Anna Holm born?\n"
        "Action1: Retrieval(s=s1:person['Anna Holm'], p=p1:birthplace, o=o1:town)\n"
        "Step2: In which town was Anna Holm born?\n"
        "Action2: Retrieval(s=s2:person['anna holm'], p=p2:Birthplace, o=o2:town)\n"
        "Step3: Which is it?\n"
        "Action3: Deduce(op=choice, content=['o1', 'o2'], target='it')->o3"
    )
    mended = drop_repeated_lookups(plan)
    assert [step.n for step in mended.steps] == [1, 3]
    assert mended.steps[1].action == Deduce(Operation.CHOICE, ("o1", "o1"), "it", "o3")
    # Another relation of the same subject is another lookup.
    assert len(drop_repeated_lookups(read_plan(again)).steps) == 3


def test_a_small_model_may_calculate_and_its_target_is_the_question_s_words() -> None:
    target = "How many years did Anna Holm live?"
    grammar = outline_grammar(("Anna Holm",), target=target)
    plan = (
        "<answer>Step1: when was Anna Holm born?\n"
        "Action1: Retrieval(s=s1:person['Anna Holm'], p=p1:birth, o=o1:year)\n"
        "Step2: count the years\n"
        "Action2: Math(content=['o1'], target='{}')->o2</answer>"
    )
    assert grammar.accepts(plan.format(target))
    assert not grammar.accepts(plan.format("anything else"))
