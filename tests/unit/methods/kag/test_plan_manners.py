"""Plans as real models write them, from the reply to the plan that is run."""

import pytest

from osler.llm.core.ask import Speaker
from osler.methods.kag.parse import read_plan
from osler.methods.kag.planner import EXAMPLES, Decomposer, example_turns
from osler.trace import FormsPlanned, Run
from osler.types import Question
from osler_lab.testing.scripted import ScriptedModel

FILMS = Question("q", "When did the director of Solaris die?")


async def test_a_plan_with_one_bad_step_is_run_and_says_what_was_mended() -> None:
    reply = (
        "Sure! Here is the plan.\n\n1. **Step1**: Who directed Solaris?\n   - **Action1**: look"
        " it up\n2. **Step2**: When did #1 die?\n   - **Action2**: `Retrieval(s=o1, p=p2:death,"
        " o=o2)`\n\nLet me know if you need more."
    )
    run = Run()
    plan = await Decomposer(Speaker(ScriptedModel([reply]), "planner")).decompose(FILMS, run)
    assert [step.question for step in plan.steps] == ["Who directed Solaris?", "When did #1 die?"]
    (event,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert event.origin == "planner"
    assert "step 1's action could not be read" in event.warnings[0]


async def test_the_repair_shows_the_reply_that_was_not_read() -> None:
    model = ScriptedModel(["I would look up the film.", "Step1: Who?\nAction1: Output(o1)"])
    await Decomposer(Speaker(model, "planner")).decompose(FILMS, Run())
    assert "I would look up the film." in model.seen[1][-1].content


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_an_untrained_model_is_shown_the_paper_s_worked_example(language: str) -> None:
    model = ScriptedModel(["Step1: Who?\nAction1: Output(o1)"])
    question = Question("q", "When?", language=language)  # type: ignore[arg-type]
    await Decomposer(Speaker(model, "planner"), example=True).decompose(question, Run())
    messages = list(model.seen[0])
    assert [message.role for message in messages] == ["user", "assistant", "user"]
    assert messages[:2] == example_turns(language)  # type: ignore[arg-type]
    assert len(read_plan(EXAMPLES[language][1]).steps) == 5  # type: ignore[index]
