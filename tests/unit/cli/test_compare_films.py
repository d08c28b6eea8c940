"""TC-RAG §6.4, Fig. 2: the same question under ReAct and under TC-RAG, film beside film."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.cli.render import RunPage, compare_page
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler.trace import Answered, Asked, Event, Run
from osler.types import Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

GOLDEN = Path(__file__).parent / "golden" / "compare.txt"
CHILD = Question("q4", "How much elemental iron a day does a child of 44 pounds need?")
DOSE = Passage(
    "book:fe#0",
    "The dose of elemental iron is 3 mg per kg of body weight a day. One pound is 0.45 kg.",
    "book",
    "Iron",
)
METAL = Passage("web:fe#0", "Iron melts at 1538 degrees.", "web", "Iron, the metal")
FOUND = {"dose": [DOSE], "": [METAL]}

REACT = [
    " I look up iron.\nAction 1: Search[iron]",
    " I need the dose.\nAction 2: Search[elemental iron dose]",
    " 3 mg for each of 44.\nAction 3: Finish[132 mg a day]",
]
TC_RAG = [
    "Tool_Use: WEB_RAG\nTool_Input: iron",
    "Backtrack: that is iron, the metal",
    "Tool_Use: DOC_RAG\nTool_Input: elemental iron dose",
    "Conclusion: 3 x 44 = 132 mg a day. [1]",
    "Backtrack: 44 are pounds, not kg",
    "Conclusion: 44 x 0.45 = 19.8 kg, so about 60 mg a day. [1]",
]
SURENESS = {
    "3 x 44 = 132 mg a day. [1]": 1 / 25,
    "44 x 0.45 = 19.8 kg, so about 60 mg a day. [1]": 1 / 2,
}


async def played(strategy: dict[str, Any], replies: list[str]) -> RunPage:
    model = ScriptedModel(list(replies), scores=SURENESS, name="m")
    ready = LoadedModel(model)
    parts = Parts(
        {"planner": ready, "summariser": ready, "reader": ready},
        lambda *_: ScriptedRetriever(dict(FOUND)),
        OverlapRelevance(),
        OverlapRelevance(),
        ("book", "web"),
    )
    settings = Settings.model_validate(
        {"strategy": strategy, "model": {"writes": "yes"}, "answer": {"uncited": "show"}}
    )
    run = Run()
    solution = await build_solver(settings, parts).solve(CHILD, run)
    model.finish()
    # Of a prompt the name alone: its wording has golden files of its own.
    named = [
        replace(event, prompt=event.prompt.split("@")[0]) if isinstance(event, Asked) else event
        for event in run.events
    ]
    events: tuple[Event, ...] = (*named, Answered(solution))
    return RunPage("r", strategy["kind"], "", {"planner": "m"}, solution, events, CHILD)


def as_text(page: Any) -> str:
    out = io.StringIO()
    console = Console(file=out, width=140, no_color=True, color_system=None, highlight=False)
    console.print(page)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


async def test_react_keeps_the_noise_and_tc_rag_pops_it() -> None:
    """ReAct's film has no stack, no value and no way back; its first sum stands."""
    react = await played({"kind": "react"}, REACT)
    stack = await played({"kind": "tc-rag", "moves": "any", "sigma": 10}, TC_RAG)
    assert as_text(compare_page([react, stack])) == GOLDEN.read_text(encoding="utf-8")


def test_recorded_runs_are_compared_by_their_ids(
    osler: Any,
    folder: Path,
    keep: Callable[..., Path],
    stack_events: tuple[Event, ...],
    plain_events: tuple[Event, ...],
) -> None:
    keep("20260101-000000-a", stack_events)
    keep("20260101-000001-b", plain_events)
    told = osler("trace", "20260101-000000-a", "20260101-000001-b")
    assert told.exit_code == 0
    assert told.stdout.split()[:2] == ["tc-rag", "rag"]
    both = json.loads(osler("trace", "20260101-000000-a", "20260101-000001-b", "--json").stdout)
    assert [run["strategy"] for run in both["runs"]] == ["tc-rag", "rag"]


@pytest.mark.parametrize("missing", ["20300101-000000-z"])
def test_a_run_that_is_not_there_is_named(osler: Any, folder: Path, missing: str) -> None:
    told = osler("trace", missing, missing)
    assert told.exit_code != 0
    assert missing in told.stderr


def test_the_notes_of_a_recorded_run_are_unfolded_on_demand(
    osler: Any, folder: Path, keep: Callable[..., Path], noted_events: tuple[Event, ...]
) -> None:
    keep("20260101-000002-c", noted_events)
    folded = osler("trace", "20260101-000002-c").stdout
    unfolded = osler("trace", "20260101-000002-c", "--notes").stdout
    assert "antibody" not in folded
    assert "(note, 45 characters): first-line treatment" in unfolded
