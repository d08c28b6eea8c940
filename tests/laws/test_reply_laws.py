"""Whatever a server says, it becomes a completion or a `BadReply`, never another error."""

from contextlib import suppress
from math import isfinite
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from loopback_servers import chat_chunk, chat_reply, token_entry

from osler.llm.core.base import Completion, Message, Sampling
from osler.llm.server.dialects import ConstraintKind, Dialect, ServerProfile, from_ollama, read_chat
from osler.llm.server.endpoint import (
    BadReply,
    extract_code,
    extract_complaint,
    read_complaint,
    refused_field,
    retry_after,
)
from osler.llm.server.replies import ChatGatherer
from osler.llm.server.scoring import read_echo, spans_of

KEYS = [
    *("choices", "message", "delta", "content", "reasoning_content", "logprobs", "token"),
    *("logprob", "bytes", "top_logprobs", "finish_reason", "usage", "prompt_tokens", "error"),
    *("completion_tokens", "code", "param", "done", "done_reason", "thinking", "meta_info"),
    *("input_token_logprobs", "prompt_logprobs", "token_logprobs", "tokens"),
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-5, 300)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["stop", "length", "x", "\ud800", "content_filter"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=6,
)


def choice(message: Any) -> Any:
    return {"choices": [message]}


SAID = JSON | st.fixed_dictionaries({"content": LEAVES, "reasoning_content": LEAVES})
SHAPED = (
    JSON
    | st.fixed_dictionaries({"message": SAID, "logprobs": JSON, "finish_reason": JSON}).map(choice)
    | st.fixed_dictionaries({"delta": SAID, "logprobs": JSON, "finish_reason": JSON}).map(choice)
    | st.lists(st.fixed_dictionaries({"token": JSON, "logprob": JSON, "bytes": JSON})).map(
        lambda entries: chat_reply("x", entries)
    )
)
SERVERS = st.builds(
    ServerProfile,
    st.sampled_from(Dialect),
    st.just(frozenset(ConstraintKind)),
    echoes=st.booleans(),
    without=st.sampled_from([frozenset[str](), frozenset({"stop"})]),
)
SAMPLING = Sampling(max_tokens=3, stop=("x",))


def sound(completion: Completion) -> bool:
    completion.text.encode()
    completion.thinking.encode()
    return all(t.logprob <= 0 and t.start < t.end for t in completion.tokens)


def told_of(read: list[tuple[str, float]], count: int) -> bool:
    """Whether so many tokens each have a text and a log-probability."""
    return len(read) == count and all(
        isinstance(piece, str) and isfinite(logprob) for piece, logprob in read
    )


@given(SHAPED, SERVERS)
def test_any_json_is_a_completion_or_a_bad_reply(reply: Any, server: ServerProfile) -> None:
    with suppress(BadReply):
        read = read_chat(reply, server, [Message("user", "q")], SAMPLING, 0.1)
        assert sound(read.completion)


@given(st.lists(SHAPED, max_size=4), st.booleans())
def test_any_events_are_gathered_or_a_bad_reply(told: list[Any], ollama: bool) -> None:
    gathered = ChatGatherer(3, translate=from_ollama) if ollama else ChatGatherer(3)
    with suppress(BadReply):
        for one in told:
            gathered.take_piece(one)
        gathered.broken_off()
        read = read_chat(gathered.reply, ServerProfile(), [Message("user", "q")], SAMPLING, 0.1)
        assert sound(read.completion)


@given(SHAPED, st.lists(st.integers(0, 9), min_size=1, max_size=3))
def test_any_score_is_read_or_a_bad_reply(reply: Any, ids: list[int]) -> None:
    with suppress(BadReply):
        assert told_of(read_echo(reply, len(ids)), len(ids) - 1)


@given(st.lists(st.text(max_size=3), max_size=5), st.text(max_size=8))
def test_any_pieces_cover_the_text_or_are_refused(pieces: list[str], text: str) -> None:
    with suppress(BadReply):
        spans = spans_of(pieces, text)
        assert len(spans) == len(pieces)
        assert {i for start, end in spans for i in range(start, end)} == set(range(len(text)))


@given(SHAPED, st.text())
def test_any_complaint_is_quoted_on_one_short_line(told: Any, text: str) -> None:
    for words in (extract_complaint(told), read_complaint(text)):
        assert len(words) <= 300
        assert "\n" not in words
    assert isinstance(extract_code(told), int)
    assert isinstance(refused_field(text), str)


@given(
    st.text() | st.from_regex(r"[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{1,6} \d\d:\d\d:\d\d GMT")
)
def test_any_wait_is_none_or_not_negative(told: str) -> None:
    seconds = retry_after(told, now=1e9)
    assert seconds is None or seconds >= 0


@given(st.text("ab 抗", min_size=1, max_size=12), st.data())
def test_a_reply_cut_anywhere_into_events_is_the_same_reply(text: str, data: Any) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)))))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    gathered = ChatGatherer(99)
    for part in parts:
        gathered.take_piece(chat_chunk(part, logprobs={"content": [token_entry(part)]}))
    gathered.take_piece(chat_chunk(finish="stop"))
    assert not gathered.broken_off()
    completion = read_chat(gathered.reply, ServerProfile(), [], Sampling(), 0.1).completion
    assert completion.text == text
    assert [t.text for t in completion.tokens] == [part for part in parts if part]


def test_a_streamed_call_without_a_function_shifts_no_other() -> None:
    """Its index is its own: what comes after belongs to the calls that are named."""
    gathered = ChatGatherer(99)
    pieces: list[dict[str, Any]] = [
        {"index": 0},
        {"index": 1, "function": {"name": "search", "arguments": '{"query": '}},
    ]
    gathered.take_piece({"choices": [{"delta": {"tool_calls": pieces}}]})
    rest = [{"index": 1, "function": {"arguments": '"gout"}'}}]
    gathered.take_piece({"choices": [{"delta": {"tool_calls": rest}, "finish_reason": "stop"}]})
    completion = read_chat(gathered.reply, ServerProfile(), [], Sampling(), 0.1).completion
    assert '{"name": "search", "arguments": {"query": "gout"}}' in completion.text
