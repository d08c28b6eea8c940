"""Runs of a strategy with a model of some manners, behind a real server on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from competent import CompetentModel
from loopback_servers import LoopbackServer
from mannered import MODEL, Competent, Turns, serve_manners
from manners import Manners

from osler.answer.abstention import explain_abstention, tell_unread
from osler.build import Parts
from osler.build.models import LoadedModel, load_model
from osler.build.strategies import build_solver
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Role, Settings
from osler.trace import Budget, Noted, Run
from osler.types import Passage, Question, Retriever, Solution
from osler_lab.testing.scripted import ScriptedRetriever

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
    def last_prompts(self) -> str:
        """What the user's last turns said, one after another."""
        turns = (
            [turn for turn in one["messages"] if turn["role"] == "user"] for one in self.requests
        )
        return "\n".join(each[-1]["content"] for each in turns)

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
    retriever: Retriever | None = None,
    **sections: Any,
) -> ManneredRun:
    """Connects to the model as a user does, and solves the question."""
    async with serve_manners(competent or CompetentModel(), manners) as place:
        model_section = {**_model_section(place.url), **sections.pop("model", {})}
        settings = Settings.model_validate(
            {"home": home, "strategy": strategy, "model": model_section, **sections}
        )
        found = retriever or ScriptedRetriever({"": list(passages)})
        parts = _parts_of(await load_model(settings.model), found)
        before = len(place.bodies_of("/v1/chat/completions"))
        run = Run(budget=Budget(calls=60))
        solved = await build_solver(settings, parts).solve(question, run)
        # As whoever runs it for a user does.
        solution = tell_unread(explain_abstention(solved, run), run)
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
        settings = Settings.model_validate(
            {"home": home, "strategy": strategy, "model": _model_section(place.url)}
        )
        ready, done = await load_model(settings.model), list[ManneredRun]()
        for question, model, passages in asked:
            turn.append(model)
            before = len(place.bodies_of("/v1/chat/completions"))
            run = Run(budget=Budget(calls=60))
            found = ScriptedRetriever({"": list(passages)})
            solver = build_solver(settings, _parts_of(ready, found))
            solution = await solver.solve(question, run)
            made = place.bodies_of("/v1/chat/completions")[before:]
            done.append(ManneredRun(solution, run, made))
    return done


@asynccontextmanager
async def connect_mannered(
    manners: Manners, competent: Competent | None = None
) -> AsyncIterator[tuple[LoadedModel, LoopbackServer]]:
    """A model of these manners, connected to as a user does, and its server."""
    async with serve_manners(competent or CompetentModel(), manners) as place:
        settings = Settings.model_validate({"model": _model_section(place.url)})
        yield await load_model(settings.model), place


def _model_section(url: str) -> dict[str, Any]:
    return {"kind": "openai", "url": url, "name": MODEL, "writes": "yes"}


def _parts_of(ready: LoadedModel, found: Retriever) -> Parts:
    roles: tuple[Role, ...] = ("planner", "reader", "summariser", "judge")
    return Parts(
        dict.fromkeys(roles, ready),
        lambda user, sources: found,
        OverlapRelevance(),
        OverlapRelevance(),
        ("book",),
        offers=(SourceDescription("book"),),
    )


def with_manners(**changes: Any) -> Manners:
    return replace(Manners(), **changes)
