"""A question is planned and searched once, whoever reads (Omni-RAG's two stages)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.errors import BadConfig, SourceUnavailable
from osler.methods.omni.dossier import read_saved_plan
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import OmniRagSettings, Settings
from osler.trace import Run
from osler.types import Hit, Passage, Question
from osler_lab.studies.evaluation import prepare_strategy
from osler_lab.studies.plans import PlanOnce, open_shelf, plan_once
from osler_lab.testing.scripted import KeyedModel

FACT = Passage("book:inr#0", "Amiodarone raises the INR.", "book", "INR")
QUESTION = Question("q", "What does amiodarone do to the INR?")


@dataclass
class Counted:
    """Finds the fact, and counts."""

    down: bool = False
    asked: list[str] = field(default_factory=list)

    async def search(self, query: str, *, k: int) -> list[Hit]:
        self.asked.append(query)
        if self.down:
            raise SourceUnavailable("the disk is gone")
        return [Hit(FACT, 1.0, 1, query, "book")]


def model() -> KeyedModel:
    return KeyedModel(
        {
            "construct appropriate queries": ["<book> amiodarone INR </book>"] * 3,
            "# Retrieved Documents": [f"{FACT.text} [1]"] * 3,
        }
    )


def settings(home: Path, **strategy: Any) -> Settings:
    chosen = OmniRagSettings(planner="prompting", **strategy)
    # The plan's own searches are counted.
    sections: dict[str, Any] = {"model": {"writes": "yes"}, "answer": {"consistent": False}}
    return Settings.model_validate({"home": home, "strategy": chosen.model_dump(), **sections})


def parts(reader: KeyedModel, planner: KeyedModel, found: Counted) -> Parts:
    return Parts(
        {"planner": LoadedModel(planner), "reader": LoadedModel(reader)},
        lambda name, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
        offers=(SourceDescription("book"),),
    )


def solver_of(chosen: Settings, given: Parts, folder: Path) -> PlanOnce:
    solver = plan_once(build_solver(chosen, given), chosen, given, folder)
    assert isinstance(solver, PlanOnce)
    return solver


def stored_in(folder: Path) -> list[Path]:
    return list(folder.glob("*/*.json"))


async def test_a_second_reader_reads_what_the_first_one_s_planner_found(tmp_path: Path) -> None:
    chosen, planner, found = settings(tmp_path), model(), Counted()
    first = await solver_of(chosen, parts(model(), planner, found), tmp_path).solve(
        QUESTION, Run("one")
    )
    (stored,) = stored_in(tmp_path)
    assert read_saved_plan(stored).plan == "<book> amiodarone INR </book>"
    reader, never_asked = model(), model()
    again = await solver_of(
        settings(tmp_path, per_source=2), parts(reader, never_asked, found), tmp_path
    ).solve(QUESTION, Run("two"))
    assert found.asked == ["amiodarone INR"]
    assert never_asked.asked == []
    assert reader.asked == ["# Retrieved Documents"]
    assert again.answer.text == first.answer.text != ""


async def test_plans_of_other_planners_settings_and_options_do_not_mix(tmp_path: Path) -> None:
    chosen, given = settings(tmp_path), parts(model(), model(), Counted())
    shelf = open_shelf(tmp_path, chosen, given)
    places = {
        open_shelf(tmp_path, settings(tmp_path, queries=1), given).folder,
        open_shelf(tmp_path, chosen, replace(given, snapshot="other")).folder,
        open_shelf(tmp_path, chosen, replace(given, sources=("wiki",))).folder,
        shelf.folder,
    }
    assert len(places) == 4
    with_options = replace(QUESTION, options=("it rises", "it falls"))
    assert shelf.path_of(QUESTION) != shelf.path_of(with_options)


async def test_what_a_source_that_was_down_did_not_find_is_not_stored(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    down = solver_of(chosen, parts(model(), model(), Counted(down=True)), tmp_path)
    await down.solve(QUESTION, Run("one"))
    assert stored_in(tmp_path) == []


async def test_tapes_and_stored_plans_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="cannot be replayed"):
        await prepare_strategy(settings(tmp_path), lambda *_: "run", None, tmp_path)
