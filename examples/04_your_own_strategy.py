"""A strategy for medicine: ask the most trusted source first, and compare it with a built-in one.

    python examples/04_your_own_strategy.py

`TrustedFirst` searches guidelines, then books, and so on, and stops at the first source that
answers the question. It shows what a strategy must do: look up within the budget of the run, leave
the answer to a composer, and end with a `Halt` rather than an exception. The program then runs it
beside `rag`, which searches all sources at once, and prints what each of them cites.
"""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

import osler
from osler.answer import Composer
from osler.build import Parts
from osler.build.composers import build_composer
from osler.build.live import live_parts
from osler.build.models import load_encoder
from osler.build.strategies import build_solver
from osler.retrieve import look_up
from osler.trace import Budget, BudgetExceeded
from osler.types import Halt, Hit

ORDER = ("guideline", "book", "research", "wiki", "graph", "web")
NOTES = {
    "guideline": "# Anaphylaxis\n\nAdrenaline 0.5 mg is given into the thigh at once.\n",
    "book": "# Opioids\n\nNaloxone reverses an opioid overdose within two minutes.\n",
    "web": "# First aid\n\nIn anaphylaxis, an adrenaline pen is given into the thigh at once.\n"
    "Naloxone spray reverses an opioid overdose.\n",
}
QUESTIONS = (
    "What is given into the thigh at once in anaphylaxis?",
    "What reverses an opioid overdose?",
    "Which club won the cup in 1987?",
)


@dataclass(frozen=True)
class TrustedFirst:
    """Any object with this `solve` method is a strategy (`osler.Solver`)."""

    parts: Parts
    composer: Composer
    k: int = 4

    async def solve(self, question: osler.Question, run: osler.Run) -> osler.Solution:
        hits: list[Hit] = []
        answer = osler.Answer(language=question.language)
        try:
            for source in sorted(self.parts.sources, key=_place):
                retriever = self.parts.retriever("trusted-first", (source,))
                found = await look_up(retriever, question.text, run, k=self.k, sources=(source,))
                hits += found.hits
                answer = await self.composer.conclude(question, hits, "", run)
                if answer.statements:
                    return osler.Solution(answer, Halt.CONVERGED, f"{source} answers", run.usage)
        except BudgetExceeded as spent:
            return osler.Solution(answer, Halt.BUDGET, f"spent: {spent}", run.usage)
        return osler.Solution(answer, Halt.NO_EVIDENCE, "no source answers", run.usage)


def _place(source: str) -> int:
    """Sources of your own come last."""
    return ORDER.index(source) if source in ORDER else len(ORDER)


def _line(name: str, solution: osler.Solution) -> str:
    cited = ", ".join(dict.fromkeys(one.passage.source for one in solution.answer.evidence))
    return f"  {name:14} {solution.halt:12} cites: {cited or '-':20} {solution.why}"


def build(settings: osler.Settings) -> None:
    with osler.KnowledgeBase.create(settings.kb.path) as kb:
        for source, text in NOTES.items():
            page = settings.kb.path.with_name(f"{source}.md")
            page.write_text(text, encoding="utf-8")
            kb.add([page], source=source)
        kb.build(load_encoder(settings))


async def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        flags = {"home": home, "strategy.kind": "rag"}
        settings = osler.load(flags, cwd=Path.cwd(), env={}).settings
        await asyncio.to_thread(build, settings)
        parts = await live_parts(settings)
        mine = TrustedFirst(parts, build_composer(settings, parts))
        rag = build_solver(settings, parts)

        for text in QUESTIONS:
            question = osler.parse_question(text)
            print(question.text)
            print(_line("trusted-first", await mine.solve(question, osler.Run())))
            print(_line("rag", await rag.solve(question, osler.Run())))

        print("With a budget of one search:")
        bounded = osler.Run(budget=Budget(searches=1))
        print(_line("trusted-first", await mine.solve(osler.parse_question(QUESTIONS[2]), bounded)))


if __name__ == "__main__":
    asyncio.run(main())
