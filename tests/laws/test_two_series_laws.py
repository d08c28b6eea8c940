"""A patient's record and what is known of all patients are cited in two series, at every door."""

import json
import re
from base64 import b64decode
from io import StringIO
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from osler.answer.export import ExportedAnswer, write_export
from osler.cli.page import render_page
from osler.cli.render import RunPage, run_page
from osler.reports import AnswerView, EvidenceView
from osler.types import (
    Answer,
    Evidence,
    Halt,
    Hit,
    Locator,
    Passage,
    Question,
    Solution,
    Statement,
)

RECORD, TEXT = re.compile(r"\[R(\d+)\]"), re.compile(r"\[(\d+)\]")
passages = st.sampled_from(
    [
        Passage("emr:p1#0", "Creatinine 2.1 mg/dL.", "emr", "A patient"),
        Passage("cases:p2#0", "Takes metformin.", "cases", "A patient", Locator(kind="Patient")),
        Passage(
            "book:renal#0", "Metformin is stopped below 30.", "book", "Renal", Locator(year=2014)
        ),
        Passage("wiki:metformin#0", "Metformin is a biguanide.", "wiki", "Metformin"),
    ]
)


@st.composite
def answers(draw: Any) -> Answer:
    held = draw(st.lists(passages, min_size=1, max_size=6))
    evidence = tuple(
        Evidence(Hit(p, 1.0, 1, "q", p.source), 0, len(p.text), "answer") for p in held
    )
    cites = st.lists(st.integers(1, len(held)), max_size=4, unique=True)
    said = draw(st.lists(cites, min_size=1, max_size=4))
    statements = tuple(Statement(f"Sentence {chr(97 + n)}.", tuple(c)) for n, c in enumerate(said))
    return Answer(statements, evidence)


def is_record(one: Evidence) -> bool:
    return one.passage.source == "emr" or one.passage.locator.kind == "Patient"


@given(answers())
def test_each_mark_says_whether_it_is_of_a_record_and_each_series_counts_from_1(
    answer: Answer,
) -> None:
    for one, mark in zip(answer.evidence, answer.marks, strict=True):
        assert bool(RECORD.fullmatch(mark)) == is_record(one)
        assert bool(TEXT.fullmatch(mark)) != is_record(one)
    for series in (RECORD, TEXT):
        numbers = [int(m[1]) for mark in answer.marks if (m := series.fullmatch(mark))]
        assert numbers == [*range(1, len(numbers) + 1)]


@given(answers())
def test_a_sentence_that_rests_on_both_shows_marks_of_both(answer: Answer) -> None:
    for statement in answer.statements:
        at = answer.text.index(statement.text) + len(statement.text)
        shown = re.match(r"(?: (?:\[R?\d+\])+)?", answer.text[at:])
        assert shown is not None
        cited = [answer.evidence[number - 1] for number in statement.cites]
        assert len(RECORD.findall(shown[0])) == sum(map(is_record, cited))
        assert len(TEXT.findall(shown[0])) == len(cited) - sum(map(is_record, cited))


def test_the_marks_are_the_same_at_every_door() -> None:
    """On the command line, in JSON, on the run's page and in the files, FHIR's among them."""
    cited = [
        Passage("emr:p1#0", "Creatinine 2.1 mg/dL.", "emr", "A patient"),
        Passage("book:renal#0", "Metformin is stopped.", "book", "Renal", Locator(year=2014)),
    ]
    evidence = tuple(Evidence(Hit(p, 1.0, 1, "q", p.source), 0, len(p.text), "a") for p in cited)
    answer = Answer((Statement("Stop it.", (1, 2)),), evidence)
    solution = Solution(answer, Halt.CONVERGED, "")
    run, question = "20260102-030405-6f", Question("q", "May it go on?")
    page = RunPage(run, "rag", "s", {}, solution, (), question)
    shown = Console(width=120, record=True, file=StringIO())
    shown.print(run_page(page, with_film=False))
    exported = [ExportedAnswer(question, solution, run, "rag")]
    bundle = json.loads(write_export(exported, "fhir"))
    (document,) = (
        one["resource"]["content"][0]["attachment"]["data"]
        for one in bundle["entry"]
        if one["resource"]["resourceType"] == "DocumentReference"
    )
    told = {
        "command line": shown.export_text(),
        "json": json.dumps([one.model_dump() for one in EvidenceView.list_of(answer, run)])
        + AnswerView.of(answer).model_dump_json(),
        "page": re.sub(r"<[^>]+>", "", render_page(page)),
        "markdown": write_export(exported, "markdown").decode().replace("\\", ""),
        "fhir": re.sub(r"<[^>]+>", "", b64decode(document).decode()),
    }
    for door, text in told.items():
        assert re.search(r"Stop it\. ?\[R1\]\[1\]", text), door
        assert text.count("[R1]") >= 2, door
        assert text.count("[1]") >= 2, door
    assert "2014 · 12 years old · book:renal#0" in told["command line"]
    views = EvidenceView.list_of(answer, run)
    assert [(one.mark, one.age) for one in views] == [("[R1]", None), ("[1]", 12)]
