"""`osler plan` for KAG-Thinker: the plan, its sets, and the plan run again as it was edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts
from osler.build.hub import read_tokens
from osler.build.models import LoadedModel
from osler.graph.items import Name, Relation, SemanticType
from osler.graph.store import Graph
from osler.llm.core.cache import cache_dir
from osler.methods.kag.graph_route import GRAPH_SETS
from osler.methods.kag.graph_route.answering import GraphSets
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

CACHE = cache_dir()
"""Where the encoder lies, before the test has a home of its own."""
QUESTION = "Which drugs treat gammitis but not deltosis?"


@pytest.fixture
def drugs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two drugs for one disease, one of them for another too; no model answers."""
    monkeypatch.setenv("OSLER_CACHE", str(CACHE))
    graph = Graph.create(tmp_path / "graph")
    kinds = {"apirol": "Compound", "betanol": "Compound", "gammitis": "Disease"}
    kinds["deltosis"] = "Disease"
    treated = [("apirol", "gammitis"), ("betanol", "gammitis"), ("betanol", "deltosis")]
    graph.add(
        [
            *(Name(f"X:{name}", name, "X", 0) for name in kinds),
            *(SemanticType(f"X:{name}", kind) for name, kind in kinds.items()),
            *(Relation(f"X:{a}", "treats", f"X:{b}", "X") for a, b in treated),
        ]
    )

    async def live(settings: Settings) -> Parts:
        return Parts(
            dict.fromkeys(("reader", "planner"), LoadedModel(ScriptedModel([]))),
            lambda name, _: (
                GraphSets(graph, read_tokens) if name == GRAPH_SETS else ScriptedRetriever({})
            ),
            OverlapRelevance(),
            OverlapRelevance(),
            ("graph",),
            "5f2a",
            carriers=(GRAPH_SETS,),
        )

    monkeypatch.setattr("osler.runs.answering.live_parts", live)


@pytest.mark.usefixtures("drugs")
def test_the_plan_is_shown_with_the_set_of_each_step(osler: Any) -> None:
    told = osler("plan", QUESTION, "--strategy", "kag-thinker")
    assert told.exit_code == 0, told.stderr
    plan, _, rest = told.stdout.partition("By these steps")
    assert "Action1: Retrieval(s=o1:drug, p=p1:treats, o=s1:disease['gammitis'])" in plan
    steps = rest.split("How:")[0].split("\n")
    assert "1. drug that treats 'gammitis' → apirol; betanol [1]" in steps
    assert "3. The difference of #1, #2 → apirol [1]" in steps


@pytest.mark.usefixtures("drugs")
def test_an_edited_plan_runs_again_over_the_sets(osler: Any, tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    osler("plan", QUESTION, "--strategy", "kag-thinker", "--out", str(plan))
    plan.write_text(plan.read_text("utf-8").replace("difference", "intersection"), "utf-8")
    told = osler("--json", "ask", QUESTION, "--strategy", "kag-thinker", "--plan", str(plan))
    assert told.exit_code == 0, told.stderr
    report = json.loads(told.stdout)
    assert [step["answer"] for step in report["steps"]][-2:] == ["betanol", "betanol"]
    assert report["answer"]["text"].startswith("betanol: ")
    cited = {one["passage"]["id"] for one in report["evidence"]}
    assert set(report["steps"][2]["passages"]) <= cited


@pytest.mark.usefixtures("drugs")
@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("drugs that treat gammitis", "not a plan"),
        ("Step1: a #2\nAction1: Output(#2)\nStep2: b #1\nAction2: Output(#1)\n", "strategy.forms"),
    ],
)
def test_what_is_no_plan_is_refused(osler: Any, tmp_path: Path, plan: str, why: str) -> None:
    file = tmp_path / "plan.txt"
    file.write_text(plan, "utf-8")
    told = osler("ask", QUESTION, "--strategy", "kag-thinker", "--plan", str(file))
    assert told.exit_code not in (0, 1)
    assert why in told.stderr
