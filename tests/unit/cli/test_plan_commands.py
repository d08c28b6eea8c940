"""`osler plan`, `osler ask --plan` and `osler plans`, with scripted parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts, roles_of
from osler.build.models import LoadedModel
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.types import Passage
from osler_lab.testing.scripted import HashingEncoder, KeyedModel, ScriptedRetriever

FACT = Passage("book:inr#0", "Amiodarone raises the INR.", "book", "INR")
ASKED = "What does amiodarone do to the INR?"
WRITES = ("--set", "model.writes=yes")


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> KeyedModel:
    scripted = KeyedModel(
        {
            "construct appropriate queries": ["<book> amiodarone INR ; a ; b ; c </book>"],
            "# Retrieved Documents": [f"{FACT.text} [1] <answer>A</answer>"],
            "step-by-step": ["It falls. <answer>B</answer>"],
        }
    )

    async def live(chosen: Settings) -> Parts:
        ready, found = LoadedModel(scripted), ScriptedRetriever({"": [FACT]})
        return Parts(
            dict.fromkeys(roles_of(chosen), ready),
            lambda name, sources: found,
            OverlapRelevance(),
            OverlapRelevance(),
            ("book", "wiki"),
            offers=(SourceDescription("book"), SourceDescription("wiki")),
        )

    monkeypatch.setattr("osler.runs.answering.live_parts", live)
    monkeypatch.setattr("osler_lab.studies.plans.load_encoder", lambda _: HashingEncoder())
    return scripted


def test_a_plan_goes_to_standard_output_as_it_can_be_read_back(osler: Any) -> None:
    done = osler(*WRITES, "plan", ASKED)
    assert done.exit_code == 0
    assert done.stdout == "<book> amiodarone INR ; a ; b </book>\n\n<wiki></wiki>\n"
    assert "not asked: book: 'c' (more than 3)" in done.stderr


def test_a_plan_is_edited_and_run(osler: Any, folder: Path, model: KeyedModel) -> None:
    (folder / "plan.txt").write_text("<book> INR and amiodarone </book>")
    done = osler(*WRITES, "ask", ASKED, "--plan", "plan.txt", "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["answer"]["citations"][0]["passage_id"] == FACT.id
    assert document["usage"]["searches"] == 1
    assert "construct appropriate queries" not in model.asked


def test_a_stored_plan_brings_its_question_and_documents(osler: Any, folder: Path) -> None:
    made = osler(*WRITES, "plan", ASKED, "--search", "--out", "plan.json")
    assert "osler ask --plan plan.json" in made.stdout
    stored = json.loads((folder / "plan.json").read_text())
    assert stored["results"][0]["hits"][0]["passage"]["id"] == FACT.id
    document = json.loads(osler(*WRITES, "ask", "--plan", "plan.json", "--json").stdout)
    assert document["usage"]["searches"] == 0
    assert document["answer"]["text"].startswith("Amiodarone raises")


def test_a_file_that_is_no_plan_ends_with_1(osler: Any, folder: Path) -> None:
    (folder / "plan.txt").write_text("ask a book")
    done = osler("ask", ASKED, "--plan", "plan.txt")
    assert done.exit_code == 1
    assert "plan.txt has no tag of a source" in done.stderr


def test_what_sources_are_worth_is_one_table(osler: Any, folder: Path) -> None:
    line = {"question": "What happens to the INR?", "options": ["rises", "falls"], "answer": "A"}
    (folder / "questions.jsonl").write_text(json.dumps(line))
    page = " ".join(osler(*WRITES, "plans", "questions.jsonl").stdout.split())
    for part in (
        "planner prompting, keyed",
        "none 0 [0, 0.793] -1 -1 [-1, -0.207] 1",
        "queries book 3",
    ):
        assert part in page
    document = json.loads(osler(*WRITES, "plans", "questions.jsonl", "--json").stdout)
    assert [row["sources"] for row in document["rows"]] == ["all", "book", "wiki", "none"]
