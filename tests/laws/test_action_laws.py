"""Laws of TC-RAG's wire form."""

import re

from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedOutput
from osler.methods.tcrag.actions import (
    Action,
    Backtrack,
    Conclusion,
    Summary,
    Thought,
    ToolUse,
    parse_action,
    render_action,
)

TOOLS = ("DOC_RAG", "KG_RAG")
HOSTILE = st.sampled_from(
    ["Thoughtful patient", "the Backtrack: method", "in Conclusion, no", "摘要：无", "a: b", "[1]"]
)
LINE = (
    st.one_of(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))), HOSTILE)
    .map(lambda t: re.sub(r"\s+", " ", t).strip())
    .filter(bool)
)


def parse_untagged(text: str) -> bool:
    """A text that begins with a tag is another action; the wire form cannot say otherwise."""
    return not re.match(
        r"(?i)\s*(thought|tool.use|tool.input|tool.observation|backtrack|summary|conclusion"
        r"|user.query|action.input|action|observation|final.answer)\s*[:：]",
        text,
    )


FREE = LINE.filter(parse_untagged)

ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Thought, FREE),
    st.builds(ToolUse, st.sampled_from(TOOLS), st.just("") | FREE.filter(lambda t: t[0] != "{")),
    st.builds(Backtrack, FREE),
    st.builds(Summary, FREE),
    st.builds(Conclusion, FREE),
)


@given(ACTIONS)
def test_what_is_written_is_read_back(action: Action) -> None:
    assert parse_action(render_action(action), tools=TOOLS).action == action


@given(ACTIONS, ACTIONS)
def test_only_the_first_action_of_a_reply_counts(first: Action, second: Action) -> None:
    reply = f"{render_action(first)}\n{render_action(second)}"
    assert parse_action(reply, tools=TOOLS).action == first


@given(st.text())
def test_no_text_breaks_the_parser(reply: str) -> None:
    try:
        parsed = parse_action(reply, tools=TOOLS)
    except MalformedOutput:
        return
    assert 0 <= parsed.start <= parsed.end <= len(reply)


@given(ACTIONS.filter(lambda a: not isinstance(a, ToolUse)))
def test_the_span_is_the_action_s_own_text(action: Action) -> None:
    reply = render_action(action)
    parsed = parse_action(reply, tools=TOOLS)
    assert reply[parsed.start : parsed.end] == reply.split(": ", 1)[1]
