"""MedRAG, many passages of fused rankings and a chain of thought; i-MedRAG, in rounds of it.

Xiong et al. 2024, *Benchmarking Retrieval-Augmented Generation for Medicine*, §3: 32 snippets
by Reciprocal Rank Fusion of several retrievers (k of the fusion 100), then the question with
its options, answered as JSON with `step_by_step_thinking` and `answer_choice`.

RRF-2 fuses the rankings of the word index and of the vector index, with equal weights; RRF-4 also
those of the knowledge units that were extracted of the chunks, by words and by vectors. Whoever
builds the retriever sees to it.

Departures: the paper's four are BM25 and three encoders (Contriever, SPECTER, MedCPT) over the
same chunks; a knowledge base here has vectors of one encoder. As many snippets are shown as fit the
prompt, as in the released code. An open question's answer is the thinking.

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

from osler.answer import UNDECIDED
from osler.llm.reading.answers import answer_words
from osler.llm.reading.json_replies import json_in, read_list
from osler.methods.single_pass.episode import Episode, EpisodeMethod


@dataclass(frozen=True)
class MedRag(EpisodeMethod):
    async def run_episode(self, episode: Episode) -> str:
        hits = await episode.search(episode.question.text)
        conclude_json(
            episode,
            await episode.ask_text("baselines/medrag", documents=episode.list_documents(hits)),
        )
        return "one chain of thought over fused rankings"


def conclude_json(episode: Episode, text: str) -> None:
    """Decides for `{"step_by_step_thinking": …, "answer_choice": …}`, else for the text."""
    value = json_in(text)
    if not isinstance(value, dict):
        episode.conclude_text(text)
        return
    thinking = str(value.get("step_by_step_thinking", ""))
    choice = str(value.get("answer_choice", ""))
    if episode.question.options:
        episode.conclude_answer(choice, thinking)
    else:
        episode.conclude_text(thinking or choice)


_QUERIES = re.compile(r"^\W*(?:queries|查询|问题)\b\W*$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class IMedRag(EpisodeMethod):
    rounds: int = 4
    queries: int = 3

    async def run_episode(self, episode: Episode) -> str:
        known: list[str] = []
        episode.decision = UNDECIDED  # an answer to a follow-up question decides nothing
        for _ in range(self.rounds):
            queries = await self._follow_up_queries(episode, known)
            for query in queries:
                episode.draft = await self._answer_query(episode, query)
                known.append(f"Query: {query}\nAnswer: {episode.draft}")
            if not queries:
                break
        conclude_json(episode, await episode.ask_text("baselines/i_medrag_answer", known=known))
        return "answered from follow-up questions"

    async def _follow_up_queries(self, episode: Episode, known: list[str]) -> list[str]:
        return read_queries(
            await episode.ask_text("baselines/i_medrag_ask", known=known, limit=self.queries),
            self.queries,
        )

    async def _answer_query(self, episode: Episode, query: str) -> str:
        hits = await episode.search(query)
        documents = episode.list_documents(hits)
        reply = await episode.ask_text(
            "baselines/i_medrag_reply", question=query, documents=documents
        )
        return " ".join(answer_words(reply).split())


def read_queries(text: str, most: int) -> list[str]:
    """The queries under their heading; [] without a heading, unless the reply is a JSON list."""
    parts = _QUERIES.split(text)
    if len(parts) == 1 and "[" not in text:
        return []
    return read_list(parts[-1], most)
