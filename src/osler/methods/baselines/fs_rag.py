"""FS-RAG: a search after every sentence, with that sentence (TC-RAG App. 8.5, method 5).

After Trivedi et al. 2023 (IRCoT) in the form that DRAGIN (Su et al. 2024, §4.2) compares
with: the first search is the question, the passages of each replace the last ones, and the
text ends with its answer.

Departures: 6 sentences at most, the bound of TC-RAG's released code; the paper has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.baselines.continuation import first_sentence, go_on, has_answer, join_sentences
from osler.methods.baselines.episode import Episode, MethodDeps
from osler.trace import Run
from osler.types import Question, Solution


@dataclass(frozen=True)
class EverySentence:
    kit: MethodDeps
    sentences: int = 6
    look_ahead: int = 64
    """Tokens that are written to get a sentence; what follows it is thrown away."""

    async def solve(self, question: Question, run: Run) -> Solution:
        with Episode(self.kit, question, run) as line:
            query = question.text
            for _ in range(self.sentences):
                found = await line.find_hits(query)
                said = await go_on(line, found, line.draft, tokens=self.look_ahead)
                query = first_sentence(said.text)
                line.draft = join_sentences(line.draft, query, question.language)
                if has_answer(query) or not query:
                    break
        return await line.end_episode("written with a search a sentence")
