"""Methods whose answer grows, each time with other passages in the prompt.

FL-RAG, FS-RAG, FLARE and DRAGIN (`dragin`) differ in when they search and with which query;
`go_on` writes what comes next.

IRCoT: each sentence of the reasoning is a search (KAG-Thinker Tables 6 and 10).

Trivedi et al. 2023, *Interleaving Retrieval with Chain-of-Thought Reasoning for
Knowledge-Intensive Multi-Step Questions*, §3: the question finds the first passages; then a
sentence is reasoned over all that was found, and searched for; it ends at "answer is:", or
after 10 sentences; at most 15 passages are collected. A separate reader then answers from the
passages (§3.2).

Departures: the steps are described instead of demonstrated; a search gives 3 passages, as
KAG-Thinker ran it (§4.1); 10 sentences are the released code's bound. The released code takes
question words out of a query and does not search for sentences that begin with "Thus" or "So";
here every sentence is the query, as in the paper.

FL-RAG and FS-RAG: a search at fixed points, every n tokens, or after every sentence. Departures of
both: no demonstrations are shown.

FLARE: look ahead, and search where the model was unsure (TC-RAG App. 8.5, method 11).

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

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Literal

from osler.llm.core.base import Completion, Message, TokenScore
from osler.llm.reading.answers import bare_words, is_debris
from osler.methods.episode import Episode, EpisodeMethod, said_so_far
from osler.prompts import RenderedPrompt
from osler.text import split_sentences
from osler.types import Hit, Language

_SHORT = 20
"""Characters of a piece that may well come twice."""
_ANSWERED = re.compile(r"<answer>[^<]*</answer>|\banswer is\b|答案(?:是|为)", re.IGNORECASE)


async def go_on(
    episode: Episode, found: Sequence[Hit], text: str, *, tokens: int, top: int = 0
) -> Completion:
    """The model's continuation of `text`, at most `tokens` long, with `hits` in the prompt.

    `top`: alternatives per token whose log-probabilities are wanted. Raises `BudgetExceeded`.
    """
    return await episode.ask(
        _continuation_prompt(episode, found), begun=text, tokens=tokens, top=top
    )


def continuation_messages(episode: Episode, found: Sequence[Hit], text: str) -> list[Message]:
    """The conversation in which the model continues `text`."""
    return said_so_far(_continuation_prompt(episode, found), text)


def _continuation_prompt(episode: Episode, found: Sequence[Hit]) -> RenderedPrompt:
    return episode.render("baselines/grow", documents=episode.list_documents(found))


def has_answer(text: str) -> bool:
    """Whether the text already states its answer ("So the answer is …")."""
    return _ANSWERED.search(text) is not None


def first_sentence(text: str) -> str:
    """The text up to the end of its first sentence, leading white space included."""
    spans = split_sentences(text)
    return text[: spans[0][1]] if spans else ""


def next_sentence(text: str, draft: str) -> str:
    """The first sentence of a continuation that is part of an answer; empty where it has come to
    its end, or says again what the draft says."""
    rest = text
    while (sentence := first_sentence(rest)) and is_debris(sentence):
        rest = rest[len(sentence) :]
    known = {bare_words(draft[start:end]) for start, end in split_sentences(draft)}
    return "" if bare_words(sentence) in known | {""} else sentence


def repeats_text(text: str, draft: str) -> bool:
    """Whether a piece of a continuation, of any length but a few words, is in the draft already."""
    said = bare_words(text)
    return len(said) > _SHORT and said in bare_words(draft)


def join_sentences(text: str, more: str, language: Language) -> str:
    """Joins two pieces of an answer: with a space in English, without one in Chinese."""
    if not text or not more:
        return text + more
    return f"{text.rstrip()}{'' if language == 'zh' else ' '}{more.lstrip()}"


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


@dataclass(frozen=True)
class FixedLength(EpisodeMethod):
    """FL-RAG: a search every n tokens, with the last n as the query (TC-RAG App. 8.5, method 4).

    After Khandelwal et al. 2020 (kNN-LM), Borgeaud et al. 2022 (RETRO) and Ram et al. 2023
    (IC-RALM), in the form that DRAGIN (Su et al. 2024, §4.2) compares with: the first query is
    the question; each window of n tokens is the query of the next, whose passages replace the
    last ones.

    Departures: TC-RAG gives no n; 16 is that of DRAGIN's released settings. Answers are bounded
    at the 256 tokens of FLARE's released script, which compares with the same method, instead of
    DRAGIN's 64 to 128, which suit answers after demonstrations.
    """

    window: int = 16
    length: int = 256
    """Tokens of an answer, at most."""

    async def run_episode(self, episode: Episode) -> str:
        query = episode.question.text
        for _ in range(0, self.length, self.window):
            hits = await episode.search(query)
            reply = await go_on(episode, hits, episode.draft, tokens=self.window)
            again = repeats_text(reply.text, episode.draft)
            if again or reply.finish == "stop":
                episode.draft += "" if again else reply.text
                break
            episode.draft += reply.text
            query = reply.text
            # A window may end within the answer: it is over where its sentence is.
            if has_answer(episode.draft) and episode.draft.rstrip().endswith((".", "。", ">")):
                break
        return f"written with a search every {self.window} tokens"


@dataclass(frozen=True)
class EverySentence(EpisodeMethod):
    """FS-RAG: a search after every sentence, with that sentence (TC-RAG App. 8.5, method 5).

    After Trivedi et al. 2023 (IRCoT) in the form that DRAGIN (Su et al. 2024, §4.2) compares
    with: the first query is the question, the passages of each search replace the last ones,
    and the text ends with its answer.

    Departures: 6 sentences at most, the bound of TC-RAG's released code; the paper has none.
    """

    sentences: int = 6
    look_ahead: int = 64
    """Tokens that are written to get a sentence; what follows it is thrown away."""

    async def run_episode(self, episode: Episode) -> str:
        query = episode.question.text
        for _ in range(self.sentences):
            hits = await episode.search(query)
            reply = await go_on(episode, hits, episode.draft, tokens=self.look_ahead)
            query = next_sentence(reply.text, episode.draft)
            episode.draft = join_sentences(episode.draft, query, episode.question.language)
            if has_answer(query) or not query:
                break
        return "written with a search a sentence"


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
