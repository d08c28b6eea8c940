"""The OpenAI-compatible interface, tried with OpenAI's own client on a server that runs."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import FixedModel, ServedOsler, serve_osler
from waiting import AwaitableEvent

from osler.llm.core.base import Message, Sampling
from osler.llm.server.client import Endpoint, connect_server

openai = pytest.importorskip("openai")

QUESTION = [
    {"role": "user", "content": "Which drug is given first, into the outer thigh, at once?"}
]

TOOLS: list[Any] = [{"type": "function", "function": {"name": "f"}}]


@pytest.fixture(scope="module")
def client(place: ServedOsler) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{place.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_the_strategies_are_models(client: Any) -> None:
    names = [model.id for model in client.models.list()]
    assert names[0] == "osler/auto"
    assert {"osler/tc-rag", "osler/kag-thinker", "osler/no-retrieval"} <= set(names)
    assert client.models.retrieve("osler/tc-rag").owned_by == "osler"


def test_chat_completion_carries_its_citations_four_ways(client: Any) -> None:
    reply = client.chat.completions.create(
        model="osler/rag", messages=QUESTION, extra_body={"inline_sources": True}
    )
    message, told = reply.choices[0].message, reply.model_dump()
    assert message.content.startswith("Adrenaline is given first. [1]")
    (note,) = message.annotations
    cited = note.url_citation
    assert message.content[cited.start_index : cited.end_index] == "Adrenaline is given first."
    assert told["citations"] == [cited.url]
    assert told["osler"]["evidence"][0]["quote"] in told["osler"]["evidence"][0]["passage"]["text"]
    assert cited.url in message.content.splitlines()[-1]
    opened = httpx2.get(cited.url).json()
    assert opened["passage"]["id"] == told["osler"]["evidence"][0]["passage"]["id"]
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert reply.choices[0].finish_reason == "stop"


def test_a_stream_gives_the_same_answer_with_its_citations_as_each_is_fixed(client: Any) -> None:
    whole = client.chat.completions.create(model="osler/rag", messages=QUESTION)
    chunks = list(
        client.chat.completions.create(
            model="osler/rag",
            messages=QUESTION,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    text = "".join(delta.content or "" for delta in deltas)
    assert text == whole.choices[0].message.content
    notes = [note for delta in deltas for note in (getattr(delta, "annotations", None) or [])]
    assert [note["url_citation"]["start_index"] for note in notes] == [0]
    assert "searched" in "".join(getattr(d, "reasoning_content", None) or "" for d in deltas)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens
    last = next(c for c in reversed(chunks) if c.choices)
    assert last.choices[0].finish_reason == "stop"
    assert last.model_dump()["osler"]["grounding"] == "grounded"


def test_the_stream_ends_as_openai_s_does(place: ServedOsler) -> None:
    body = {"model": "osler/rag", "messages": QUESTION, "stream": True}
    reply = httpx2.post(f"{place.url}/v1/chat/completions", json=body)
    assert reply.text.endswith("data: [DONE]\n\n")
    assert reply.headers["content-type"].startswith("text/event-stream")


async def test_osler_s_own_client_of_such_servers_gets_an_answer(place: ServedOsler) -> None:
    """The other real client: what Osler itself asks vLLM, Ollama and llama.cpp with."""
    model = await connect_server(Endpoint(base_url=f"{place.url}/v1", model="osler/rag"))
    said = await model.complete([Message("user", QUESTION[0]["content"])], Sampling(top=0))
    assert said.text.startswith("Adrenaline is given first. [1]")


@pytest.mark.parametrize(
    ("changed", "kind", "param"),
    [
        ({"model": "gpt-9"}, "NotFoundError", "model"),
        ({"model": "osler/"}, "NotFoundError", "model"),
        ({"tools": TOOLS, "tool_choice": "required"}, "Unprocessable", "tool_choice"),
        ({"n": 2}, "Unprocessable", "n"),
        ({"logprobs": True}, "Unprocessable", "logprobs"),
        ({"stop": ["x"]}, "Unprocessable", "stop"),
        ({"response_format": {"type": "json_object"}}, "Unprocessable", "response_format.type"),
        ({"messages": []}, "Unprocessable", "messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "BadRequest", "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, "Unprocessable", None),
        ({"temperature": 3}, "Unprocessable", "temperature"),
    ],
)
def test_unsupported_parameter_is_refused_in_openai_s_error_form(
    client: Any, changed: dict[str, Any], kind: str, param: str | None
) -> None:
    with pytest.raises(openai.APIStatusError) as failed:
        client.chat.completions.create(**{"model": "osler/rag", "messages": QUESTION, **changed})
    assert type(failed.value).__name__.startswith(kind)
    assert failed.value.param == param
    assert failed.value.type == "invalid_request_error"
    assert failed.value.code


def test_tools_are_taken_and_not_called_and_the_reply_tells_what_it_rests_on(client: Any) -> None:
    reply = client.chat.completions.create(
        model="osler/rag", messages=QUESTION, tools=TOOLS, tool_choice="auto"
    )
    assert reply.choices[0].finish_reason == "stop"
    told = reply.model_dump()["osler"]
    assert "tools were not called" in told["unread"]
    (source,) = told["sources"]
    assert (source["number"], source["title"], source["illustrative"]) == (1, "Anaphylaxis", False)
    assert source["url"] == reply.model_dump()["citations"][0]
    assert (told["grounding"], told["quoted"]) == ("grounded", False)
    assert {"sureness", "notes"} <= told.keys()


def test_an_image_is_refused_and_parts_of_text_are_read(client: Any) -> None:
    text = {"type": "text", "text": QUESTION[0]["content"]}
    image = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/x.png"}}
    said = client.chat.completions.create(
        model="osler/rag", messages=[{"role": "user", "content": [text]}]
    )
    assert said.choices[0].message.content
    with pytest.raises(openai.UnprocessableEntityError):
        client.chat.completions.create(
            model="osler/rag", messages=[{"role": "user", "content": [text, image]}]
        )


@pytest.mark.parametrize(
    ("content", "param"),
    [
        ([{"type": "image_url", "image_url": {"url": "data:x"}}], "messages.0.content.0.type"),
        ([], "messages.0.content"),
        (5, "messages.0.content"),
        ("x" * 40_000, "messages.0.content.0.text"),
    ],
)
def test_content_that_is_no_text_is_refused_by_its_place_alone(
    http: httpx2.Client, content: object, param: str
) -> None:
    asked = {"model": "osler/rag", "messages": [{"role": "user", "content": content}]}
    reply = http.post("/v1/chat/completions", json=asked)
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert error["param"] == param
    assert "function" not in error["message"]


def test_unread_parts_of_a_conversation_are_reported(client: Any) -> None:
    messages = [
        {"role": "system", "content": "Answer as a pirate."},
        {"role": "user", "content": "And asthma?"},
        {"role": "assistant", "content": "Salbutamol."},
        *QUESTION,
    ]
    said = client.chat.completions.create(model="osler/rag", messages=messages)
    unread = said.model_dump()["osler"]["unread"]
    assert [line.split(" were")[0] for line in unread] == ["system messages", "earlier turns"]


def test_a_follow_up_is_answered_with_the_subject_of_the_conversation(client: Any) -> None:
    messages = [
        {"role": "user", "content": "How is anaphylaxis recognised?"},
        {"role": "assistant", "content": "By swelling."},
        {"role": "user", "content": "And what is given first?"},
    ]
    said = client.chat.completions.create(model="osler/rag", messages=messages).model_dump()
    assert "anaphylaxis" in said["osler"]["standalone"]
    assert said["osler"]["rewritten_by"] == "rule"
    assert "swelling" not in said["osler"]["standalone"], "answers are not read"


def test_run_is_cancelled_when_its_client_disconnects(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with serve_osler(home, model=model) as place:
        for streamed in (True, False):
            model.called.clear()
            body = json.dumps({"model": "osler/rag", "messages": QUESTION, "stream": streamed})
            with socket.create_connection(("127.0.0.1", place.port), timeout=20) as client:
                client.sendall(
                    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                    b"Content-Type: application/json\r\n"
                    + f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
                )
                assert model.called.wait(20)
                assert place.site.desk.unfinished == 1
            place.wait_for_runs(timeout=5)
            assert place.site.desk.unfinished == 0
        assert (model.asked, model.stopped) == (2, 2)


def test_a_run_that_fails_is_an_error_in_openai_s_form_streamed_or_not(home: Path) -> None:
    with serve_osler(
        home, model=FixedModel(gate=AwaitableEvent()), serve={"run_seconds": 0.1}
    ) as place:
        url = f"{place.url}/v1/chat/completions"
        body = {"model": "osler/rag", "messages": QUESTION}
        reply = httpx2.post(url, json=body)
        assert reply.status_code == 504
        assert reply.json()["error"]["code"] == "timeout"
        streamed = httpx2.post(url, json={**body, "stream": True}).text
        last = [line for line in streamed.splitlines() if line.startswith("data: ")][-1]
        assert json.loads(last[6:])["error"]["code"] == "timeout"


async def test_an_async_client_gets_many_answers_at_once(place: ServedOsler) -> None:
    async with openai.AsyncOpenAI(base_url=f"{place.url}/v1", api_key="none") as client:
        said = await asyncio.gather(
            *(client.chat.completions.create(model="osler/rag", messages=QUESTION) for _ in "12345")
        )
    assert {reply.choices[0].message.content for reply in said} == {
        "Adrenaline is given first. [1]"
    }


def test_title_in_the_source_list_is_escaped() -> None:
    from osler.text import escape_markdown

    assert (
        escape_markdown("![x](http://evil/?q=1)\n<b>") == r"\!\[x\]\(http://evil/?q=1\) &lt;b&gt;"
    )
