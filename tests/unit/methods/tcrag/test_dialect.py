"""The authors' dialect by its rules: one action of a reply that may hold several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedOutput
from osler.methods.tcrag.actions import (
    Backtrack,
    Conclusion,
    Summary,
    Thought,
    ToolUse,
    parse_released,
)

TOOLS = ("DOC_RAG", "KG_RAG", "PEDIA_RAG", "HYPOTHESIS_OUTPUT", "KNOWLEDGE_ORGANIZE")

GOLDEN = {
    "Thought: I look.\nAction: DOC_RAG\nAction Input: {'input': 'gout'}": ToolUse(
        "DOC_RAG", "gout"
    ),
    'Action: KG_RAG\nAction Input: {"query": "痛风",}': ToolUse("KG_RAG", "痛风"),
    "Action: Baike_RAG\nAction Input: gout": ToolUse("PEDIA_RAG", "gout"),
    "Action：HypothesisOutput\nAction Input：gout": ToolUse("HYPOTHESIS_OUTPUT", "gout"),
    "Action: KnowledgeOrganize": ToolUse("KNOWLEDGE_ORGANIZE", ""),
    "Action: DOC_RAG\nAction: KG_RAG": ToolUse("DOC_RAG", ""),
    # A Backtrack discards every other action, before it and after it.
    "Thought: no\nAction: DOC_RAG\nBacktrack: it is about tea": Backtrack("it is about tea"),
    "Backtrack: tea\nFinal Answer: B": Backtrack("tea"),
    "Thought: I now know the final answer.\nFinal Answer: B": Conclusion("B"),
    "Thought: only this": Thought("only this"),
    "Summary: it rises": Summary("it rises"),
    # Without a tag it is a final answer; what follows an observation is dropped.
    "答案是A": Conclusion("答案是A"),
    "Action: DOC_RAG\nObservation: invented\nFinal Answer: B": ToolUse("DOC_RAG", ""),
    # Its rewriting of "query" inside a text is not copied.
    "Final Answer: the query was answered": Conclusion("the query was answered"),
}


@pytest.mark.parametrize(("reply", "action"), GOLDEN.items())
def test_a_reply_is_the_action_that_the_rules_choose(reply: str, action: object) -> None:
    assert parse_released(reply, tools=TOOLS).action == action


@pytest.mark.parametrize(
    "reply", ["", " \n", "Action: google_search", "Observation: x", "User_Query: x"]
)
def test_what_holds_no_action_is_refused(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        parse_released(reply, tools=TOOLS)


def test_the_span_is_the_action_s_own_text_in_the_whole_reply() -> None:
    reply = "Thought: I now know.\nFinal Answer: B, the second"
    parsed = parse_released(reply, tools=TOOLS)
    assert reply[parsed.start : parsed.end] == "B, the second"


@given(st.text())
def test_no_text_breaks_the_reader(reply: str) -> None:
    try:
        parsed = parse_released(reply, tools=TOOLS)
    except MalformedOutput:
        return
    assert 0 <= parsed.start <= parsed.end <= len(reply)
