"""FLARE: look ahead, and search where the model was unsure (TC-RAG App. 8.5, method 11).

Jiang et al. 2023, *Active Retrieval Augmented Generation*, §3.2 (FLARE direct). The first
search is the question. Then, sentence by sentence: a tentative sentence is written; if each
of its tokens has a probability of at least theta it stands (Eq. in §3.2.1), else it becomes
the query and the sentence is written anew with what was found. The query is the sentence
itself ("direct") or the sentence without its tokens below beta ("masked", §3.2.2).

Departures: the explicit query, a question that a model asks of an unsure span, is left out;
so is FLARE instruct. theta 0.8, beta 0.4 and two passages are the released settings for
questions of several hops (2WikiMultihopQA). Whether a
model tells log-probabilities is seen in its replies alone, so none is refused when the strategy
is built: a sentence without any counts as unsure, which the trace says, and the
method is then a search a sentence. The loop ends after `rounds` sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Literal

from osler.llm.core.base import Completion, TokenScore
from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler.types import Hit
from osler_lab.baselines.continuation import go_on, has_answer, join_sentences, next_sentence


@dataclass(frozen=True)
class Flare(EpisodeMethod):
    theta: float = 0.8
    """Probability from which a token counts as certain."""
    beta: float = 0.4
    """Tokens below it are masked in the query."""
    query: Literal["masked", "direct"] = "masked"
    look_ahead: int = 64
    rounds: int = 8
    """Sentences of an answer, at most (ours)."""

    async def run_episode(self, episode: Episode) -> str:
        hits: Sequence[Hit] = await episode.search(episode.question.text)
        for _ in range(self.rounds):
            sentence = await self._next_sentence(episode, hits)
            episode.draft = join_sentences(episode.draft, sentence, episode.question.language)
            if has_answer(sentence) or not sentence:
                break
            hits = ()  # §3.2.1: a sentence is tentative without passages
        return "written, and searched where the model was unsure"

    async def _next_sentence(self, episode: Episode, found: Sequence[Hit]) -> str:
        # §3.2.1: the tentative sentence, written without passages after the first.
        ahead = await go_on(episode, found, episode.draft, tokens=self.look_ahead, top=1)
        sentence = next_sentence(ahead.text, episode.draft)
        if not sentence:  # the text has come to its end, or begins again
            return ""
        tokens = sentence_tokens(ahead, sentence)
        # Without log-probabilities every sentence counts as uncertain.
        if tokens and is_sure(tokens, self.theta):
            return sentence
        episode.note(f"unsure ({_describe_least_sure(tokens)}): {sentence.strip()}")
        query = mask_unsure(sentence, tokens, self.beta) if self.query == "masked" else sentence
        # A sentence of which nothing is left asks the question: `find` sees to it.
        fresh = await episode.search(query)
        anew = await go_on(episode, fresh, episode.draft, tokens=self.look_ahead)
        return next_sentence(anew.text, episode.draft)


def _describe_least_sure(tokens: Sequence[TokenScore]) -> str:
    if not tokens:
        return "no log-probabilities were told"
    return f"least probability {min(exp(token.logprob) for token in tokens):.2f}"


def sentence_tokens(completion: Completion, sentence: str) -> tuple[TokenScore, ...]:
    """The reply's tokens that lie in the sentence, with their places in it."""
    begin = max(0, completion.text.find(sentence))
    return tuple(
        replace(token, start=token.start - begin, end=token.end - begin)
        for token in completion.tokens
        if begin <= token.start < begin + len(sentence)
    )


def is_sure(tokens: Sequence[TokenScore], theta: float) -> bool:
    """Whether every token has a probability of at least `theta` (§3.2.1)."""
    return all(exp(token.logprob) >= theta for token in tokens)


def mask_unsure(sentence: str, tokens: Sequence[TokenScore], beta: float) -> str:
    """The sentence without the characters of tokens whose probability is below `beta` (§3.2.2)."""
    low = {i for t in tokens if exp(t.logprob) < beta for i in range(t.start, t.end)}
    return " ".join("".join(c for i, c in enumerate(sentence) if i not in low).split())
