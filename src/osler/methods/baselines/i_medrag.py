"""i-MedRAG: rounds of follow-up questions, each answered by MedRAG.

Xiong et al. 2025, *Improving Retrieval-Augmented Generation in Medicine with Iterative
Follow-up Questions*, §2: in each of 4 rounds the model analyses what is known and writes 3
queries ("## Analysis", "## Queries"); each is answered from passages of its own; after the last
round the question is answered from all queries and answers.

Departures: 32 passages are found for a query, as many are read as fit the prompt. A round
without a readable query ends the asking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from osler.methods.baselines.episode import Episode, MethodDeps
from osler.methods.baselines.medrag import conclude_json
from osler.methods.baselines.replies import read_list
from osler.trace import Run
from osler.types import Question, Solution

_QUERIES = re.compile(r"^\W*(?:queries|查询|问题)\b\W*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class IMedRag:
    kit: MethodDeps
    rounds: int = 4
    queries: int = 3

    async def solve(self, question: Question, run: Run) -> Solution:
        with Episode(self.kit, question, run) as line:
            known: list[str] = []
            for _ in range(self.rounds):
                queries = await self._follow_up_queries(line, known)
                for query in queries:
                    known.append(f"Query: {query}\nAnswer: {await self._answer_query(line, query)}")
                    line.draft = known[-1].partition("Answer: ")[2]
                if not queries:
                    break
            prompt = line.render_prompt(
                "baselines/i_medrag_answer", **line.question_variables, known=known
            )
            conclude_json(line, (await line.ask_model(prompt)).text)
        return await line.end_episode("answered from follow-up questions")

    async def _follow_up_queries(self, line: Episode, known: list[str]) -> list[str]:
        prompt = line.render_prompt(
            "baselines/i_medrag_ask", **line.question_variables, known=known, limit=self.queries
        )
        return read_queries((await line.ask_model(prompt)).text, self.queries)

    async def _answer_query(self, line: Episode, query: str) -> str:
        found = await line.find_hits(query)
        prompt = line.render_prompt(
            "baselines/i_medrag_reply", question=query, documents=line.list_documents(found)
        )
        return " ".join((await line.ask_model(prompt)).text.split())


def read_queries(text: str, most: int) -> list[str]:
    """The queries under their heading; [] without a heading, unless the reply is a JSON list."""
    parts = _QUERIES.split(text)
    if len(parts) == 1 and "[" not in text:
        return []
    return read_list(parts[-1], most)
