"""Names in a question, without a model."""

import pytest

from osler.retrieve.naming import names_in


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Which film did the director of Red Kite make?", ("Red Kite",)),
        ("What lowers LDL cholesterol?", ("LDL cholesterol",)),
        ("Is metformin safe in CKD?", ("metformin", "CKD")),
        ("What is the dose of amoxicillin for a 70-year-old with CKD?", ("amoxicillin", "CKD")),
        ("Does creatinine of 1.2 mg/dL rule out metformin?", ("metformin", "creatinine")),
        ("How is type 2 diabetes treated?", ("type 2 diabetes",)),
        ('Who wrote "Moby Dick" and who read it?', ("Moby Dick",)),
        ("二甲双胍的常见不良反应有哪些？", ("二甲双胍",)),
    ],
)
def test_a_question_s_names_are_whole(question: str, wanted: tuple[str, ...]) -> None:
    found = names_in(question)
    assert all(any(name in each.split() or name == each for each in found) for name in wanted) or (
        set(wanted) <= set(found)
    ), found


@pytest.mark.parametrize(
    "question",
    [
        "What is the creatinine clearance of a 70-year-old 60 kg woman with creatinine 1.2 mg/dL?",
        "Is INR 2.5 after 5 mg of warfarin for 3 days enough?",
        "血肌酐 1.5 mg/dL 的 62 岁男性",
    ],
)
def test_a_measurement_is_no_name(question: str) -> None:
    found = names_in(question)
    assert not any(part in name.split() for name in found for part in ("mg", "2 mg", "dL", "kg"))
    assert not any(name[0].isdigit() for name in found), found
