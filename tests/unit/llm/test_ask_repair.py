"""The only repair loop in the house."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.ask import ask
from osler.llm.base import Completion, Message, Sampling
from osler.testing.scripted import ScriptedModel
from osler.trace import Asked, Run


def number(completion: Completion) -> int:
    if not completion.text.isdigit():
        raise MalformedOutput(completion.text, expected="a whole number")
    return int(completion.text)


async def asked(model: ScriptedModel, run: Run) -> int:
    said = [Message("user", "How many?")]
    return await ask(model, said, number, Sampling(), run, role="reader", prompt="p")


async def test_a_reply_that_parses_is_asked_for_once() -> None:
    run = Run()
    assert await asked(ScriptedModel(["3"]), run) == 3
    assert run.usage.calls == 1


async def test_a_malformed_reply_is_shown_to_the_model_with_what_was_wrong() -> None:
    model, run = ScriptedModel(["three", "3"]), Run()
    assert await asked(model, run) == 3
    assert [m.content for m in model.seen[1]][1] == "three"
    assert "expected a whole number" in model.seen[1][2].content
    assert [e.repaired != "" for e in run.events if isinstance(e, Asked)] == [False, True]
    assert model.samplings[0].seed != model.samplings[1].seed


async def test_after_two_repairs_the_last_reply_is_the_error() -> None:
    model = ScriptedModel(["one", "two", "three"])
    with pytest.raises(MalformedOutput) as caught:
        await asked(model, Run())
    assert caught.value.reply == "three"
    model.finish()
