"""Methods that search at fixed points: every n tokens, or after every sentence.

Departures of both: no demonstrations are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.methods.single_pass.episode import Episode, EpisodeMethod
from osler_lab.baselines.continuation import (
    go_on,
    has_answer,
    join_sentences,
    next_sentence,
    repeats_text,
)


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
