"""The strategy itself, imported when it is asked."""

from dataclasses import dataclass
from typing import Any

from osler.build.plugins import StrategyMaker
from osler.build.strategy_build import StrategyBuild
from osler.methods.episode import Episode, EpisodeMethod, MethodDeps
from osler.trace import Solver


class AskTwiceMaker(StrategyMaker):
    def make_solver(self, build: StrategyBuild, chosen: Any) -> Solver:
        sources = build.parts.sources
        found = build.parts.retriever("ask-twice", sources)
        deps = MethodDeps(build.reader, found, build.composer, sources, chosen.k, build.sampling)
        return AskTwice(deps)


@dataclass(frozen=True)
class AskTwice(EpisodeMethod):
    async def run_episode(self, episode: Episode) -> str:
        asked = episode.question.text
        for hit in (await episode.search(asked))[:1]:
            await episode.search(f"{hit.passage.title} {asked}")
        await episode.read_evidence()
        return "read after two searches"
