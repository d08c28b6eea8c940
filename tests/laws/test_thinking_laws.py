"""Laws of cutting a reply: text and tokens stay one."""

from hypothesis import given
from hypothesis import strategies as st

from osler.llm.core.base import Completion
from osler.llm.core.thinking import split_thinking, without_spans
from osler_lab.testing.scripted import tokens_of

MARKS = st.sampled_from(["<think>", "</think>", "<|thinking|>", "[/THINK]", "\n\n", "答案", "B."])
REPLIES = st.lists(st.text(max_size=6) | MARKS, max_size=8).map("".join)


@given(REPLIES, st.booleans())
def test_tokens_still_spell_the_reply_and_nothing_is_invented(reply: str, inside: bool) -> None:
    told = split_thinking(Completion(reply, tokens_of(reply, 0.5)), inside=inside)
    assert "".join(token.text for token in told.tokens) == told.text
    assert all(told.text[t.start : t.end] == t.text for t in told.tokens)
    assert len(told.text) + len(told.thinking.replace("\n\n", "")) <= len(reply)


@given(st.text(max_size=30), st.lists(st.integers(0, 30), max_size=6, unique=True))
def test_cutting_leaves_just_the_other_characters(text: str, places: list[int]) -> None:
    ends = sorted(p for p in places if p <= len(text))
    spans = list(zip(ends[::2], ends[1::2], strict=False))
    told = without_spans(Completion(text, tokens_of(text, 0.5)), spans)
    kept = [c for i, c in enumerate(text) if not any(s <= i < e for s, e in spans)]
    assert told.text == "".join(kept) == "".join(token.text for token in told.tokens)
