"""OpenAI's Responses, tried with OpenAI's own client on a server that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import FixedModel, ServedOsler, serve_osler
from waiting import AwaitableEvent

openai = pytest.importorskip("openai")

QUESTION = "Which drug is given first, into the outer thigh, at once?"


@pytest.fixture(scope="module")
def client(place: ServedOsler) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{place.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_a_response_carries_flat_citations(client: Any) -> None:
    reply = client.responses.create(model="osler/rag", input=QUESTION, instructions="Be brief.")
    assert reply.status == "completed"
    assert reply.output_text.startswith("Adrenaline is given first. [1]")
    (note,) = reply.output[0].content[0].annotations
    assert note.type == "url_citation"
    assert reply.output_text[note.start_index : note.end_index] == "Adrenaline is given first."
    told = reply.model_dump()["osler"]
    assert told["grounding"] == "grounded"
    assert told["unread"] == ["system messages were not read"]
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens


def test_a_stream_gives_the_same_response_event_by_event(client: Any) -> None:
    whole = client.responses.create(model="osler/rag", input=QUESTION)
    events = list(client.responses.create(model="osler/rag", input=QUESTION, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == [
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    said = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert said == whole.output_text == events[-1].response.output_text
    (added,) = [e for e in events if e.type == "response.output_text.annotation.added"]
    fixed = whole.output[0].content[0].annotations[0]
    assert added.annotation.model_dump() == fixed.model_dump()


def test_the_client_s_own_accumulator_of_streams_reads_ours(client: Any) -> None:
    with client.responses.stream(model="osler/rag", input=QUESTION) as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_text.startswith("Adrenaline")


def test_a_conversation_is_read_for_its_subject(client: Any) -> None:
    turns = [
        {"role": "user", "content": "How is anaphylaxis recognised?"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "By swelling."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "And what is given first?"}]},
    ]
    told = client.responses.create(model="osler/rag", input=turns).model_dump()["osler"]
    assert "anaphylaxis" in told["standalone"]


def test_first_words_to_somebody_in_danger_come_first(client: Any) -> None:
    asked = "I took 40 paracetamol tablets and I want to die. What now?"
    whole = client.responses.create(model="osler/rag", input=asked)
    events = list(client.responses.create(model="osler/rag", input=asked, stream=True))
    first = next(e for e in events if e.type == "response.output_text.delta")
    assert whole.output_text.startswith(first.delta)
    assert first.delta.startswith("**")
    for note in whole.output[0].content[0].annotations:
        assert "Adrenaline" in whole.output_text[note.start_index : note.end_index]


@pytest.mark.parametrize(
    "changed",
    [
        {"tools": [{"type": "web_search"}]},
        {"previous_response_id": "resp_1"},
        {"background": True},
        {"input": []},
        {"text": {"format": {"type": "json_object"}}},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
    ],
)
def test_what_cannot_be_honoured_is_refused(client: Any, changed: dict[str, Any]) -> None:
    with pytest.raises(openai.UnprocessableEntityError) as failed:
        client.responses.create(**{"model": "osler/rag", "input": QUESTION, **changed})
    assert failed.value.type == "invalid_request_error"


def test_a_run_that_fails_ends_the_stream_with_response_failed(tmp_path: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with (
        serve_osler(tmp_path, model=model, serve={"run_seconds": 0.05}) as place,
        openai.OpenAI(base_url=f"{place.url}/v1", api_key="none", max_retries=0) as client,
    ):
        events = list(client.responses.create(model="osler/rag", input=QUESTION, stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.code == "server_error"
