"""A strategy is an object with one method; here is one of ten lines.

    python examples/02_a_strategy_of_your_own.py

It searches with the question, then with the title of the best hit, and quotes what it found.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

import osler
from osler.answer import Composer
from osler.build.composers import build_composer
from osler.build.knowledge import build_sample
from osler.build.live import live_parts
from osler.retrieve import look_up
from osler.types import Halt


@dataclass(frozen=True)
class TwoSearches:
    retriever: osler.Retriever
    composer: Composer

    async def solve(self, question: osler.Question, run: osler.Run) -> osler.Solution:
        first = await look_up(self.retriever, question.text, run, k=3)
        topic = first.hits[0].passage.title if first.hits else question.text
        second = await look_up(self.retriever, f"{topic} {question.text}", run, k=3)
        hits = {hit.passage.id: hit for hit in (*first.hits, *second.hits)}
        answer = await self.composer.conclude(question, list(hits.values()), "", run)
        halt = Halt.CONVERGED if answer.statements else Halt.NO_EVIDENCE
        return osler.Solution(answer, halt, "two searches", run.usage)


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        settings = osler.load({"home": home}, cwd=Path.cwd(), env={}).settings
        build_sample(settings)
        parts = await live_parts(settings)
        solver = TwoSearches(parts.retriever("two", parts.sources), build_composer(settings, parts))
        run = osler.Run(sink=lambda event: print(event.type))
        question = osler.parse_question("Which drug reverses opioid overdose?")
        solution = await solver.solve(question, run)
        print(solution.answer.text or solution.answer.note)


if __name__ == "__main__":
    asyncio.run(main())
