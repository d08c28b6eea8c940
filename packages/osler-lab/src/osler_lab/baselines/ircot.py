"""IRCoT: each sentence of the reasoning is a search (KAG-Thinker Tables 6 and 10).

Trivedi et al. 2023, *Interleaving Retrieval with Chain-of-Thought Reasoning for
Knowledge-Intensive Multi-Step Questions*, §3: the question finds the first passages; then a
sentence is reasoned over all that was found, and searched for; it ends at "answer is:", or
after 10 sentences; at most 15 passages are collected. A separate reader then answers from the
passages (§3.2).

Departures: the steps are described instead of demonstrated; a search gives 3 passages, as
KAG-Thinker ran it (§4.1); 10 sentences are the released code's bound. The released code takes
question words out of a query and does not search for sentences that begin with "Thus" or "So";
here every sentence is the query, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler_lab.baselines.continuation import has_answer, join_sentences, next_sentence


@dataclass(frozen=True)
class IRCoT(EpisodeMethod):
    steps: int = 10
    passages: int = 15
    look_ahead: int = 96
    """Tokens that are written to get a sentence."""

    async def run_episode(self, episode: Episode) -> str:
        await episode.search(episode.question.text)
        for _ in range(self.steps):
            sentence = await self._next_sentence(episode)
            episode.draft = join_sentences(episode.draft, sentence, episode.question.language)
            if has_answer(sentence) or not sentence:
                break
            # §3: the sentence just written is the next query.
            hits = await episode.search(sentence, keep=False)
            episode.keep_hits(hits[: max(0, self.passages - len(episode.hits))])
        await episode.read_evidence()
        return "reasoned with a search a sentence"

    async def _next_sentence(self, episode: Episode) -> str:
        prompt = episode.render("baselines/ircot", documents=episode.list_documents())
        reply = await episode.ask(prompt, begun=episode.draft, tokens=self.look_ahead)
        return next_sentence(reply.text, episode.draft)
