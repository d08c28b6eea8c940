"""What the model is told: tools by a line or by the released code's template, and the stack."""

import pytest

from osler.methods.tcrag.moves import AnyMove
from osler.methods.tcrag.parts import Wording, render_act_prompt, stack_messages
from osler.methods.tcrag.stack import FrameKind, MemoryStack
from osler.methods.tcrag.tools import DOC_RAG, SearchTool, describe_tool
from osler.types import Question
from osler_lab.testing.scripted import ScriptedRetriever

TOOLS = (SearchTool(DOC_RAG, ScriptedRetriever({})),)
MOVES = AnyMove(frozenset({DOC_RAG}))
EN, ZH = Question("q", "Why?"), Question("q", "为什么？", language="zh")


def told(question: Question, **wording: object) -> str:
    return render_act_prompt(question, TOOLS, MOVES, Wording(**wording)).text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "opening", "asked"),
    [
        (EN, "DOC_RAG: Call this tool to interact with the DOC_RAG API.", "as a JSON object."),
        (ZH, "DOC_RAG：调用此工具以使用 DOC_RAG API。", "写成一个 JSON 对象。"),
    ],
)
def test_the_released_template_tells_the_parameters_of_a_tool(
    question: Question, opening: str, asked: str
) -> None:
    text = told(question, template="json")
    assert f"{opening}" in text
    assert '[{"name": "input"' in text
    assert describe_tool(DOC_RAG, question.language) in text
    line = next(line for line in text.splitlines() if line.startswith("Tool_Input"))
    assert line.endswith(asked)


@pytest.mark.parametrize("question", [EN, ZH])
def test_the_paper_s_prompt_tells_a_tool_in_a_line(question: Question) -> None:
    text = told(question)
    assert "API." not in text
    assert "JSON" not in text
    assert describe_tool(DOC_RAG, question.language) in text


def test_a_tool_without_an_argument_is_named_alone() -> None:
    assert "Tool_Input" not in told(EN, argument=False)


def test_a_call_and_its_observation_are_two_turns() -> None:
    memory = MemoryStack(EN)
    memory.push(FrameKind.THOUGHT, "hm", state=50.0)
    memory.push(FrameKind.OBSERVATION, "tea", call="Tool_Use: DOC_RAG")
    prompt = render_act_prompt(EN, TOOLS, MOVES, Wording())
    plain = stack_messages(prompt, memory)
    assert [m.role for m in plain] == ["system", "user", "assistant", "user"]
    assert plain[2].content == "Thought: hm\nTool_Use: DOC_RAG"
