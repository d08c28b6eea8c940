"""One table of cases for each reader: what models write, and what it means."""

import pytest

from osler.llm.core.base import Completion
from osler.llm.core.thinking import silence_of, spoken_part
from osler.llm.reading.actions import read_actions
from osler.llm.reading.answers import (
    answer_words,
    content_span,
    find_marks,
    find_tags,
    is_debris,
    plain_marks,
    without_debris,
)

TOOLS = ("DOC_RAG", "KG_RAG")

TAGS = {
    "Thought: I look.": [("thought", "I look.")],
    "**Thought:** I look.": [("thought", "I look.")],
    "**Thought**: I look.": [("thought", "I look.")],
    "__Thought__: I look.": [("thought", "I look.")],
    "### Thought\nI look.": [("thought", "I look.")],
    "### Thought: I look.": [("thought", "I look.")],
    "- **Thought**: I look.": [("thought", "I look.")],
    "* Thought: I look.": [("thought", "I look.")],
    "1. **Thought:** I look.\n2. **Conclusion:** Iron.": [
        ("thought", "I look."),
        ("conclusion", "Iron."),
    ],
    "[Thought] I look.": [("thought", "I look.")],
    "【思考】查一下。": [("thought", "查一下。")],
    "思考：查一下。\n结论：口服铁剂。": [("thought", "查一下。"), ("conclusion", "口服铁剂。")],
    "**结论：**口服铁剂。": [("conclusion", "口服铁剂。")],
    "最终答案: A": [("conclusion", "A")],
    "```\nThought: I look.\n```": [("thought", "I look.")],
    "```markdown\n**Conclusion:** Iron.\n```": [("conclusion", "Iron.")],
    "THOUGHT 1: I look.": [("thought", "I look.")],
    "Thought (1): I look.": [("thought", "I look.")],
    "> Conclusion: Iron.": [("conclusion", "Iron.")],
    "**Conclusion**\n\n**Iron** is given.": [("conclusion", "**Iron** is given.")],
    "**Final Answer:** Iron.": [("conclusion", "Iron.")],
    "Tool\\_Use: DOC\\_RAG\nTool\\_Input: iron": [
        ("tool_use", "DOC\\_RAG"),
        ("tool_input", "iron"),
    ],
    "Thought: I look. Tool_Use: DOC_RAG Tool_Input: iron": [
        ("thought", "I look."),
        ("tool_use", "DOC_RAG"),
        ("tool_input", "iron"),
    ],
    "Thought: I look.\nAction: DOC_RAG\nInput: iron": [
        ("thought", "I look."),
        ("tool_use", "DOC_RAG"),
        ("tool_input", "iron"),
    ],
    # Words that are no tags.
    "The Thoughtful patient asked about a Backtrack.": [],
    "Thought leaders agree.": [],
    "In conclusion, iron helps.": [],
    "Input: iron": [],
    "Thought: in Conclusion: it is safe": [("thought", "in Conclusion: it is safe")],
}


@pytest.mark.parametrize(("text", "wanted"), TAGS.items())
def test_tags_are_found_in_any_dress(text: str, wanted: list[tuple[str, str]]) -> None:
    tags = find_tags(text)
    ends = [*(tag.start for tag in tags), len(text)][1:]
    read = []
    for tag, end in zip(tags, ends, strict=True):
        first, last = content_span(text, tag.end, end)
        read.append((tag.name, text[first:last]))
    assert read == wanted


CALL = ("tool_use", "DOC_RAG", "iron dose")
THOUGHT = ("thought", "", "I look.")
ACTIONS: dict[str, list[tuple[str, str, str]]] = {
    "Thought: I look.\nTool_Use: DOC_RAG\nTool_Input: iron dose": [THOUGHT, CALL],
    "**Thought:** I look.\n\n**Tool_Use:** DOC_RAG\n\n**Tool_Input:** iron dose": [THOUGHT, CALL],
    "### Thought\nI look.\n### Tool_Use\nDOC_RAG\n### Tool_Input\niron dose": [THOUGHT, CALL],
    "思考：I look.\n使用工具：DOC_RAG\n工具输入：iron dose": [THOUGHT, CALL],
    'Tool_Use: DOC_RAG("iron dose")': [CALL],
    "Tool_Use: DOC_RAG (iron dose)": [CALL],
    "Tool_Use: DOC_RAG[iron dose]": [CALL],
    "Tool_Use: `DOC_RAG`\nTool_Input: `iron dose`": [CALL],
    'Tool_Use: doc-rag.\nTool_Input: "iron dose"': [CALL],
    'DOC_RAG("iron dose")': [CALL],
    'DOC_RAG(query="iron dose")': [CALL],
    'I look.\nDOC_RAG("iron dose")': [THOUGHT, CALL],
    '<tool_call>\n{"name": "DOC_RAG", "arguments": {"query": "iron dose"}}\n</tool_call>': [CALL],
    '<tool_call>{"name": "DOC_RAG", "arguments": "{\\"query\\": \\"iron dose\\"}"}</tool_call>': [
        CALL
    ],
    'I look.\n<tool_call>{"name": "DOC_RAG", "arguments": {"input": "iron dose"}}</tool_call>': [
        THOUGHT,
        CALL,
    ],
    '<tool_call>{"name": "DOC_RAG", "arguments": {"query": "iron dose"': [CALL],
    '{"tool": "DOC_RAG", "input": "iron dose"}': [CALL],
    "{'tool': 'DOC_RAG', 'input': 'iron dose',}": [CALL],
    '```json\n{"action": "DOC_RAG", "action_input": "iron dose"}\n```': [CALL],
    '{"thought": "I look.", "tool": "DOC_RAG", "tool_input": {"query": "iron dose"}}': [
        THOUGHT,
        CALL,
    ],
    'Tool_Use: DOC_RAG\nTool_Input: {"input": "iron dose"}': [CALL],
    '{"conclusion": "Iron. [1]"}': [("conclusion", "", "Iron. [1]")],
    "Sure! Here is my next step:\n\nTool_Use: DOC_RAG\nTool_Input: iron dose": [CALL],
    "Tool_Use: DOC_RAG\nTool_Input: iron dose\nTool_Observation: made up\nConclusion: no": [CALL],
    "Backtrack: noise\nTool_Use: KG_RAG\nTool_Input: iron": [
        ("backtrack", "", "noise"),
        ("tool_use", "KG_RAG", "iron"),
    ],
    "Thought: I know.\nConclusion: Iron. [1]\n\nSummary: it helps.": [
        ("thought", "", "I know."),
        ("conclusion", "", "Iron. [1]\n\nSummary: it helps."),
    ],
    # Items of an answer's list are no tags, unless its conclusion is an item, too.
    "Conclusion: Two:\n- Observation: pulse\n- Thought: form\n2. Question: diet [1]": [
        ("conclusion", "", "Two:\n- Observation: pulse\n- Thought: form\n2. Question: diet [1]"),
    ],
    "结论：护理包括：\n- 观察：每小时脉搏\n- 治疗：补液": [
        ("conclusion", "", "护理包括：\n- 观察：每小时脉搏\n- 治疗：补液"),
    ],
    "Conclusion: Iron.\n- Tool_Observation: made up": [("conclusion", "", "Iron.")],
    "- **Conclusion**: Iron.\n- **Observation**: made up": [("conclusion", "", "Iron.")],
    "Conclusion: Iron.\nUser_Query: and now?\nConclusion: Salt.": [("conclusion", "", "Iron.")],
    "Question: What is it?\nThought: I look.\nConclusion: Iron.": [
        THOUGHT,
        ("conclusion", "", "Iron."),
    ],
    "Iron. [1]\nQuestion: and now?\nConclusion: Salt.": [("untagged", "", "Iron. [1]")],
    "Tool_Use: GOOGLE": [("tool_use", "GOOGLE", "")],
    "Oral iron treats it. [1]": [("untagged", "", "Oral iron treats it. [1]")],
    "": [],
    "```\n```": [],
}


@pytest.mark.parametrize(("reply", "wanted"), ACTIONS.items())
def test_actions_are_read_in_order(reply: str, wanted: list[tuple[str, str, str]]) -> None:
    found = read_actions(reply, TOOLS)
    assert [
        (one.kind, one.tool, one.argument if one.kind == "tool_use" else one.text) for one in found
    ] == wanted
    assert all(0 <= one.start <= one.end <= len(reply) for one in found)


MARKS: dict[str, list[tuple[int, ...]]] = {
    "Iron. [1]": [(1,)],
    "Iron [1][2].": [(1,), (2,)],
    "Iron 【1】。": [(1,)],
    "Iron ［１］。": [(1,)],
    "Iron 【3†source】": [(3,)],
    "Iron.[^1]": [(1,)],
    "Iron (Reference 1).": [(1,)],
    "Iron (References 1 and 3).": [(1, 3)],
    "Iron (Ref. 2)": [(2,)],
    "Iron [Document 1].": [(1,)],
    "Iron [citation:2]": [(2,)],
    "Iron [1,2]": [(1, 2)],
    "Iron [1, 2; 4]": [(1, 2, 4)],
    "Iron [1–3]": [(1, 2, 3)],
    "Iron [1-3, 5]": [(1, 2, 3, 5)],
    "Iron [1](https://a.b/c)": [(1,)],
    "Iron <sup>1</sup>": [(1,)],
    "铁剂（文献1、2）": [(1, 2)],
    "铁剂【参考1】": [(1,)],
    # What is none.
    "Take (2) tablets": [],
    "131I [131I]": [],
    "a range [10-60] mg": [],
    "an array [x]": [],
    "[5-1]": [],
    "The ratio was 3 (95% CI [2, 5]).": [],
    "The ratio was 3 (95% confidence interval: [2–5]) [1].": [(1,)],
    "median 3, IQR [2, 5]": [],
    "比值比为3（95%可信区间[2, 5]）[1]。": [(1,)],
    "The confidence interval was wide [2].": [(2,)],
    "It lies in the normal range [1, 2].": [(1, 2)],
}


@pytest.mark.parametrize(("text", "wanted"), MARKS.items())
def test_marks_are_read_in_every_style(text: str, wanted: list[tuple[int, ...]]) -> None:
    assert [mark.numbers for mark in find_marks(text)] == wanted


def test_marks_are_written_as_the_house_does() -> None:
    said = "Iron (References 1 and 3). Salt【2】, [4–5]."
    assert plain_marks(said) == "Iron [1][3]. Salt[2], [4][5]."


DEBRIS = [
    "The answer:",
    "**Answer:**",
    "Final answer:",
    "Here is the answer:",
    "$$",
    "```",
    "```json",
    "---",
    "**",
    "1.",
    "Hope this helps!",
    "I hope this helps!",
    "I hope this information is helpful.",
    "Let me know if you have any questions.",
    "Feel free to ask more.",
    "Sure!",
    "Sure, here is the answer.",
    "Certainly! Here's what the documents say:",
    "If you have any further questions, please ask.",
    "答案：",
    "好的，以下是答案。",
    "希望对您有帮助！",
    "如有其他问题，请告诉我。",
    "If you need further information, feel free to ask!",
    "If you have any other questions or concerns, I'm happy to help.",
    "Please do not hesitate to reach out.",
    "希望以上信息对您有所帮助。",
    "希望能帮到您！",
    "如果您还有任何疑问，欢迎随时提问。",
]
SAID = [
    "Oral iron treats it.",
    "The answer is iron.",
    "Sure signs of pregnancy are rare.",
    "<answer>B</answer>",
    "If you have a fever, see a doctor.",
    "I hope for a cure with iron.",
    "5 mg.",
    "答案是铁剂。",
    "Iron:",
    "Below is a threshold of 12 g/dl.",
    "If you have chest pain, call an ambulance and ask for help.",
    "If you have severe pain, seek help at once.",
    "If you need help breathing, call 999.",
    "If you have any concerns about the wound, see a doctor.",
    "Do not hesitate to give adrenaline.",
    "If you have further questions, ask the nurse [1].",
    "如有任何呼吸困难，请立即就医。",
    "如果有任何胸痛，应立即停药。",
    "希望能怀孕的女性应停用异维A酸。",
]


@pytest.mark.parametrize("text", DEBRIS)
def test_debris_is_known(text: str) -> None:
    assert is_debris(text)
    assert without_debris(f"{text}\n\nOral iron treats it.\n\n{text}") == "Oral iron treats it."


@pytest.mark.parametrize("text", SAID)
def test_what_is_said_is_no_debris(text: str) -> None:
    assert not is_debris(text)
    assert without_debris(text) == text


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("The answer: Oral iron. [1]", "Oral iron. [1]"),
        ("**Answer:** Oral iron. [1]", "Oral iron. [1]"),
        ("Sure! Oral iron. [1] I hope this helps!", "Oral iron. [1]"),
        ("```\nOral iron. [1]\n```", "Oral iron. [1]"),
        ("- **Iron** first.\n- Salt second.", "- Iron first.\n- Salt second."),
        ("Oral iron. [1]\n<answer>B</answer>", "Oral iron. [1]\n<answer>B</answer>"),
    ],
)
def test_debris_is_taken_out_of_an_answer(text: str, kept: str) -> None:
    assert without_debris(text) == kept


STEPS = "Give iron at once [1]. Repeat after a day [1]. Give salt. Repeat after a day."
REPEATS = {
    # One step of a procedure may come twice.
    STEPS: STEPS,
    "Oral iron treats it. [1] Oral iron treats it. [1]": "Oral iron treats it. [1]",
    "Oral iron treats it.\n\n- Iron.\n\nOral iron treats it.\n\n- Iron.\n\nOral iron treats it.": (
        "Oral iron treats it.\n\n- Iron."
    ),
    "Yes. Yes.": "Yes. Yes.",
}


@pytest.mark.parametrize(("text", "kept"), REPEATS.items())
def test_only_what_is_said_in_a_loop_is_left_out(text: str, kept: str) -> None:
    assert answer_words(text) == kept


SILENCE = {
    "a reply": (Completion("Iron."), ""),
    "cut in the text": (Completion("<think>Is it iron", finish="length"), "cut"),
    "cut apart": (Completion("", finish="length", thinking="Is it iron"), "cut"),
    "cut, begun by the template": (
        Completion("Okay, the user asks about iron. Let me", finish="length"),
        "cut",
    ),
    "cut, in Chinese, begins like a thought": (Completion("好的，口服铁剂", finish="length"), ""),
    "cut, in Chinese": (Completion("好的，用户问的是铁剂", finish="length"), "cut"),
    "an answer that was cut": (Completion("Oral iron treats", finish="length"), ""),
    "thought and then nothing": (Completion("<think>Iron.</think>"), "thought"),
    "thought apart": (Completion("", thinking="Iron."), "thought"),
    "nothing": (Completion(" \n"), "empty"),
    "a thought and a reply": (Completion("<think>Is it?</think>Iron."), ""),
    "begins like a thought": (Completion("Okay, iron."), ""),
    "cut, begins like a thought": (Completion("Well, iron is", finish="length"), ""),
    "cut, thinks aloud": (Completion("Okay, so I need to think", finish="length"), "cut"),
}


@pytest.mark.parametrize(("reply", "why"), SILENCE.values(), ids=[*SILENCE])
def test_why_a_reply_says_nothing(reply: Completion, why: str) -> None:
    assert silence_of(reply) == why


@pytest.mark.parametrize(
    "text", ["<think>a</think>Iron.", "a</think>\nIron.", "Iron.<think>b</think>", "Iron. <think>b"]
)
def test_thinking_is_split_off_wherever_it_stands(text: str) -> None:
    assert spoken_part(text) == "Iron."
