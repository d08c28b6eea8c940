"""Verdicts, however a model puts them: yes or no, letters, numbers of documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import MalformedOutput
from osler.llm.reading.verdicts import (
    read_letter,
    read_numbers,
    read_table,
    read_verdict,
    table_grammar,
)

YES = [
    "<answer>yes</answer>",
    "<answer> Yes. </answer>",
    r"<answer>\boxed{True}</answer>",
    r"<answer>\boxed{\text{True}}</answer>",
    "</answer>Yes</answer>",  # the sample of KAG-Thinker's Table 4
    "<answer>yes",
    "The form is <answer>yes/no</answer>. <answer>yes</answer>",
    "<answer>no</answer> On reflection: <answer>yes</answer>",
    "<answer>是的</answer>",
    "<answer>正确</answer>",
    "Yes, the documents support it.",
    "The documents agree. Answer: Yes",
    "结论：是",
    r"The answer stands. $\boxed{\text{True}}$",
    r"\boxed{True}",
    "**Answer**: Yes",
    "**Verdict:** **Yes**",
    "### Answer: yes",
    "<answer>**Yes**</answer>",
    "```\n<answer>yes</answer>\n```",
    "<answer>yes</answer>\n\nLet me know if there is more!",
    "<answer>yes</answer> The answer is no secret.",
    '{"reason": "it says so", "verdict": "yes"}',
    '```json\n{"answer": true,}\n```',
    "The documents do not contradict it.\n\n**Yes**",
    "It holds.\nTrue.",
    "True. It does not contradict the references.",
    "Good",
    "The dialogue is sound. Verdict: good",
    "<answer>pass</answer>",
    "Good because it is sound.",
    "是的，文档支持。",
    "是",
    "对，文档支持。",
    "能回答。",
    "**正确**",
]
NO = [
    "<answer>no</answer>",
    r"<answer>\boxed{False}</answer>",
    "<answer>不是</answer>",
    "<answer>不正确</answer>",
    "<answer>否</answer>",
    "<answer>无法判断</answer>",
    "No.",
    "False",
    '"no"',
    "**Answer**: No",
    r"$\boxed{\text{False}}$",
    '{"verdict": "no"}',
    "Yes, it looks so at first.\n\n**No**",
    "<answer>no</answer>\nYes, I am sure of it.",
    "<answer>bad</answer>",
    "<answer>not correct</answer>",
    "不能回答。",
    "错。",
    "正确答案：否",
]
NEITHER = [
    "",
    "<answer></answer>",
    "<answer>yes/no</answer>",
    "<answer>maybe</answer>",
    "notable",
    "yes or no",
    "Noted.",
    "Good question. The documents do not answer it.",
    "Right, so the documents do not mention it.",
    "No doubt they support it.",
    "对不起，文档没有回答该问题。",
    "对于这个问题，文档没有给出答案。",
    "好的，这些文档与问题不相关。",
    "是否相关：否",
    "判断：是否能回答问题：否",
    "能否回答：否",
    "可以看出，文档没有回答。",
    "不仅如此，文档支持。",
]


@pytest.mark.parametrize("reply", YES)
def test_yes_is_read(reply: str) -> None:
    assert read_verdict(reply) is True


@pytest.mark.parametrize("reply", NO)
def test_no_is_read(reply: str) -> None:
    assert read_verdict(reply) is False


@pytest.mark.parametrize("reply", NEITHER)
def test_neither_is_malformed_not_a_no(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_verdict(reply)


NAMED = [
    ("<answer>1, 3</answer>", [1, 3]),
    ("Documents 1 and 3 do.\n<answer>1, 3</answer>\nI hope this helps.", [1, 3]),
    ("```\n<answer>1, 3</answer>\n```", [1, 3]),
    ("<answer>**1**, **3**</answer>", [1, 3]),
    ("<answer>[1], [3]</answer>", [1, 3]),
    ("<answer>Documents 1 and 3</answer>", [1, 3]),
    ("**Answer:** 1, 3", [1, 3]),
    ('{"answer": [1, 3]}', [1, 3]),
    ("They say so.\n\n1, 3", [1, 3]),
    (r"$\boxed{1, 3}$", [1, 3]),
    ("<answer>none</answer> None of them speaks of it.", []),
    ("<answer>无</answer>", []),
    ('{"answer": []}', []),
    ("<answer>1, 3", [1, 3]),
    ("First [2]. <answer>[2] and [3]</answer>", [2, 3]),
    ("<answer>1、3</answer>", [1, 3]),
    ("<answer>2</answer> no: <answer>3</answer>", [3]),
    ("<answer>1-3</answer>", [1, 2, 3]),
    ("<answer>documents 2 to 3</answer>", [2, 3]),
    ("<answer>[1][3]</answer>", [1, 3]),
    ("<answer>none of the above</answer>", []),
]


@pytest.mark.parametrize(("reply", "named"), NAMED)
def test_numbers_of_documents_are_read_whatever_stands_around_them(
    reply: str, named: list[int]
) -> None:
    assert [n for n, yes in enumerate(read_numbers(reply, 3), 1) if yes] == named


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "1, 3",
        "<answer>yes</answer>",
        "<answer></answer>",
        "<answer>4</answer>",
        "<answer>1-4</answer>",
        "<answer>3-1</answer>",
        "Document 1 is good.",
        "<answer>some",
    ],
)
def test_numbers_that_no_document_has_are_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_numbers(reply, 3)


TABLES = [
    "<answer>\n1: 2, 3\n2: none\n3: 1\n</answer>",
    "<answer>1: 2, 3; 2: none; 3: 1</answer>",
    "1: 2, 3\n2: none\n3: 1",
    "Here is what I found:\n\n1: [2], [3]\n2: None\n3: [1]",
    "**Statement 1:** 2 and 3\n**Statement 2:** none\n**Statement 3:** 1",
    "- 1: passages 2, 3\n- 2: none\n- 3: passage 1",
    '```json\n{"1": [2, 3], "2": [], "3": [1]}\n```',
    '{"answer": {"1": [2, 3], "2": [], "3": [1]}}',
    "<answer>\n1: 1\n1: 2, 3\n2: none\n3: 1\n</answer>",
    "<answer>\n1：2、3\n2：无\n3：1\n</answer>",
    "<answer>\n3: 1\n2: 0\n1: 2, 3",
    "1 -> 2, 3\n2 -> none\n3 -> 1",
    "Statement 1 is said by two.\n<answer>\n1: 2, 3\n2: none\n3: 1\n</answer>\nI hope it helps.",
]


@pytest.mark.parametrize("reply", TABLES)
def test_a_line_for_each_row_is_read_whatever_stands_around_it(reply: str) -> None:
    assert read_table(reply, 3, 3) == [[2, 3], [], [1]]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "none",
        "<answer>\n1: 2\n2: none\n</answer>",
        "<answer>\n1: 2\n2: none\n3: 4\n</answer>",
        "<answer>\n1: 2\n2: maybe 1\n3: 1\n</answer>",
        "1, 2, 3",
        "They all do.",
    ],
)
def test_a_table_with_a_row_missing_or_of_no_document_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_table(reply, 3, 3)


@given(st.lists(st.lists(st.integers(1, 6), max_size=4, unique=True), min_size=1, max_size=9))
def test_what_the_grammar_of_a_table_allows_is_read(rows: list[list[int]]) -> None:
    lines = [f"{n}: {', '.join(map(str, row)) or 'none'}\n" for n, row in enumerate(rows, 1)]
    reply = "<answer>\n" + "".join(lines) + "</answer>"
    assert table_grammar(len(rows), 6, 0).accepts(reply)
    assert read_table(reply, len(rows), 6) == rows


LETTERS = [
    "<answer>B</answer>",
    "<answer>**B**</answer> since it contradicts it",
    '{"answer": "B"}',
    r"$\boxed{\text{B}}$",
    "**Answer**: B",
    "It is said so.\n\nB",
    "It is said so.\n(B)",
    "<answer>B: it contradicts</answer>",
    "**B**",
    "B.",
]


@pytest.mark.parametrize("reply", LETTERS)
def test_a_letter_is_read(reply: str) -> None:
    assert read_letter(reply, "ABC") == "B"


NO_LETTERS = [
    "",
    "A drug",
    "<answer>A/B/C</answer>",
    "<answer>D</answer>",
    "Answer: A or B",
    "答案：A和B",
]


@pytest.mark.parametrize("reply", NO_LETTERS)
def test_another_letter_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_letter(reply, "ABC")
