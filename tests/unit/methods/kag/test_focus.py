"""Which references a reason calls relevant (§3.3), and what counts as an answer."""

import pytest

from osler.errors import MalformedOutput
from osler.llm.core.base import Completion
from osler.methods.kag.focus import relevant_references
from osler.methods.kag.parse import answer_or_text


@pytest.mark.parametrize(
    ("reason", "relevant"),
    [
        ("Reference 0 does not mention it, reference 2 answers.", (2,)),
        ("Reference 0 and reference 1 do not say; reference 2 does.", (2,)),
        ("References 0 and 2 are irrelevant. Reference 1 gives the dose.", (1,)),
        ("Unlike reference 0, reference 1 names the drug.", (1,)),
        ("Reference 1 names the drug but does not give a dose.", (1,)),
        ("Reference 1 is not only relevant, it answers.", (1,)),
        ("Reference 0 isn't about adults.", (1, 2)),
        ("It is said there.", (0, 1, 2)),
        (
            "None fits: reference 0 is unrelated, reference 1 lacks it, reference 2 fails to.",
            (0, 1, 2),
        ),
        ("资料0没有提到，资料2说明了剂量。", (2,)),
        ("资料0和1无关。资料2相关。", (2,)),
        ("Reference 7 says it.", (0, 1, 2)),
        ("According to reference 1, warfarin must not be taken with it.", (1,)),
        ("Reference 1 states that no dose is needed. References 0 and 2 do not.", (1,)),
        ("参考资料1指出妊娠期不能使用华法林。参考资料0和2未提及。", (1,)),
        ("Reference 1 says nothing about it.", (0, 2)),
        ("[0] and [2] are relevant, [1] is not.", (0, 2)),
        ("[1] is not relevant, but [0] and [2] are.", (0, 2)),
        ("Only [2] mentions the dose.", (2,)),
        ("References [0] and [2] are relevant, reference [1] is not.", (0, 2)),
        ("[0] is relevant, while [1] isn't.", (0,)),
        ("0 and 2 are relevant", (0, 2)),
        ("[1] gives it (5 mg, 10 mg)", (1,)),
        ("[0][2] are relevant", (0, 2)),
        ("[0,2] are relevant", (0, 2)),
        ("Documents 0 and 2 say so", (0, 2)),
        ("References 0-2 answer it", (0, 1, 2)),
        ("None of the references except [1] mention it", (1,)),
        ("资料[0]和[2]相关，[1]不相关", (0, 2)),
        ("【0】和【2】相关", (0, 2)),
    ],
)
def test_a_reference_is_relevant_where_it_is_said_to_be(
    reason: str, relevant: tuple[int, ...]
) -> None:
    assert relevant_references(reason, 3) == relevant


@pytest.mark.parametrize("text", ["", "<search>Step1: x", "<answer>", r"\boxed{", "a" * 601])
def test_what_was_begun_and_not_finished_is_no_answer(text: str) -> None:
    with pytest.raises(MalformedOutput):
        answer_or_text(Completion(text, (), "stop"))
