"""Calls: cached, bounded, retried as the server asks, and silent where they must be."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
from loopback import (
    START,
    NamedHostRequest,
    NetworkFactory,
    SleepingClock,
    redirect_reply,
    serve_named_hosts,
    whole_reply,
)

from osler.errors import SourceUnavailable
from osler.sources.online.cache import CachedReply, ReplyCache
from osler.sources.online.client import (
    HttpCall,
    Offline,
    OnlineClient,
    ReplyLimits,
    ServiceRefused,
    TokenBucket,
)
from osler.types import Locator, Passage


def ok(asked: NamedHostRequest) -> bytes:
    return whole_reply({"path": asked.path})


async def test_a_reply_is_fetched_once_and_then_comes_from_the_cache(lines: NetworkFactory) -> None:
    async with serve_named_hosts(ok) as server:
        call = HttpCall(server.url_of("en.wiki.test", "/a"), {"q": "x"})
        first, second = await lines().get(call), await lines().get(call)
    assert first == second
    assert len(server.asked) == 1
    assert server.asked[0].headers["user-agent"].startswith("osler/")


async def test_an_old_reply_is_fetched_again_but_offline_it_does(lines: NetworkFactory) -> None:
    async with serve_named_hosts(ok) as server:
        call = HttpCall(server.url_of("en.wiki.test"))
        await lines().get(call)
        lines.time.now += 31 * 86_400
        assert (await lines(offline=True).get(call)).at == START
        assert (await lines().get(call)).at > START
    assert len(server.asked) == 2


async def test_offline_a_miss_is_an_error_and_nobody_is_called(lines: NetworkFactory) -> None:
    async with serve_named_hosts(ok) as server:
        with pytest.raises(Offline, match="never fetched"):
            await lines(offline=True).get(HttpCall(server.url_of("en.wiki.test")))
    assert server.asked == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_busy_server_is_asked_again_and_then_left(
    status: int, lines: NetworkFactory
) -> None:
    async with serve_named_hosts(lambda asked: whole_reply({}, status)) as server:
        with pytest.raises(ServiceRefused, match=f"answers {status}, 4 of 4 tries"):
            await lines().get(HttpCall(server.url_of("en.wiki.test")))
    assert len(server.asked) == 4
    assert len(lines.time.slept) == 3


async def test_retry_after_is_honoured_in_seconds_and_as_a_date(lines: NetworkFactory) -> None:
    moment = format_datetime(datetime.fromtimestamp(START + 7 + 30, UTC), usegmt=True)
    replies = [
        whole_reply({}, 429, more="Retry-After: 7\r\n"),
        whole_reply({}, 503, more=f"Retry-After: {moment}\r\n"),
        whole_reply({"ok": 1}),
    ]
    async with serve_named_hosts(lambda asked: replies.pop(0)) as server:
        await lines().get(HttpCall(server.url_of("en.wiki.test")))
    assert lines.time.slept == [7.0, 30.0]


async def test_retry_after_beyond_the_longest_wait_is_given_up(lines: NetworkFactory) -> None:
    async with serve_named_hosts(
        lambda asked: whole_reply({}, 429, more="Retry-After: 3600\r\n")
    ) as server:
        with pytest.raises(SourceUnavailable, match="answers 429, 1 of 4"):
            await lines().get(HttpCall(server.url_of("en.wiki.test")))
    assert lines.time.slept == []


async def test_silent_server_times_out(lines: NetworkFactory) -> None:
    async with serve_named_hosts(lambda asked: None) as server:
        with pytest.raises(SourceUnavailable, match="no whole reply within"):
            await lines(bounds=ReplyLimits(seconds=0.2)).get(
                HttpCall(server.url_of("en.wiki.test"))
            )


async def test_broken_connection_is_retried(lines: NetworkFactory) -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    replies = [cut, b"", whole_reply({"ok": 1})]
    async with serve_named_hosts(lambda asked: replies.pop(0)) as server:
        reply = await lines().get(HttpCall(server.url_of("en.wiki.test")))
    assert reply.body == b'{"ok": 1}'


async def test_refused_connection_is_reported_at_once(lines: NetworkFactory) -> None:
    async with serve_named_hosts(ok) as server:
        pass
    with pytest.raises(SourceUnavailable, match="no connection"):
        await lines().get(HttpCall(server.url_of("en.wiki.test")))


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (whole_reply({}, 404), "answers 404"),
        (whole_reply({}, 403), "answers 403"),
        (whole_reply("<html>", kind="text/html"), "sends text/html, not application/json"),
        (whole_reply("x" * 2_000), "larger than 1,000 bytes"),
        (
            whole_reply(gzip.compress(b"0" * 10**7), more="Content-Encoding: gzip\r\n"),
            "larger than",
        ),
        (whole_reply(b"not gzip", more="Content-Encoding: gzip\r\n"), "cannot be unpacked"),
        (whole_reply(b"x", more="Content-Encoding: br\r\n"), "packed with br"),
    ],
)
async def test_bad_reply_is_reported_with_its_reason(
    reply: bytes, why: str, lines: NetworkFactory
) -> None:
    async with serve_named_hosts(lambda asked: reply) as server:
        with pytest.raises(SourceUnavailable, match=why):
            await lines(bounds=ReplyLimits(bytes=1_000)).get(
                HttpCall(server.url_of("en.wiki.test"))
            )
        with pytest.raises(Offline):
            await lines(offline=True).get(HttpCall(server.url_of("en.wiki.test")))


async def test_compressed_reply_is_decompressed(lines: NetworkFactory) -> None:
    packed = whole_reply(gzip.compress(b'{"ok": 1}'), more="Content-Encoding: gzip\r\n")
    async with serve_named_hosts(lambda asked: packed) as server:
        assert (await lines().get(HttpCall(server.url_of("en.wiki.test")))).body == b'{"ok": 1}'


async def test_a_redirect_is_followed_without_the_key_of_the_other_host(
    lines: NetworkFactory,
) -> None:
    def answer(asked: NamedHostRequest) -> bytes:
        if asked.host == "ncbi.test":
            return redirect_reply(server.url_of("searx.test", "/there"))
        return whole_reply({"params": asked.params, "key": asked.headers.get("x-key", "")})

    async with serve_named_hosts(answer) as server:
        call = HttpCall(server.url_of("ncbi.test"), {"q": "1"}, {"api_key": "s3"}, {"x-key": "s3"})
        reply = await lines().get(call)
    assert reply.body == b'{"params": {}, "key": ""}'
    assert server.asked[0].params == {"q": "1", "api_key": "s3"}
    assert server.asked[0].headers["x-key"] == "s3"


async def test_api_key_is_in_no_message_cache_or_repr(lines: NetworkFactory) -> None:
    async with serve_named_hosts(ok) as server:
        call = HttpCall(server.url_of("ncbi.test"), {}, {"api_key": "s3cret"}, {"x": "s3cret"})
        reply = await lines().get(call)
    assert "s3cret" not in repr(call) + repr(reply)
    assert b"s3cret" not in b"".join(p.read_bytes() for p in lines.folder.iterdir())
    with pytest.raises(SourceUnavailable) as caught:
        await lines(cache=None).get(call)
    assert "s3cret" not in str(caught.value)


async def test_redirect_loop_is_ended(lines: NetworkFactory) -> None:
    async with serve_named_hosts(lambda asked: redirect_reply("/again")) as server:
        with pytest.raises(SourceUnavailable, match="more than 5 redirects"):
            await lines().get(HttpCall(server.url_of("en.wiki.test")))
    assert len(server.asked) == 6


async def test_token_bucket_bounds_the_calls_in_any_second() -> None:
    time = SleepingClock()
    bucket = TokenBucket(3, sleep=time.sleep, clock=time.clock)
    passed = []
    for _ in range(10):
        await bucket.take_token()
        passed.append(time.now)
    assert all(later - first >= 0.999 for first, later in zip(passed, passed[3:], strict=False))
    assert passed[-1] - passed[0] == pytest.approx(3.0)


async def test_a_clock_that_is_set_back_delays_no_call(lines: NetworkFactory) -> None:
    bucket = lines(steady_clock=lambda: 5.0).make_bucket(5.0)
    await bucket.take_token()
    lines.time.now -= 3600
    await bucket.take_token()
    assert lines.time.slept == [pytest.approx(0.2)]


def test_the_cache_stays_within_its_size_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path, largest=100)
    for n in range(4):
        cache.put_reply(f"k{n}", CachedReply("u", "t", b"x" * 30, START + n))
        cache.get_reply("k0", now=START + n + 0.5, days=1)
    cache.put_reply("huge", CachedReply("u", "t", b"x" * 101, START + 9))

    held = [n for n in range(4) if cache.get_reply(f"k{n}", now=START + 9, days=1)]
    assert held == [0, 2, 3]
    assert cache.get_reply("huge", now=START + 9, days=1) is None


def test_a_passage_of_the_web_opens_later_and_the_oldest_give_way(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path, passages=2)
    kept = [
        Passage(f"web:x#{n}", "文本", "web", "T", Locator(url="http://a/", kind="Web page"))
        for n in range(3)
    ]
    assert cache.find_passage("web:x#0") is None
    for n, passage in enumerate(kept):
        cache.keep_passages([passage], now=START + n)

    assert [cache.find_passage(passage.id) for passage in kept] == [None, *kept[1:]]


def test_a_damaged_cache_says_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "web.db").write_bytes(b"not a database" * 100)
    with pytest.raises(SourceUnavailable, match="cache of fetched pages"):
        ReplyCache(tmp_path).get_reply("k", now=START, days=1)


async def test_without_a_cache_every_call_is_a_call(lines: NetworkFactory) -> None:
    async with serve_named_hosts(ok) as server:
        net: OnlineClient = lines(cache=None)
        for _ in range(2):
            await net.get(HttpCall(server.url_of("en.wiki.test")))
    assert len(server.asked) == 2
