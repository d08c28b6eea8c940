"""The papers' experiments run with a model of the user's own, behind a server: for form."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from loopback_servers import answer_chats_only, chat_reply, json_reply, serve_loopback

from osler.build import Parts, roles_of, run_budget
from osler.build.models import LoadedModel, load_roles
from osler.build.strategies import build_solver
from osler.errors import BadConfig, CapabilityMissing
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Role, Settings, load
from osler.sources.catalogue import ALL_SOURCES
from osler.trace import Run
from osler.types import Halt, Hit, Passage, Question
from osler_lab.evaluate.experiments import experiment_names, read_experiment
from osler_lab.studies.evaluation import strategy_settings
from osler_lab.testing.scripted import ScriptedRetriever

WORDS = "The answer is A. Warfarin is stopped before surgery. [1]"
ASKED = Question("q", "What happens to warfarin before surgery?", ("It is stopped", "Nothing"))
PASSAGE = Passage("book:a#0", "Warfarin is stopped before surgery.", "book", "A")
HIT = Hit(PASSAGE, 1.0, 1, "q", "book")
PLANS = [read_experiment(name) for name in experiment_names()]
# One of each strategy, with the first settings that an experiment gives it.
LABELS = {label.partition(":")[0]: label for one in reversed(PLANS) for label in one.strategies}


def parts_of(models: Mapping[Role, LoadedModel]) -> Parts:
    class Finds(ScriptedRetriever):
        async def search(self, query: str, *, k: int) -> list[Hit]:
            return [HIT]

    sources = tuple(ALL_SOURCES)
    scorer = OverlapRelevance()
    return Parts(models, lambda name, wanted: Finds({}), scorer, scorer, sources)


# What this server does not tell: attention, any token's probability, a concept graph's chains.
CANNOT = {
    "dragin": "attention",
    "hykge": "chains",
    "tc-rag": "strategy.metric",
    "unified": "strategy.metric",
}


@pytest.mark.parametrize("label", LABELS.values())
async def test_a_papers_experiment_runs_with_any_model_behind_a_server(
    label: str, tmp_path: Path
) -> None:
    async with serve_loopback(answer_chats_only(json_reply(chat_reply(WORDS)))) as place:
        own = {"model.kind": "openai", "model.url": place.url, "model.name": "big-72b"}

        def with_server(flags: Mapping[str, object], preset: str | None) -> Settings:
            planner = {"roles.planner.url": place.url} if preset else {}
            return load({**flags, **own, **planner}, cwd=tmp_path, env={}, preset=preset).settings

        settings = strategy_settings(label, with_server)
        models = await load_roles(settings, roles_of(settings))
        run = Run(budget=run_budget(settings))
        try:
            solution = await build_solver(settings, parts_of(models)).solve(ASKED, run)
        except (BadConfig, CapabilityMissing) as refused:
            why = f"{refused.message} {refused.fix}"
        else:
            why = ""
            assert solution.halt in Halt
            asked = {body["model"] for body in place.bodies_of("/v1/chat/completions")}
            assert "big-72b" in asked
        assert not why or CANNOT.get(settings.strategy.kind, "never") in why, why
