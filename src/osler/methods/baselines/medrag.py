"""MedRAG: many passages of fused rankings, then a chain of thought.

Xiong et al. 2024, *Benchmarking Retrieval-Augmented Generation for Medicine*, §3: 32 snippets
by Reciprocal Rank Fusion of several retrievers (k of the fusion 100), then the question with
its options, answered as JSON with `step_by_step_thinking` and `answer_choice`.

RRF-2 fuses the rankings of the word index and of the vector index, with equal weights; RRF-4 also
those of the knowledge units that were extracted of the chunks, by words and by vectors. Whoever
builds the retriever sees to it.

Departures: the paper's four are BM25 and three encoders (Contriever, SPECTER, MedCPT) over the
same chunks; a knowledge base here has vectors of one encoder. As many snippets are shown as fit the
prompt, as in the released code. An open question's answer is the thinking.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.baselines.replies import json_in
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
