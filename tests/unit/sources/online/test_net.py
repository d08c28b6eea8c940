"""Calls: cached, bounded, retried as the server asks, and silent where they must be."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest

from osler.errors import SourceUnavailable
from osler.sources.online.cache import Cache, Reply
from osler.sources.online.client import Answered, Bounds, Bucket, Call, Net, Offline
from osler.testing.loopback import START, Asked, Lines, Time, moved, said, serving
from osler.types import Locator, Passage


def ok(asked: Asked) -> bytes:
    return said({"path": asked.path})


async def test_a_reply_is_fetched_once_and_then_comes_from_the_cache(lines: Lines) -> None:
    async with serving(ok) as server:
        call = Call(server.url("en.wiki.test", "/a"), {"q": "x"})
        first, second = await lines().get(call), await lines().get(call)
    assert first == second
    assert len(server.asked) == 1
    assert server.asked[0].headers["user-agent"].startswith("osler/")


async def test_an_old_reply_is_fetched_again_but_offline_it_does(lines: Lines) -> None:
    async with serving(ok) as server:
        call = Call(server.url("en.wiki.test"))
        await lines().get(call)
        lines.time.now += 31 * 86_400
        assert (await lines(offline=True).get(call)).at == START
        assert (await lines().get(call)).at > START
    assert len(server.asked) == 2


async def test_offline_a_miss_is_an_error_and_nobody_is_called(lines: Lines) -> None:
    async with serving(ok) as server:
        with pytest.raises(Offline, match="never fetched"):
            await lines(offline=True).get(Call(server.url("en.wiki.test")))
    assert server.asked == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_busy_server_is_asked_again_and_then_left(status: int, lines: Lines) -> None:
    async with serving(lambda asked: said({}, status)) as server:
        with pytest.raises(Answered, match=f"answers {status}, 4 of 4 tries"):
            await lines().get(Call(server.url("en.wiki.test")))
    assert len(server.asked) == 4
    assert len(lines.time.slept) == 3


async def test_retry_after_is_honoured_in_seconds_and_as_a_date(lines: Lines) -> None:
    moment = format_datetime(datetime.fromtimestamp(START + 7 + 30, UTC), usegmt=True)
    replies = [
        said({}, 429, more="Retry-After: 7\r\n"),
        said({}, 503, more=f"Retry-After: {moment}\r\n"),
        said({"ok": 1}),
    ]
    async with serving(lambda asked: replies.pop(0)) as server:
        await lines().get(Call(server.url("en.wiki.test")))
    assert lines.time.slept == [7.0, 30.0]


async def test_a_server_that_asks_for_too_much_patience_is_left(lines: Lines) -> None:
    async with serving(lambda asked: said({}, 429, more="Retry-After: 3600\r\n")) as server:
        with pytest.raises(SourceUnavailable, match="answers 429, 1 of 4"):
            await lines().get(Call(server.url("en.wiki.test")))
    assert lines.time.slept == []


async def test_a_server_that_says_nothing_is_given_up(lines: Lines) -> None:
    async with serving(lambda asked: None) as server:
        with pytest.raises(SourceUnavailable, match="no whole reply within"):
            await lines(bounds=Bounds(seconds=0.2)).get(Call(server.url("en.wiki.test")))


async def test_a_line_that_breaks_is_tried_again(lines: Lines) -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    replies = [cut, b"", said({"ok": 1})]
    async with serving(lambda asked: replies.pop(0)) as server:
        reply = await lines().get(Call(server.url("en.wiki.test")))
    assert reply.body == b'{"ok": 1}'


async def test_nobody_there_is_told_at_once(lines: Lines) -> None:
    async with serving(ok) as server:
        pass
    with pytest.raises(SourceUnavailable, match="no connection"):
        await lines().get(Call(server.url("en.wiki.test")))


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (said({}, 404), "answers 404"),
        (said({}, 403), "answers 403"),
        (said("<html>", kind="text/html"), "sends text/html, not application/json"),
        (said("x" * 2_000), "larger than 1,000 bytes"),
        (said(gzip.compress(b"0" * 10**7), more="Content-Encoding: gzip\r\n"), "larger than"),
        (said(b"not gzip", more="Content-Encoding: gzip\r\n"), "cannot be unpacked"),
        (said(b"x", more="Content-Encoding: br\r\n"), "packed with br"),
    ],
)
async def test_what_is_no_good_reply_says_why(reply: bytes, why: str, lines: Lines) -> None:
    async with serving(lambda asked: reply) as server:
        with pytest.raises(SourceUnavailable, match=why):
            await lines(bounds=Bounds(bytes=1_000)).get(Call(server.url("en.wiki.test")))
        with pytest.raises(Offline):
            await lines(offline=True).get(Call(server.url("en.wiki.test")))


async def test_a_packed_reply_is_unpacked(lines: Lines) -> None:
    packed = said(gzip.compress(b'{"ok": 1}'), more="Content-Encoding: gzip\r\n")
    async with serving(lambda asked: packed) as server:
        assert (await lines().get(Call(server.url("en.wiki.test")))).body == b'{"ok": 1}'


async def test_a_redirect_is_followed_without_the_key_of_the_other_host(lines: Lines) -> None:
    def answer(asked: Asked) -> bytes:
        if asked.host == "ncbi.test":
            return moved(server.url("searx.test", "/there"))
        return said({"params": asked.params, "key": asked.headers.get("x-key", "")})

    async with serving(answer) as server:
        call = Call(server.url("ncbi.test"), {"q": "1"}, {"api_key": "s3"}, {"x-key": "s3"})
        reply = await lines().get(call)
    assert reply.body == b'{"params": {}, "key": ""}'
    assert server.asked[0].params == {"q": "1", "api_key": "s3"}
    assert server.asked[0].headers["x-key"] == "s3"


async def test_a_key_is_in_no_message_no_cache_and_no_repr(lines: Lines) -> None:
    async with serving(ok) as server:
        call = Call(server.url("ncbi.test"), {}, {"api_key": "s3cret"}, {"x": "s3cret"})
        reply = await lines().get(call)
    assert "s3cret" not in repr(call) + repr(reply)
    assert b"s3cret" not in b"".join(p.read_bytes() for p in lines.folder.iterdir())
    with pytest.raises(SourceUnavailable) as caught:
        await lines(cache=None).get(call)
    assert "s3cret" not in str(caught.value)


async def test_redirects_without_end_end(lines: Lines) -> None:
    async with serving(lambda asked: moved("/again")) as server:
        with pytest.raises(SourceUnavailable, match="more than 5 redirects"):
            await lines().get(Call(server.url("en.wiki.test")))
    assert len(server.asked) == 6


async def test_a_bucket_lets_so_many_pass_in_any_second() -> None:
    time = Time()
    bucket = Bucket(3, sleep=time.sleep, clock=time.clock)
    passed = []
    for _ in range(10):
        await bucket.take()
        passed.append(time.now)
    assert all(later - first >= 0.999 for first, later in zip(passed, passed[3:], strict=False))
    assert passed[-1] - passed[0] == pytest.approx(3.0)


def test_the_cache_stays_within_its_size_and_keeps_what_was_used_last(tmp_path: Path) -> None:
    cache = Cache(tmp_path, largest=100)
    for n in range(4):
        cache.put(f"k{n}", Reply("u", "t", b"x" * 30, START + n))
        cache.get("k0", now=START + n + 0.5, days=1)
    cache.put("huge", Reply("u", "t", b"x" * 101, START + 9))

    held = [n for n in range(4) if cache.get(f"k{n}", now=START + 9, days=1)]
    assert held == [0, 2, 3]
    assert cache.get("huge", now=START + 9, days=1) is None


def test_a_passage_of_the_web_opens_later_and_the_oldest_give_way(tmp_path: Path) -> None:
    cache = Cache(tmp_path, passages=2)
    kept = [
        Passage(f"web:x#{n}", "文本", "web", "T", Locator(url="http://a/", kind="Web page"))
        for n in range(3)
    ]
    assert cache.passage("web:x#0") is None
    for n, passage in enumerate(kept):
        cache.keep([passage], now=START + n)

    assert [cache.passage(passage.id) for passage in kept] == [None, *kept[1:]]


def test_a_damaged_cache_says_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "web.db").write_bytes(b"not a database" * 100)
    with pytest.raises(SourceUnavailable, match="cache of fetched pages"):
        Cache(tmp_path).get("k", now=START, days=1)


async def test_without_a_cache_every_call_is_a_call(lines: Lines) -> None:
    async with serving(ok) as server:
        net: Net = lines(cache=None)
        for _ in range(2):
            await net.get(Call(server.url("en.wiki.test")))
    assert len(server.asked) == 2
