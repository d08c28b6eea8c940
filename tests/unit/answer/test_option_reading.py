"""Reading the option that a text chose: the shapes that readers write, and what is no answer."""

import pytest

from osler.answer.option_reading import named_option, written_option, written_options
from osler.types import Question

DRUGS = Question(
    "q",
    "Which drug treats anaphylaxis first?",
    ("cetirizine", "adrenaline", "prednisolone", "ranitidine"),
)
MANY = Question("many", "Which diagnosis?", tuple(f"diagnosis {n}" for n in range(30)))


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("<answer>C</answer>", "C"),
        ("<answer>c</answer>", "C"),
        ("<Answer> (b) </Answer>", "B"),
        ("<answer>**B**</answer>", "B"),
        ("<answer>B. adrenaline</answer>", "B"),
        ("<answer>B", "B"),
        ("<answer>Adrenaline.</answer>", "B"),
        ("<answer>\\boxed{B}</answer>", "B"),
        ("<answer>The answer is B.</answer>", "B"),
        ("Thus \\boxed{B}.", "B"),
        ("Thus $\\boxed{\\text{(B)}}$", "B"),
        ("B", "B"),
        ("**B**", "B"),
        ("(b)", "B"),
        ("B. adrenaline is first", "B"),
        ("（B）肾上腺素", "B"),
        ("Option B", "B"),
        ("Answer: **B**", "B"),
        ("**Answer:** B", "B"),
        ("The correct option is (B)", "B"),
        ("The best answer is option B, since it acts at once.", "B"),
        ("So the final answer is: B because it constricts vessels", "B"),
        ("I choose B.", "B"),
        ("选B", "B"),
        ("故选（B）。", "B"),
        ("答案：B。", "B"),
        ("正确答案为 B", "B"),
        ("正确选项是B", "B"),
        ("答案是b", "B"),
        ("Adrenaline.", "B"),
        ("Answer: A is the one that acts", "A"),
        ('{"answer": "B"}', "B"),
        ('Adrenaline acts at once.\n```json\n{"reason": "it acts", "answer": "B",}\n```', "B"),
        ("Adrenaline acts at once.\n\nB", "B"),
        ("Adrenaline acts at once.\n\n**(B)**", "B"),
        ("<answer>B\n\nI hope this helps!", "B"),
    ],
)
def test_a_letter_is_read_in_every_shape_that_readers_write(reply: str, letter: str) -> None:
    assert written_option(reply, DRUGS) == letter


@pytest.mark.parametrize(
    "reply",
    [
        "<answer>A/B/C/…</answer> is the form. <answer>C</answer>",
        "<answer>A/B/C/D</answer>\n<answer>C</answer>",
        "<answer>X</answer>, as asked: <answer>C</answer>",
        "<answer>A/B/C/...</answer>\nAnswer: C",
        "A. cetirizine\nB. adrenaline\nC. prednisolone\nD. ranitidine\n\nAnswer: C",
    ],
)
def test_an_echo_of_the_form_or_of_the_options_is_no_answer(reply: str) -> None:
    assert written_option(reply, DRUGS) == "C"


@pytest.mark.parametrize(
    "reply",
    [
        "A and C",
        "A, C",
        "AC",
        "Answer: A and C",
        "Answer: A or C",
        "The answer is A/C.",
        "<answer>A and C</answer>",
        "<answer>A C</answer>",
        "<answer>A</answer> or rather <answer>C</answer>",
        "\\boxed{A} and \\boxed{C}",
        "Answer: A\nAnswer: C",
        "A. It is so.\nThe answer is C.",
        "答案是A和C。",
        "选A。选C。",
    ],
)
def test_two_letters_are_no_single_answer(reply: str) -> None:
    assert written_option(reply, DRUGS) is None


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "<answer>E</answer>",
        "<answer>A/B/C/…</answer>",
        "The answer is a drug that constricts vessels.",
        "Answer: A patient needs help",
        "<answer>a drug</answer>",
        "A patient with anaphylaxis needs adrenaline",
        "Do not choose A.",
        "不选A",
        "选A错误",
        "Option A is wrong.",
        "The answer is not A.",
    ],
)
def test_what_chooses_nothing_is_read_as_nothing(reply: str) -> None:
    assert written_option(reply, DRUGS) is None


def test_beyond_z_the_case_says_which_option_is_meant() -> None:
    assert written_option("<answer>a</answer>", MANY) == "a"
    assert written_option("<answer>A</answer>", MANY) == "A"
    assert written_option("<answer>z</answer>", MANY) == "Z"


@pytest.mark.parametrize(
    ("reply", "letters"),
    [
        ("<answer>AC</answer>", ("A", "C")),
        ("<answer>C、A</answer>", ("A", "C")),
        ("<answer>A and C</answer>", ("A", "C")),
        ("<answer>A AND C", ("A", "C")),
        ("<answer>A C</answer>", ("A", "C")),
        ("<answer>选AC</answer>", ("A", "C")),
        ("答案是ABC。", ("A", "B", "C")),
        ("Answers: A, B, and D", ("A", "B", "D")),
        ("The answers are many. Answer: B", ("B",)),
        ("<answer>A/B/C/…</answer> <answer>BD</answer>", ("B", "D")),
        ("\\boxed{A, C}", ("A", "C")),
        ("<answer>E</answer>", ()),
        ("<answer>AE</answer>", ()),
        ("<answer>A</answer><answer>AC</answer>", ()),
        ("", ()),
    ],
)
def test_several_letters_are_read_in_the_question_s_order(
    reply: str, letters: tuple[str, ...]
) -> None:
    assert written_options(reply, DRUGS) == letters


SCANS = Question("scan", "首选检查？", ("B超", "CT", "X线平片", "D二聚体"), language="zh")
PEPTIDE = Question("pep", "What is low?", ("C peptide", "Glucagon", "Cortisol", "D-dimer"))
GROUPS = Question("dose", "Which dose?", ("5 mg", "5.5 mg", "2.5 mg", "1 g"))


@pytest.mark.parametrize(
    ("question", "reply", "letter"),
    [
        (SCANS, "胆囊结石首选B超检查[1]。", "A"),
        (SCANS, "正确答案是B超检查。", "A"),
        (SCANS, "答案：B超", "A"),
        (SCANS, "<answer>B超</answer>", "A"),
        (SCANS, "答案：CT", "B"),
        (SCANS, "答案：D二聚体", "D"),
        (SCANS, "答案：C反应蛋白", None),
        (SCANS, "答案是C X线平片", "C"),
        (SCANS, "答案是CX线平片", None),
        (SCANS, "首选C。", "C"),
        (SCANS, "选B项", "B"),
        (SCANS, "选B是因为快", "B"),
        (PEPTIDE, "The answer is C peptide, which is low when insulin was injected [1].", "A"),
        (PEPTIDE, "The correct answer is D dimer [1].", "D"),
        (PEPTIDE, "The answer is B cell lymphoma.", None),
        (PEPTIDE, "Answer: A 45-year-old man needs troponin.", None),
        (PEPTIDE, "Answer: B Glucagon", "B"),
        (PEPTIDE, "The answer is A C-peptide level.", "A"),
        (PEPTIDE, "Answer: B and nothing else", "B"),
        (PEPTIDE, "<answer>B glucagon injected</answer>", "B"),
        (PEPTIDE, "Answer: Glucagon and Cortisol", None),
        (GROUPS, "The answer is 5.5 mg.", "B"),
        (GROUPS, "The answer is 5 mg/kg.", None),
        (GROUPS, "**Answer: 2.5 mg**", "C"),
    ],
)
def test_a_letter_that_begins_a_word_or_a_wording_is_no_choice_of_its_own(
    question: Question, reply: str, letter: str | None
) -> None:
    assert written_option(reply, question) == letter


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("Answer: No", "B"),
        ("The answer is no.", "B"),
        ("The answer is not known.", None),
        ("No, it is not.", "B"),
        ("No trial was done.", None),
        ("Maybe.", "C"),
    ],
)
def test_an_option_s_own_wording_is_read_where_a_letter_would_be(
    reply: str, letter: str | None
) -> None:
    assert written_option(reply, YES_NO) == letter


YES_NO = Question("yn", "Is it so?", ("yes", "no", "maybe"))
IRON = Question("iron", "What is missing?", ("iron", "iron and folate", "folate"))


@pytest.mark.parametrize(
    ("question", "said", "letter"),
    [
        (DRUGS, "it is adrenaline that comes first", "B"),
        (DRUGS, "adrenaline or cetirizine", None),
        (YES_NO, "I do not know", None),
        (YES_NO, "No, it is not.", "B"),
        (IRON, "iron and folate", "B"),
        (IRON, "folate, then iron", None),
        (DRUGS, "nothing", None),
    ],
)
def test_an_option_is_named_by_whole_words_and_alone(
    question: Question, said: str, letter: str | None
) -> None:
    assert named_option(said, question) == letter
