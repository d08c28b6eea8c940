"""Runs of a strategy with a model of some manners, behind a real server on loopback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from osler.app.config import Role, Settings
from osler.app.wiring import Parts
from osler.app.wiring.models import LoadedModel, load_model
from osler.app.wiring.strategies import build_solver
from osler.methods.omni.describe import SourceDescription
from osler.retrieve.relevance import OverlapRelevance
from osler.testing.competent import CompetentModel
from osler.testing.mannered import MODEL, Competent, Turns, serve_manners
from osler.testing.manners import Manners
from osler.testing.scripted import ScriptedRetriever
from osler.trace import Budget, Noted, Run
from osler.types import Passage, Question, Solution

QUESTION = Question("q", "What treats iron deficiency anaemia?")
IRON = Passage(
    "book:iron#0",
    "Oral iron treats iron deficiency anaemia. It is taken daily on an empty stomach.",
    "book",
    "Iron",
)
TEA = Passage("book:tea#0", "Tea lowers the uptake of iron from food.", "book", "Tea")


@dataclass(frozen=True)
class ManneredRun:
    """What came of a run."""

    solution: Solution
    run: Run
    requests: list[Any]
    """Bodies of its chats."""

    @property
    def chats(self) -> int:
        return len(self.requests)

    @property
    def text(self) -> str:
        """What a user is shown: the answer and its note."""
        answer = self.solution.answer
        return f"{answer.text}\n{answer.note}"

    @property
    def notes(self) -> str:
        return "\n".join(event.text for event in self.run.events if isinstance(event, Noted))


async def run_mannered(
    strategy: dict[str, object],
    manners: Manners,
    home: Path,
    *,
    competent: Competent | None = None,
    question: Question = QUESTION,
    passages: tuple[Passage, ...] = (IRON, TEA),
    **sections: Any,
) -> ManneredRun:
    """Connects to the model as a user does, and solves the question."""
    async with serve_manners(competent or CompetentModel(), manners) as place:
        model_section = {
            "kind": "openai",
            "url": place.url,
            "name": MODEL,
            "writes": "yes",
            **sections.pop("model", {}),
        }
        settings = Settings.model_validate(
            {"home": home, "strategy": strategy, "model": model_section, **sections}
        )
        parts = _parts_of(await load_model(settings.model), passages)
        before = len(place.bodies_of("/v1/chat/completions"))
        run = Run(budget=Budget(calls=60))
        solution = await build_solver(settings, parts).solve(question, run)
        return ManneredRun(solution, run, place.bodies_of("/v1/chat/completions")[before:])


async def solve_in_turn(
    strategy: dict[str, object],
    manners: Manners,
    home: Path,
    asked: Sequence[tuple[Question, CompetentModel, tuple[Passage, ...]]],
) -> list[ManneredRun]:
    """Solves questions one after another with one server: each with the model that knows it, and
    the passages that are found."""
    turn: list[CompetentModel] = [asked[0][1]]

    def answer_turn(turns: Turns, begun: str) -> str:
        return turn[-1](turns, begun)

    async with serve_manners(answer_turn, manners) as place:
        section = {"kind": "openai", "url": place.url, "name": MODEL, "writes": "yes"}
        settings = Settings.model_validate({"home": home, "strategy": strategy, "model": section})
        ready, done = await load_model(settings.model), list[ManneredRun]()
        for question, model, passages in asked:
            turn.append(model)
            before = len(place.bodies_of("/v1/chat/completions"))
            run = Run(budget=Budget(calls=60))
            solver = build_solver(settings, _parts_of(ready, passages))
            solution = await solver.solve(question, run)
            made = place.bodies_of("/v1/chat/completions")[before:]
            done.append(ManneredRun(solution, run, made))
    return done


def _parts_of(ready: LoadedModel, passages: tuple[Passage, ...]) -> Parts:
    roles: tuple[Role, ...] = ("planner", "reader", "summariser", "judge")
    return Parts(
        dict.fromkeys(roles, ready),
        lambda user, sources: ScriptedRetriever({"": list(passages)}),
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
        offers=(SourceDescription("book"),),
    )


def with_manners(**changes: Any) -> Manners:
    return replace(Manners(), **changes)
