"""Verdicts, however a model puts them: yes or no, letters, numbers of documents."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.reading.verdicts import read_letter, read_numbers, read_verdict

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
]
NEITHER = [
    "",
    "<answer></answer>",
    "<answer>yes/no</answer>",
    "<answer>maybe</answer>",
    "notable",
    "yes or no",
    "Noted.",
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
        "Document 1 is good.",
        "<answer>some",
    ],
)
def test_numbers_that_no_document_has_are_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_numbers(reply, 3)


LETTERS = [
    "<answer>B</answer>",
    "<answer>**B**</answer> since it contradicts it",
    '{"answer": "B"}',
    r"$\boxed{\text{B}}$",
    "**Answer**: B",
    "It is said so.\n\nB",
    "It is said so.\n(B)",
    "<answer>B: it contradicts</answer>",
]


@pytest.mark.parametrize("reply", LETTERS)
def test_a_letter_is_read(reply: str) -> None:
    assert read_letter(reply, "ABC") == "B"


@pytest.mark.parametrize("reply", ["", "A drug", "<answer>A/B/C</answer>", "<answer>D</answer>"])
def test_another_letter_is_malformed(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        read_letter(reply, "ABC")
