"""What a stranger asks first over the sample texts, and what must stand in the answer."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Osler = Callable[..., "subprocess.CompletedProcess[str]"]
FIRST: dict[str, str] = {
    "Which anticoagulant suits atrial fibrillation with a mechanical valve?": "vitamin K antag",
    "What is the dose of adrenaline in anaphylaxis?": "500 micrograms",
    "What is the eGFR limit for metformin?": r"below 45 .* below 30",
    "Is metformin safe when kidney function is poor?": r"below 30 mL/min",
    "Can I give an ACE inhibitor in pregnancy?": "harm the fetus|contraindicated in pregnancy",
    "how to treat pneumonnia": "amoxicillin",
    "A patient who takes warfarin is started on amiodarone. What happens to the INR?": (
        "a third to a half"
    ),
    "warfarin": "anticoagulant",
    "can I take ibuprofen with warfarin": "bleeding becomes more likely",
    "hypercalcaemia treatment": "0.9 per cent sodium chloride",
    "Does low-dose hydrocortisone lower deaths in septic shock?": "uncertain whether it lowers",
}
"""Question → what the first quote must say."""
AMONG: dict[str, str] = {
    "How is anaphylaxis treated?": "intramuscular adrenaline|adrenaline into the muscle",
    "can i take ibuprofen with lisinopril and furosemide": "acute kidney injury|the NSAID narrows",
    "how is C. difficile treated": "Oral vancomycin",
    "grapefruit with my cholesterol pill": "grapefruit juice",
}
"""Question → what one of the quotes must say."""
NEITHER = (
    *("Thanks", "? ?", "12 34", "When did the director die?", "I took 30 paracetamol tablets"),
    *("Dose of alteplase in stroke?", "Can I give amoxicillin in infectious mononucleosis?"),
    "First line treatment for status epilepticus in a child?",
)
"""What is not answered: nothing is asked, no text says it, or a notice stands first."""


@pytest.fixture(scope="module")
def answers(built: Osler, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """All of them asked in one process."""
    file = tmp_path_factory.mktemp("asked") / "questions.txt"
    asked = [*FIRST, *AMONG, *NEITHER]
    file.write_text("\n".join(asked) + "\n", encoding="utf-8")
    done = built("ask", "--file", str(file), "--json", cwd=Path(file.parent))
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(documents) == len(asked), done.stderr
    return dict(zip(asked, documents, strict=True))


def test_the_readme_shows_what_is_answered(answers: dict[str, dict[str, Any]]) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("```text\n")[2].partition("```")[0]
    question = re.findall(r'make ask Q="([^"]+)"', readme)[0]
    first = answers[question]["evidence"][0]
    passage = first["passage"]
    place = " · ".join((passage["source"], passage["title"], passage["locator"]["section"]))
    assert " ".join(shown.split()) == f"{first['quote']} [1] [1] {place}"


def quotes_of(document: dict[str, Any], use: str = "answer") -> list[str]:
    return [one["quote"] for one in document["evidence"] if one["use"] == use]


@pytest.mark.parametrize("question", FIRST)
def test_the_first_quote_answers(answers: dict[str, dict[str, Any]], question: str) -> None:
    quotes = quotes_of(answers[question])
    assert quotes, answers[question]["answer"]["note"]
    assert re.search(FIRST[question], quotes[0]), quotes


@pytest.mark.parametrize("question", AMONG)
def test_a_quote_answers(answers: dict[str, dict[str, Any]], question: str) -> None:
    document = answers[question]
    quotes = quotes_of(document) or quotes_of(document, "nearest")
    assert any(re.search(AMONG[question], one) for one in quotes), quotes


@pytest.mark.parametrize("question", NEITHER)
def test_what_is_no_question_of_these_texts_has_no_answer(
    answers: dict[str, dict[str, Any]], question: str
) -> None:
    assert quotes_of(answers[question]) == []


def test_a_misspelt_word_is_searched_for_as_it_was_meant(
    answers: dict[str, dict[str, Any]],
) -> None:
    assert "pneumonia" in answers["how to treat pneumonnia"]["answer"]["note"]


def test_an_overdose_has_the_notice_first(answers: dict[str, dict[str, Any]]) -> None:
    assert answers["I took 30 paracetamol tablets"]["danger"]
