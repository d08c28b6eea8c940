"""Source plans of many questions, stored with what they found: planned once, read by any reader.

    FOLDER/PLANNER/QUESTION.json    one stored plan a question (`osler ask --plan` reads it, too)

PLANNER names the method and model that planned, and a digest of all that a plan depends on:
settings of the planner, sources, knowledge base, seed. So the plans of two planners, or of two
knowledge bases, never mix (Omni-RAG's two stages).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from osler.build import Parts
from osler.build.planning import planner_name
from osler.errors import BadRun, translate_os_errors
from osler.llm.core.cache import write_whole
from osler.methods.omni.dossier import read_saved_plan, save_plan
from osler.methods.omni.plan import Query, SourcePlan
from osler.methods.omni.planners.single import GivenPlan
from osler.methods.omni.retriever import PlannedRetriever
from osler.methods.omni.solver import OmniRag
from osler.retrieve import LookupResult
from osler.settings import OmniRagSettings, Settings
from osler.text import make_slug
from osler.trace import Run, Solver
from osler.types import Question, Solution
from osler_lab.evaluate.datasets.splits import question_digest

# Settings of the strategy that concern the reader alone.
_READING = ("per_source", "order")


@dataclass(frozen=True)
class PlanShelf:
    """Stored plans of one planner over one knowledge base."""

    folder: Path
    planner: str
    snapshot: str
    sources: tuple[str, ...]

    def path_of(self, question: Question) -> Path:
        # The options belong to it: a planner sees them.
        return self.folder / f"{question_digest(' '.join((question.text, *question.options)))}.json"

    def store(
        self, question: Question, plan: SourcePlan, found: Mapping[Query, LookupResult]
    ) -> None:
        """Raises `BadRun` where it cannot be written."""
        saved = save_plan(
            plan,
            self.sources,
            found,
            question=question,
            planner=self.planner,
            snapshot=self.snapshot,
        )
        with translate_os_errors(f"{self.folder} cannot be written", BadRun):
            self.folder.mkdir(parents=True, exist_ok=True)
            with write_whole(self.path_of(question)) as draft:
                draft.write_text(saved.document, encoding="utf-8")


def open_shelf(folder: Path, settings: Settings, parts: Parts) -> PlanShelf:
    """The shelf of the planner that the settings name."""
    strategy = settings.strategy.model_dump(mode="json", exclude=set(_READING))
    retrieve = settings.retrieve.model_dump(mode="json")
    models = {str(role): name for role, name in parts.names.items() if role != "reader"}
    facts = (strategy, retrieve, models, parts.sources, parts.snapshot, settings.sampling.seed)
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()
    planner = planner_name(settings, parts)
    place = folder / f"{make_slug(planner)[:60]}.{digest[:8]}"
    return PlanShelf(place, planner, parts.snapshot, parts.sources)


@dataclass(frozen=True)
class PlanOnce:
    """Omni-RAG that reads the stored plan of a question, or makes one and stores it."""

    omni: OmniRag
    shelf: PlanShelf

    async def solve(self, question: Question, run: Run) -> Solution:
        path = self.shelf.path_of(question)
        if path.is_file():
            given = replace(self.omni, planner=GivenPlan(read_saved_plan(path)))
            return await given.solve(question, run)
        noting = _NotingRetriever(self.omni.retriever.sources, self.omni.retriever.k)
        solution = await replace(self.omni, retriever=noting).solve(question, run)
        for plan, found in noting.searched:
            # A source that was down may be there for the next reader, so this is no result.
            if not any(result.failed for result in found.values()):
                self.shelf.store(question, plan, found)
        return solution


@dataclass(frozen=True)
class _NotingRetriever(PlannedRetriever):
    """Notes the plan that it searched, and what was found."""

    searched: list[tuple[SourcePlan, dict[Query, LookupResult]]] = field(default_factory=list)

    async def gather_results(
        self, plan: SourcePlan, run: Run, *, known: Mapping[Query, LookupResult] = {}
    ) -> dict[Query, LookupResult]:
        found = await super().gather_results(plan, run, known=known)
        self.searched[:] = [(plan, found)]
        return found


def plan_once(solver: Solver, settings: Settings, parts: Parts, folder: Path) -> Solver:
    """The solver; Omni-RAG's with its plans stored below the folder."""
    if isinstance(settings.strategy, OmniRagSettings) and isinstance(solver, OmniRag):
        return PlanOnce(solver, open_shelf(folder, settings, parts))
    return solver
