"""The papers' tables as packaged plans: each one is there, and runs with a model of a server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from loopback_servers import chat_reply, json_reply, serve_loopback

from osler.build import Parts
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.llm.core.base import Message, Scored
from osler.llm.server.client import OpenAIModel
from osler.llm.server.connection import Endpoint, ServerClient
from osler.llm.server.dialects import ServerProfile
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Settings, load
from osler.sources.catalogue import SOURCES
from osler.trace import Budget, Run
from osler.types import Halt, Passage, Question
from osler_lab.evaluate.experiments import experiment_names, list_names, read_experiment
from osler_lab.studies.evaluation import strategy_settings
from osler_lab.testing.scripted import ScriptedRetriever, tokens_after
from osler_lab.train.ablations import read_ablation

PAPERS = {
    "TC-RAG": {1, 3},
    "KAG-Thinker": {*range(6, 11)},
    "Omni-RAG": {*range(3, 15)},
}
NEEDS_MORE = {"dragin", "hykge"}
"""The model's attention; a concept graph."""
QUESTION = Question("q", "What treats iron deficiency anaemia?", ("oral iron", "warfarin"))
REPLY = json_reply(chat_reply("Oral iron treats it. <answer>A</answer>"))


def test_every_table_of_results_has_its_plan() -> None:
    repeats = [read_experiment(name).repeats for name in experiment_names()]
    repeats += [read_ablation(name).repeats for name in list_names("osler_lab.train.ablations")]
    for paper, wanted in PAPERS.items():
        tables = [re.search(r"Tables? ([\d, and]+)", one) for one in repeats if paper in one]
        found = {int(n) for one in tables if one for n in re.findall(r"\d+", one[1])}
        assert wanted <= found, paper


class ScoringModel(OpenAIModel):
    """A served model that can score a given text, as cppl needs it."""

    async def score(self, context: Sequence[Message] | str, text: str) -> Scored:
        return tokens_after(context, text, 0.5)


def parts_of(model: OpenAIModel) -> Parts:
    found = [Passage("book:iron#0", "Oral iron treats iron deficiency anaemia.", "book", "Iron")]
    ready = LoadedModel(model, model.constrains)
    return Parts(
        dict.fromkeys(("planner", "reader", "summariser", "judge"), ready),
        lambda user, sources: ScriptedRetriever({"": found}),
        OverlapRelevance(),
        OverlapRelevance(),
        SOURCES,
        offers=tuple(map(SourceDescription, SOURCES)),
    )


@pytest.mark.parametrize("name", experiment_names())
async def test_a_plan_runs_with_a_served_model(name: str, tmp_path: Path) -> None:
    def settings(flags: Mapping[str, object], preset: str | None) -> Settings:
        given = {**flags, "home": tmp_path, "model.writes": "yes"}
        return load(given, cwd=tmp_path, env={}, preset=preset).settings

    # What stands in `across` names a server each: one stands here for all of them.
    labels = [one for one in read_experiment(name).strategies if one not in NEEDS_MORE]
    async with serve_loopback(lambda _: REPLY) as place:
        api = ServerClient(Endpoint(base_url=place.url, model="m"), rng=Random(0))
        parts = parts_of(ScoringModel(api, ServerProfile(logprobs=True)))
        for label in labels:
            solver = build_solver(strategy_settings(label, settings), parts)
            done = await asyncio.wait_for(solver.solve(QUESTION, Run(budget=Budget(calls=10))), 30)
            assert done.halt in Halt, label
            assert done.why, label
        assert place.asked
