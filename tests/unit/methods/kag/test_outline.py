"""The plan of a model that is too small for Table 1."""

import pytest

from osler.llm.core.speaker import Speaker
from osler.methods.kag.logical_forms import Output, Retrieval
from osler.methods.kag.outline import Outliner, outline_grammar
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
        ("What is the dose of adrenaline in anaphylaxis?", ("anaphylaxis", "adrenaline", "dose")),
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
