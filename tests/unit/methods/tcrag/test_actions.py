"""Wire strings of TC-RAG, the paper's and those of the authors' program."""

import pytest

from osler.errors import MalformedOutput
from osler.methods.tcrag.actions import (
    Backtrack,
    Conclusion,
    Move,
    Summary,
    Thought,
    ToolUse,
    action_grammar,
    parse_action,
)

TOOLS = ("DOC_RAG", "KG_RAG")

GOLDEN = {
    "Thought: I should look this up.": Thought("I should look this up."),
    "Tool_Use: DOC_RAG": ToolUse("DOC_RAG", ""),
    "Tool_Use: DOC_RAG.\nTool_Input: warfarin and amiodarone": ToolUse(
        "DOC_RAG", "warfarin and amiodarone"
    ),
    "Backtrack: the passages are about something else": Backtrack(
        "the passages are about something else"
    ),
    "Backtrack:": Backtrack(""),
    "Summary: INR rises.": Summary("INR rises."),
    "Conclusion: Lower the dose. [1]": Conclusion("Lower the dose. [1]"),
    # The authors' dialect.
    'Action: doc_rag\nAction Input: {"input": "华法林 胺碘酮"}': ToolUse(
        "DOC_RAG", "华法林 胺碘酮"
    ),
    "Final Answer: 答案是A": Conclusion("答案是A"),
    "Conclusion： 选择B": Conclusion("选择B"),
    # A word is not a tag.
    "The Thoughtful patient asked about a Backtrack.": Thought(
        "The Thoughtful patient asked about a Backtrack."
    ),
    "Thought: in Conclusion: it is safe": Thought("in Conclusion: it is safe"),
}


@pytest.mark.parametrize(("reply", "action"), GOLDEN.items())
def test_golden_replies_are_read(reply: str, action: object) -> None:
    assert parse_action(reply, tools=TOOLS).action == action


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        "Thought:",
        "Conclusion:  ",
        "Tool_Use: GOOGLE",
        "Tool_Use:",
        "Tool_Observation: I made this up.",
        "User_Query: something else?",
    ],
)
def test_reply_without_an_action_is_refused_with_the_expected_form(reply: str) -> None:
    with pytest.raises(MalformedOutput) as caught:
        parse_action(reply, tools=TOOLS)
    assert caught.value.expected


def test_an_observation_the_model_invents_is_dropped() -> None:
    reply = "Tool_Use: KG_RAG\nTool_Input: gout\nTool_Observation: Gout is cured by sugar."
    assert parse_action(reply, tools=TOOLS).action == ToolUse("KG_RAG", "gout")


def test_json_that_is_no_json_is_taken_as_text() -> None:
    reply = 'Tool_Use: KG_RAG\nTool_Input: {"input": gout'
    assert parse_action(reply, tools=TOOLS).action == ToolUse("KG_RAG", '{"input": gout')


@pytest.mark.parametrize("quoted", [r'{"input": "g\ud800out"}', r"{'input': 'g\ud800out',}"])
def test_lone_surrogate_in_json_is_replaced(quoted: str) -> None:
    reply = f"Tool_Use: KG_RAG\nTool_Input: {quoted}"
    assert parse_action(reply, tools=TOOLS).action == ToolUse("KG_RAG", "g\ufffdout")


def test_the_grammar_names_only_the_moves_and_tools_on_offer() -> None:
    text = action_grammar({Move.THOUGHT, Move.TOOL_USE}, {"DOC_RAG"}, argument=False).gbnf
    assert '"Thought: "' in text
    assert '"DOC_RAG"' in text
    assert "Conclusion" not in text
    assert "Tool_Input" not in text
    assert "tool ::=" not in action_grammar({Move.THOUGHT}, set(), argument=True).gbnf


@pytest.mark.parametrize(
    ("written", "query"),
    [
        ('{"input": "gout"}', "gout"),
        ("{query: 'gout', // colchicine?\n}", "gout"),
        ("{'input': 'gout', 'k': None}", "gout"),
        ('{"input": gout}', '{"input": gout}'),
        ("{'gout'}", "{'gout'}"),
        ("{}", "{}"),
    ],
)
def test_the_argument_of_a_tool_may_be_json5(written: str, query: str) -> None:
    reply = f"Tool_Use: KG_RAG\nTool_Input: {written}"
    assert parse_action(reply, tools=["KG_RAG"]).action == ToolUse("KG_RAG", query)
