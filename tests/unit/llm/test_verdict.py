"""Yes or no, however a model puts it."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.core.verdict import parse_verdict

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
]
NEITHER = ["", "<answer></answer>", "<answer>yes/no</answer>", "<answer>maybe</answer>", "notable"]


@pytest.mark.parametrize("reply", YES)
def test_yes_is_read(reply: str) -> None:
    assert parse_verdict(reply) is True


@pytest.mark.parametrize("reply", NO)
def test_no_is_read(reply: str) -> None:
    assert parse_verdict(reply) is False


@pytest.mark.parametrize("reply", NEITHER)
def test_neither_is_malformed_not_a_no(reply: str) -> None:
    with pytest.raises(MalformedOutput):
        parse_verdict(reply)
