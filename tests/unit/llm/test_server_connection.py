"""Every way in which a server can fail has its outcome, against real servers on loopback."""

import asyncio
import gzip
import json
import socket
import ssl
from email.utils import formatdate
from pathlib import Path
from random import Random
from typing import Any

import pytest
from loopback_servers import (
    EVENTS,
    HOLD,
    FakeTime,
    LoopbackReply,
    LoopbackRequest,
    LoopbackServer,
    answer_chats_only,
    chat_chunk,
    chat_reply,
    encode_event,
    json_reply,
    reply_head,
    serve_loopback,
    stream_reply,
    token_entry,
)

from osler.errors import BadConfig, ModelError, ModelUnreachable
from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.recording import wrap_model
from osler.llm.recording.tape import Tape
from osler.llm.server.client import OpenAIModel, connect_server
from osler.llm.server.connection import (
    Endpoint,
    KeyRefused,
    RequestRefused,
    ServerBusy,
    ServerClient,
)
from osler.llm.server.dialects import ServerProfile
from osler.llm.server.endpoint import retry_after

KEY = "sk-do-not-tell"
QUERY = [Message("user", "What is the first-line treatment of anaphylaxis?")]
TLS = Path(__file__).parents[2] / "fixtures" / "tls"
WHOLE = json_reply(chat_reply("whole"))


NO_API = "check model.url: an API's address ends in /v1 as a rule"


@pytest.mark.parametrize(
    ("status", "body", "told", "fix"),
    [
        (404, b"404 page not found", "answered 404: 404 page not found", NO_API),
        (
            404,
            b"<!DOCTYPE HTML>\n<html><body>Lost</body></html>",
            "answered 404: a web page",
            NO_API,
        ),
        (501, b"<html lang=en><body>Lost</body></html>", "answered 501: a web page", NO_API),
        (
            404,
            b'{"error": "no model m"}',
            "answered 404: no model m",
            "set model.name to a model that the server has",
        ),
        (
            400,
            b'{"error": {"message": "maximum context length is 4096 tokens"}}',
            "answered 400: maximum context length is 4096 tokens",
            "ask with fewer passages (strategy.k), or give the model a larger context",
        ),
    ],
)
async def test_a_refusal_names_what_is_wrong(status: int, body: bytes, told: str, fix: str) -> None:
    async with serve_loopback(lambda _: json_reply(body, status)) as place:
        with pytest.raises(RequestRefused) as refused:
            await model_at(place).complete(QUERY, Sampling())
    assert told in refused.value.message
    assert refused.value.fix.startswith(fix)


def model_at(place: LoopbackServer, time: FakeTime | None = None, **more: Any) -> OpenAIModel:
    """A model of a kind that is not asked, so that the first request is the test's own."""
    endpoint = Endpoint(base_url=place.url, model="m", **{"api_key": KEY, "timeout_s": 5.0, **more})
    return OpenAIModel(
        ServerClient(endpoint, rng=Random(0), clock=(time or FakeTime()).clock), ServerProfile()
    )


async def fails(
    kind: type[ModelError],
    *answers: LoopbackReply | bytes,
    time: FakeTime | None = None,
    **more: Any,
) -> ModelError:
    """The error that a completion ends in: it names the address, and never tells the key."""
    async with serve_loopback(answer_chats_only(*answers)) as place:
        with pytest.raises(kind) as caught:
            await model_at(place, time, **more).complete(QUERY, Sampling(max_tokens=20))
    assert KEY not in f"{caught.value!r} {caught.value}"
    assert f"{place.url}/chat/completions" in caught.value.message + caught.value.fix or (
        place.url in caught.value.fix
    )
    return caught.value


async def answers(
    *sent: LoopbackReply | bytes, time: FakeTime | None = None, **more: Any
) -> Completion:
    async with serve_loopback(answer_chats_only(*sent)) as place:
        return await model_at(place, time, **more).complete(QUERY, Sampling(max_tokens=20))


# No connection


async def test_a_refused_connection_is_tried_again_and_says_where_to_look() -> None:
    time = FakeTime()
    async with serve_loopback(answer_chats_only(HOLD)) as place:
        pass
    with pytest.raises(ModelUnreachable, match=r"no connection.*4 of 4 tries") as caught:
        await model_at(place, time).complete(QUERY, Sampling())
    assert place.url in caught.value.fix
    assert len(time.naps) == 3
    assert not isinstance(caught.value, ServerBusy)


async def test_a_server_that_is_not_there_at_the_start_is_told_at_once() -> None:
    time = FakeTime()
    async with serve_loopback(answer_chats_only(HOLD)) as place:
        pass
    with pytest.raises(ModelUnreachable, match="no connection"):
        await connect_server(Endpoint(base_url=place.url, model="m"), clock=time.clock)
    assert time.naps == []


async def test_a_host_that_nobody_knows_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    time = FakeTime()
    api = ServerClient(Endpoint(base_url="http://no-such.invalid/v1", model="m"), clock=time.clock)
    with pytest.raises(ModelUnreachable, match=r"http://no-such.invalid/v1.*no such host") as e:
        await api.post("/x", {})
    assert "model.url" in e.value.fix
    assert time.naps == []


async def test_tls_to_a_plain_http_server_names_the_http_address() -> None:
    async with serve_loopback(answer_chats_only(WHOLE)) as place:
        secure = LoopbackServer(place.answer, url=place.url.replace("http:", "https:"))
        with pytest.raises(ModelUnreachable, match=r"https://.*TLS failed") as caught:
            await model_at(secure).complete(QUERY, Sampling())
    assert "http://" in caught.value.fix


def certificate(name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{name}.pem", TLS / "key.pem")
    return context


@pytest.mark.parametrize(
    ("name", "trusted", "wrong"),
    [("good", False, "self-signed certificate"), ("expired", True, "certificate has expired")],
)
async def test_a_certificate_that_cannot_be_trusted_is_refused(
    name: str, trusted: bool, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(TLS / f"{name}.pem"))
    async with serve_loopback(answer_chats_only(WHOLE), tls=certificate(name)) as place:
        with pytest.raises(ModelUnreachable, match=wrong) as caught:
            await model_at(place).complete(QUERY, Sampling())
    assert "SSL_CERT_FILE" in caught.value.fix
    assert place.asked == []


async def test_the_fix_for_a_self_signed_certificate_mends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "good.pem"))
    async with serve_loopback(answer_chats_only(WHOLE), tls=certificate("good")) as place:
        assert (await model_at(place).complete(QUERY, Sampling())).text == "whole"


# Stalls and ends


async def test_a_server_that_never_answers_is_unreachable_in_time() -> None:
    error = await fails(ModelUnreachable, HOLD, timeout_s=0.2)
    assert "no reply within 0.2 s" in error.message


async def test_a_server_that_never_says_what_it_is_is_given_up_long_before_a_slow_reply() -> None:
    async with serve_loopback(lambda _: HOLD) as place:
        endpoint = Endpoint(base_url=place.url, model="m", timeout_s=300.0, describe_s=0.1)
        with pytest.raises(ModelUnreachable, match=r"/v1/models: no reply within 0\.1 s; check"):
            await connect_server(endpoint)
    assert len(place.asked) == 1


async def test_a_prompt_may_take_longer_to_read_than_a_reply_may_pause() -> None:
    """Before the first word there is only the deadline."""
    for begun in (b"", reply_head(kind=EVENTS)):
        error = await fails(
            ModelUnreachable, LoopbackReply(begun, "hold"), stall_s=0.05, timeout_s=0.3
        )
        assert "no reply within 0.3 s" in error.message


async def test_stalled_stream_is_unreachable_and_not_retried() -> None:
    half = reply_head(kind=EVENTS) + encode_event(chat_chunk("half"))
    async with serve_loopback(answer_chats_only(LoopbackReply(half, "hold"))) as place:
        with pytest.raises(ModelUnreachable, match="stalled"):
            await model_at(place, stall_s=0.1, timeout_s=60.0).complete(QUERY, Sampling())
    assert len(place.asked) == 1


async def test_dripping_reply_is_ended_at_the_deadline() -> None:
    error = await fails(ModelUnreachable, LoopbackReply(reply_head() + b"[", "drip"), timeout_s=0.3)
    assert "no reply within 0.3 s" in error.message


async def test_comments_in_a_stream_keep_it_alive_but_not_past_its_deadline() -> None:
    pings = LoopbackReply(reply_head(kind=EVENTS), "drip", b": PROCESSING\n\n")
    error = await fails(ModelUnreachable, pings, timeout_s=0.3, stall_s=0.2)
    assert "no reply within 0.3 s" in error.message


async def test_an_endless_reply_is_cut_where_its_tokens_must_have_ended() -> None:
    endless = LoopbackReply(
        reply_head(kind=EVENTS), "drip", encode_event(chat_chunk("again and again "))
    )
    async with serve_loopback(answer_chats_only(endless)) as place:
        reply = await model_at(place).complete(QUERY, Sampling(max_tokens=2))
        await asyncio.wait_for(place.left.wait(), 1)
    assert (len(reply.text), reply.finish) == (64, "length")


async def test_an_endless_reply_is_cut_by_its_tokens_where_they_are_told() -> None:
    one = encode_event(chat_chunk("a", logprobs={"content": [token_entry("a")]}))
    reply = await answers(LoopbackReply(reply_head(kind=EVENTS), "drip", one))
    assert (reply.text, reply.finish) == ("a" * 41, "length")
    assert len(reply.tokens) == 41


async def test_an_endless_reply_that_is_not_streamed_is_cut_too() -> None:
    reply = await answers(json_reply(chat_reply("x" * 100_000)))
    assert (len(reply.text), reply.finish) == (640, "length")


async def test_a_reply_that_repeats_itself_ends_with_its_tokens_and_counts_as_cut() -> None:
    looped = stream_reply([*[chat_chunk("the ")] * 20, chat_chunk(finish="length")])
    reply = await answers(looped)
    assert (reply.text, reply.finish) == ("the " * 20, "length")


@pytest.mark.parametrize(
    "empty", [json_reply(chat_reply("")), stream_reply([chat_chunk(""), chat_chunk(finish="stop")])]
)
async def test_an_empty_reply_is_a_reply_of_no_words(empty: bytes) -> None:
    reply = await answers(empty)
    assert (reply.text, reply.finish, reply.tokens) == ("", "stop", ())


# Statuses


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_names_the_setting_and_not_the_key(status: int) -> None:
    error = await fails(KeyRefused, json_reply({"error": f"bad key {KEY}"}, status))
    assert "key refused" in error.message
    assert "OPENAI_API_KEY" in error.fix


async def test_refused_key_during_probing_is_an_error_and_no_missing_capability() -> None:
    async with serve_loopback(lambda asked: json_reply({}, 401)) as place:
        with pytest.raises(KeyRefused):
            await connect_server(Endpoint(base_url=place.url, model="m", api_key=KEY))


@pytest.mark.parametrize("listed", [["a", "b"], [], [f"model-{n}" for n in range(30)]])
async def test_a_model_that_is_not_there_is_told_with_those_that_are(listed: list[str]) -> None:
    def answer(asked: LoopbackRequest) -> bytes:
        if asked.path == "/v1/models":
            return json_reply({"data": [{"id": name} for name in listed]})
        return json_reply({"error": {"message": "no model m"}}, 404)

    async with serve_loopback(answer) as place:
        with pytest.raises(ModelError, match="404: no model m") as caught:
            await model_at(place).complete(QUERY, Sampling())
    assert all(name in caught.value.message for name in listed[:10])
    assert ("20 more" in caught.value.message) == (len(listed) == 30)
    assert "model.name" in caught.value.fix


@pytest.mark.parametrize("asks", ["7", formatdate(7, usegmt=True)])
async def test_a_server_that_asks_to_wait_is_waited_for(asks: str) -> None:
    time, busy = FakeTime(), json_reply({}, 429, more=f"Retry-After: {asks}\r\n")
    assert (await answers(busy, WHOLE, time=time, timeout_s=30.0)).text == "whole"
    assert time.naps == [7.0]


def test_waits_are_read_from_numbers_and_dates_and_nothing_else() -> None:
    assert retry_after("12", now=5) == 12
    assert retry_after(formatdate(65, usegmt=True), now=5) == 60
    assert retry_after(formatdate(1, usegmt=True), now=5) == 0
    for odd in ("", "soon", "-3", "1.5", "٣", "9e9", "Sat, 99 Nov 2026 09:00:00 GMT"):
        assert retry_after(odd, now=5) is None


async def test_backoff_without_retry_after_is_exponential_with_jitter() -> None:
    """Full jitter: anywhere from nought to a bound that doubles, up to half a minute."""
    time = FakeTime()
    error = await fails(
        ServerBusy, json_reply({}, 429), time=time, retries=9, timeout_s=1e4, max_concurrency=1
    )
    assert "429: {}, 10 of 10 tries" in error.message
    assert len(time.naps) == 9
    for attempt, nap in enumerate(time.naps):
        assert 0 < nap < min(30, 2**attempt)
    assert any(nap < 0.5 * 2**attempt for attempt, nap in enumerate(time.naps))


async def test_a_server_that_asks_for_an_hour_is_not_waited_for() -> None:
    time = FakeTime()
    await fails(
        ServerBusy, json_reply({}, 429, more="Retry-After: 3600\r\n"), time=time, timeout_s=1e5
    )
    assert time.naps == []


async def test_no_wait_goes_past_the_deadline() -> None:
    time = FakeTime()
    await fails(
        ServerBusy, json_reply({}, 503, more="Retry-After: 3\r\n"), time=time, timeout_s=8.0
    )
    assert time.naps == [3.0, 3.0]


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
async def test_a_broken_server_is_tried_again_and_then_given_up(status: int) -> None:
    time = FakeTime()
    words = json_reply({"error": {"message": f"overloaded, {KEY}"}}, status)
    error = await fails(ServerBusy, words, time=time, retries=2)
    assert f"answers {status}: overloaded, [key], 3 of 3 tries" in error.message
    assert len(time.naps) == 2


@pytest.mark.parametrize("status", [400, 402, 404, 409, 413, 422, 501])
async def test_client_error_status_is_not_retried(status: int) -> None:
    time = FakeTime()
    error = await fails(RequestRefused, json_reply({"detail": "no, not that"}, status), time=time)
    assert f"answered {status}: no, not that" in error.message
    assert time.naps == []


async def test_a_redirect_is_told_and_not_followed() -> None:
    async with serve_loopback(answer_chats_only(WHOLE)) as other:
        to = f"Location: {other.url}/elsewhere?key={KEY}\r\n"
        error = await fails(RequestRefused, json_reply({}, 307, more=to))
        assert f"307, a redirect to {other.url}/elsewhere, which is not followed" in error.message
        assert other.asked == []


async def test_redirect_without_a_valid_target_is_reported() -> None:
    error = await fails(RequestRefused, json_reply({}, 302, more="Location: http://h:x/\r\n"))
    assert "a redirect to an address that is none" in error.message


# Hanging up


async def test_a_server_that_hangs_up_is_tried_again() -> None:
    half_stream = reply_head(kind=EVENTS) + encode_event(chat_chunk("ha"))
    for broken in (b"", WHOLE[:-5], half_stream):
        assert (await answers(broken, WHOLE)).text == "whole"
    assert "hung up" in (await fails(ServerBusy, WHOLE[:-5])).message
    assert "broke off" in (await fails(ServerBusy, half_stream)).message


async def test_a_gateway_that_fails_in_mid_stream_is_tried_again() -> None:
    trouble = encode_event({"error": {"code": 502, "message": "Bad gateway"}, "choices": []})
    cut = reply_head(kind=EVENTS) + encode_event(chat_chunk("half")) + trouble
    assert (await answers(cut, WHOLE)).text == "whole"
    assert "502: Bad gateway" in (await fails(ServerBusy, cut)).message


async def test_an_error_in_mid_stream_that_no_other_try_mends_is_told() -> None:
    cut = (
        reply_head(kind=EVENTS)
        + encode_event(chat_chunk("half"))
        + encode_event({"error": "out of memory"})
    )
    assert "out of memory" in (await fails(RequestRefused, cut)).message


# Malformed replies


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (json_reply(b"<html>", kind="text/html"), "text/html, not JSON: it may be a proxy"),
        (json_reply(b"{}", kind=""), "no type, not JSON"),
        (json_reply(b'{"choices": [{"mess'), "broken JSON"),
        (json_reply(b"\xff\xfe"), "broken JSON"),
        (json_reply(b"[" * 200_000), "broken JSON"),
        (json_reply([1]), "a JSON object"),
        (json_reply({"error": {"message": "overloaded"}}), "overloaded"),
        (json_reply({"choices": []}), "no choices"),
        (json_reply({"choices": [{"text": "x"}]}), "no message"),
        (json_reply(chat_reply(None)), "content is not text but None"),
        (json_reply(chat_reply(["x"])), "content is not text but"),
        (json_reply(b"not gzip", more="Content-Encoding: gzip\r\n"), "cannot be decoded"),
        (reply_head(kind=EVENTS), "the stream had no reply in it"),
        (reply_head(kind=EVENTS) + b"data: [DONE]\n\n", "the stream had no reply in it"),
        (reply_head(kind=EVENTS) + b"\x00\xff rubbish\n\n", "the stream had no reply in it"),
        (reply_head(kind=EVENTS) + b'data: {"choi\n\n', "broken JSON"),
        (stream_reply([[1]]), "an event is not a JSON object"),
        (stream_reply([{"choices": {"0": 1}}]), "choices are not a list"),
        (stream_reply([{"choices": [{"text": "x"}]}]), "no delta"),
        (stream_reply([chat_chunk(3)]), "content is not text but 3"),
    ],
)
async def test_a_reply_that_cannot_be_right_is_an_error_that_says_why(
    answer: bytes, wrong: str
) -> None:
    assert wrong in (await fails(ModelError, answer)).message


async def test_lone_surrogate_in_a_reply_is_replaced() -> None:
    told = b'{"choices": [{"message": {"content": "a\\ud800b", "reasoning_content": "\\udfff"}}]}'
    reply = await answers(json_reply(told))
    assert (reply.text, reply.thinking) == ("a\ufffdb", "\ufffd")


async def test_character_split_between_stream_chunks_is_joined() -> None:
    halves = [
        b'{"choices": [{"delta": {"content": "a\\ud83d"}}]}',
        b'{"choices": [{"delta": {"content": "\\ude00"}}]}',
    ]
    pieces = [*halves, chat_chunk(None, "stop")]
    assert (await answers(stream_reply(pieces))).text == "a😀"


async def test_a_reply_is_read_no_further_than_its_bound() -> None:
    error = await fails(ModelError, json_reply(chat_reply("x" * 10_000)), max_bytes=5_000)
    assert "longer than 5,000 bytes" in error.message
    error = await fails(ModelError, stream_reply([{"pad": "x" * 600}] * 10), max_bytes=5_000)
    assert "longer than 5,000 bytes" in error.message


async def test_decompression_bomb_is_not_unpacked_in_memory() -> None:
    """64 MiB of blanks come as 64 kB, and are not kept past the bound."""
    packed = gzip.compress(b" " * (64 * 1024 * 1024))
    assert len(packed) < 100_000
    bomb = json_reply(packed, more="Content-Encoding: gzip\r\n")
    error = await fails(ModelError, bomb, max_bytes=2 * 1024 * 1024)
    assert "longer than 2,097,152 bytes" in error.message


async def test_endless_error_body_is_read_up_to_its_bound() -> None:
    error = await fails(RequestRefused, json_reply(b"x" * 1_000_000, 400))
    assert "(a long page)" in error.message


# Between calls


async def test_cancelled_call_closes_its_connection_and_leaves_no_task() -> None:
    for answer in (
        HOLD,
        LoopbackReply(reply_head(kind=EVENTS) + encode_event(chat_chunk("half")), "hold"),
    ):
        async with serve_loopback(answer_chats_only(answer)) as place:
            before = asyncio.all_tasks()
            call = asyncio.create_task(model_at(place).complete(QUERY, Sampling()))
            await place.arrived.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await asyncio.wait_for(place.left.wait(), 1)
            await asyncio.gather(*place.tasks)
            assert asyncio.all_tasks() <= before


async def test_max_concurrency_bounds_requests_and_queueing_does_not_count_to_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two are held by the server until their time is over; 22 wait as long for their turn."""
    both, asked = asyncio.Event(), 0

    def answer(_: LoopbackRequest) -> LoopbackReply | bytes:
        nonlocal asked
        asked += 1
        if asked == 2:
            both.set()
        return HOLD if asked <= 2 else WHOLE

    loop = asyncio.get_running_loop()
    clock = loop.time
    async with serve_loopback(answer) as place:
        model = model_at(place, max_concurrency=2, timeout_s=1_000.0)
        calls = [asyncio.create_task(model.complete(QUERY, Sampling())) for _ in range(24)]
        await asyncio.wait_for(both.wait(), 20)
        assert place.at_once == 2
        monkeypatch.setattr(loop, "time", lambda: clock() + 1_001.0)
        done = await asyncio.gather(*calls, return_exceptions=True)
    assert place.most_at_once == 2
    late = [reply for reply in done if isinstance(reply, ModelUnreachable)]
    assert ["no reply within 1000 s" in str(error) for error in late] == [True, True]
    assert [reply.text for reply in done if isinstance(reply, Completion)] == ["whole"] * 22


def test_one_model_serves_several_event_loops() -> None:
    """Three calls and one place in each loop, so that two of them wait in that loop."""
    endpoint = Endpoint(base_url="http://127.0.0.1:9/v1", model="m", max_concurrency=1)
    model = OpenAIModel(ServerClient(endpoint), ServerProfile())

    async def thrice() -> tuple[list[str], int, int]:
        async with serve_loopback(answer_chats_only(WHOLE)) as place:
            object.__setattr__(endpoint, "base_url", place.url)
            calls = (model.complete(QUERY, Sampling()) for _ in range(3))
            said = [reply.text for reply in await asyncio.gather(*calls)]
            return said, len(place.asked), place.most_at_once

    for _ in range(2):
        assert asyncio.run(thrice()) == (["whole"] * 3, 3, 1)


async def test_server_client_posts_to_other_endpoints() -> None:
    def answer(asked: LoopbackRequest) -> bytes:
        return json_reply({"data": [{"embedding": [1.0]}]} if asked.body == {"input": "x"} else [1])

    async with serve_loopback(answer) as place:
        api = ServerClient(Endpoint(base_url=place.url, model="m"))
        assert await api.post("/embeddings", {"input": "x"}) == {"data": [{"embedding": [1.0]}]}
        assert place.asked[0].path == "/v1/embeddings"
        with pytest.raises(ModelError, match="/embeddings did not answer a JSON object"):
            await api.post("/embeddings", {"input": "y"})


async def test_fix_names_the_settings_section_of_its_server() -> None:
    async with serve_loopback(lambda _: json_reply({}, 401)) as place:
        api = ServerClient(Endpoint(base_url=place.url, model="m", section="embedder"))
        with pytest.raises(KeyRefused) as caught:
            await api.post("/embeddings", {"input": "x"})
    assert "embedder.key_file" in caught.value.fix


# The key


async def test_the_key_is_sent_and_in_no_repr() -> None:
    async with serve_loopback(answer_chats_only(WHOLE)) as place:
        model = model_at(place)
        await model.complete(QUERY, Sampling())
    assert {asked.key for asked in place.asked} == {f"Bearer {KEY}"}
    parts = (model, model._api, model._api.endpoint, model.server, model.name, model.__dict__)
    assert KEY not in "".join(map(repr, parts))
    assert model.name == f"m@{place.url.split('/')[2]}"


async def test_a_key_that_a_server_quotes_is_not_told() -> None:
    error = await fails(ModelError, json_reply({"error": {"message": f"{'x' * 290} {KEY}"}}, 400))
    assert "sk-" not in error.message.replace("[key]", "")
    error = await fails(ModelError, json_reply({"choices": [], "note": KEY}))
    assert "[key]" in error.message


async def test_a_word_that_serves_as_a_key_stays_in_what_is_said() -> None:
    """Servers on this machine take "local" and "test"."""
    reply = await answers(json_reply(chat_reply("No blood test is needed.")), api_key="test")
    assert reply.text == "No blood test is needed."


@pytest.mark.parametrize("split", [False, True])
async def test_a_key_in_a_reply_s_words_does_not_reach_the_run(split: bool) -> None:
    parts = [KEY[:4], KEY[4:]] if split else [KEY]
    entries = [{"content": [token_entry(part)]} for part in parts]
    pieces = [chat_chunk(p, logprobs=e) for p, e in zip(parts, entries, strict=True)]
    reply = await answers(stream_reply([chat_chunk("Key: "), *pieces, chat_chunk(finish="stop")]))
    assert reply.text == "Key: [key]"
    assert KEY not in repr(reply)


async def test_the_key_is_on_no_tape() -> None:
    """Nor in what a run writes down of a model, whatever the server says."""
    told = chat_reply(
        f"Your key is {KEY}", [token_entry("Your key is "), token_entry(KEY)], note=KEY
    )
    async with serve_loopback(answer_chats_only(json_reply(told))) as place:
        model = model_at(place)
        tape = Tape()
        await wrap_model(model, tape).complete(QUERY, Sampling())
    assert len(tape.entries) == 1
    assert KEY not in "".join(tape.to_lines())


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://h/v1", "http://", "http://u:p@h/v1", "http://h:x/v1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Endpoint(base_url=url, model="m")
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-\n1", "sk-é", "sk 1"])
def test_key_with_characters_no_header_allows_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(BadConfig) as caught:
        Endpoint(base_url="http://h/v1", model="m", api_key=key)
    assert key not in str(caught.value)


def test_a_key_with_a_quote_is_taken_out_of_json_too() -> None:
    key = 'sk-long"\\1'
    api = ServerClient(Endpoint(base_url="http://h/v1", model="m", api_key=key))
    assert key not in json.loads(api.without_key(json.dumps({"e": f"key {key}"})))["e"]
