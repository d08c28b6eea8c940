"""A file format and a strategy that another package adds to Osler."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Literal

from osler.build.plugins import StrategyMaker
from osler.build.strategy_build import StrategyBuild
from osler.methods.single_pass.episode import Episode, EpisodeMethod, MethodDeps
from osler.settings import PluginSettings
from osler.sources.records import Document, Record, Section
from osler.trace import Solver


class NoteFormat:
    """`.note` files: a title in the first line, then the text."""

    name = "note"

    def matches(self, name: str, head: bytes) -> bool:
        return name.endswith(".note")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        title, _, text = stream.read().decode("utf-8").partition("\n")
        yield Document(name.removesuffix(".note"), title, (Section(text.strip()),))


class AskTwiceSettings(PluginSettings):
    """Two searches: for the question, and for it under the title of what was found first."""

    kind: Literal["ask-twice"] = "ask-twice"
    maker: ClassVar[str] = "osler_example:AskTwiceMaker"
    k: int = 5
    """Passages of one search."""


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
