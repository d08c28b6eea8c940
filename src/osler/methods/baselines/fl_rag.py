"""FL-RAG: a search every n tokens, with the last n as the query (TC-RAG App. 8.5, method 4).

After Khandelwal et al. 2020 (kNN-LM), Borgeaud et al. 2022 (RETRO) and Ram et al. 2023
(IC-RALM), in the form that DRAGIN (Su et al. 2024, §4.2) compares with: the first search is
the question; each window of n tokens is the query of the next, whose passages replace the
last ones.

Departures: TC-RAG gives no n; 16 is that of DRAGIN's released settings. No demonstrations
are shown, so the length of an answer is bounded at the 256 tokens of FLARE's released script,
which compares with the same method, instead of DRAGIN's 64 to 128.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.baselines.continuation import go_on, has_answer
from osler.methods.baselines.episode import Episode, MethodDeps
from osler.trace import Run
from osler.types import Question, Solution


@dataclass(frozen=True)
class FixedLength:
    kit: MethodDeps
    window: int = 16
    length: int = 256
    """Tokens of an answer, at most."""

    async def solve(self, question: Question, run: Run) -> Solution:
        with Episode(self.kit, question, run) as line:
            query = question.text
            for _ in range(0, self.length, self.window):
                found = await line.find_hits(query)
                said = await go_on(line, found, line.draft, tokens=self.window)
                line.draft += said.text
                if said.finish == "stop" or has_answer(line.draft):
                    break
                query = said.text
        return await line.end_episode(f"written with a search every {self.window} tokens")
