"""Every call has room for thinking once a model was seen to think."""

from dataclasses import replace
from typing import Any

import pytest
from loopback_servers import LoopbackServer
from mannered import MODEL, serve_manners
from manners import Manners
from pydantic import ValidationError

from osler.build.models import load_model
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.core.thinking import split_thinking
from osler.llm.server.client import OpenAIModel
from osler.settings import ModelSettings

ASKED = [Message("user", "Does it? Write True or False.")]
SHORT = Sampling(temperature=0.0, max_tokens=16)


async def ask_twice(manners: Manners, **section: Any) -> tuple[list[Completion], LoopbackServer]:
    async with serve_manners(lambda turns, begun: "True", manners) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL, **section)
        model = (await load_model(chosen)).model
        place.asked.clear()
        return [split_thinking(await model.complete(ASKED, SHORT)) for _ in range(2)], place


@pytest.mark.parametrize("where", ["text", "apart", "template", "hidden"])
async def test_a_call_of_16_tokens_holds_thinking(where: Any) -> None:
    replies, place = await ask_twice(Manners(thinking=where, thought_tokens=100))
    assert [reply.text for reply in replies] == ["True", "True"]
    assert [reply.finish for reply in replies] == ["stop", "stop"]
    # Cut once at most, where connecting did not show that it thinks.
    most = [body["max_tokens"] for body in place.bodies_of("/v1/chat/completions")]
    assert most.count(16) <= 1
    assert set(most) <= {16, 16 + 2048}
    assert sum(reply.usage.calls for reply in replies) == len(most)


async def test_a_reply_for_which_thinking_left_no_room_is_asked_for_again() -> None:
    thinks = Manners(thinking="template", thought_tokens=8, continues=False, scores=False)
    async with serve_manners(lambda turns, begun: "It does. " * 9, thinks) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL)
        model = (await load_model(chosen)).model
        assert isinstance(model, OpenAIModel)
        model.allowance.thinks = False  # connecting did not show it
        reply = split_thinking(await model.complete(ASKED, replace(SHORT, max_tokens=30)))
    assert reply.finish == "stop"
    assert reply.text.strip().count("It does.") == 9


async def test_a_model_that_does_not_think_is_asked_for_what_the_method_wants() -> None:
    _, place = await ask_twice(Manners())
    assert {body["max_tokens"] for body in place.bodies_of("/v1/chat/completions")} == {16}


async def test_the_allowance_is_a_setting() -> None:
    replies, _ = await ask_twice(Manners(thinking="text", thought_tokens=100), thinking=0)
    assert [(reply.text, reply.finish) for reply in replies] == [("", "length")] * 2
    replies, _ = await ask_twice(Manners(thinking="text", thought_tokens=100), thinking=300)
    assert replies[0].text == "True"


async def test_a_context_without_room_for_thinking_is_asked_without() -> None:
    manners = Manners(thinking="text", thought_tokens=100, context=600, continues=False)
    replies, _ = await ask_twice(manners)
    assert [reply.finish for reply in replies] == ["length", "length"]


async def test_thinking_is_switched_off_by_fields_of_the_request() -> None:
    off = ("chat_template_kwargs.enable_thinking=false", "top_p=0.9")
    replies, place = await ask_twice(Manners(thinking="text", thought_tokens=100), request=off)
    assert [(reply.text, reply.thinking) for reply in replies] == [("True", "")] * 2
    (body, _) = place.bodies_of("/v1/chat/completions")
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["top_p"] == 0.9


def test_fields_of_the_request_are_json_or_words() -> None:
    given = ModelSettings(
        kind="openai",
        url="http://h/v1",
        name="m",
        request=("reasoning_effort=low", "a.b=1", 'a.c=["x"]', "think=false"),
    )
    assert given.request_fields == {
        "reasoning_effort": "low",
        "a": {"b": 1, "c": ["x"]},
        "think": False,
    }


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"kind": "openai", "url": "u", "name": "m", "request": ["=1"]}, 'is not "name=JSON"'),
        ({"kind": "packaged", "request": ["a=1"]}, "sent to servers"),
    ],
)
def test_fields_that_cannot_be_sent_are_refused(section: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        ModelSettings.model_validate(section)
