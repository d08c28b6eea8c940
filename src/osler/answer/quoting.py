"""Which sentences are quoted where the expert `answers` judges them: as many as answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Protocol

from osler.answer.sentences import QuoteCandidate
from osler.llm.recording import Boundary
from osler.retrieve.experts.answering import TextPair
from osler.retrieve.naming import has_no_one_subject
from osler.types import Question

ANSWERS = "answers"
"""Name of the expert, also on tapes."""
_DEFINED = re.compile(
    r"^\W*(?:please )?(?:define|explain|what (?:is|are)(?: \(are\))?)\s+(?:an?\s+|the\s+)?"
    r"(?P<subject>[^?.,;:]{2,80}?)(?:\s+mean)?\s*[?.]*\s*$",
    re.IGNORECASE,
)
_OF = re.compile(r"\b(?:of|for|in|with|between|from|to|used|caused|by)\b", re.IGNORECASE)
_DEFINES = r"\b.{0,80}?\b(?:is|are|refers? to|means|was|were)\b\s+(?:an?|the|one|any|also)\b"


class TextJudge(Protocol):
    """What judges whether texts answer a question: `AnswersExpert`."""

    def can_judge(self, question: str) -> bool: ...

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        """Probabilities in [0, 1], in order."""
        ...


@dataclass(frozen=True)
class QuoteJudge:
    """Quotes the sentences that an expert holds to answer, the surest first."""

    expert: TextJudge | None
    """`None` behind a tape that plays."""
    most: int = 5
    """Sentences of an answer."""
    read: int = 16
    """Candidates that are judged, the most relevant of all."""
    share: float = 0.6
    """Least probability of a further quote, as a share of the first one's."""
    boundary: Boundary | None = None
    """The tape that records what the expert says, or plays it."""

    def can_judge(self, question: Question) -> bool:
        """Whether the expert can; else the rule chooses. On a tape, whether it is asked."""
        if self.expert is not None and self.boundary is None:
            return self.expert.can_judge(question.text)
        return question.language == "en" and not has_no_one_subject(question.text)

    async def choose_quotes(
        self, question: Question, query: str, found: Sequence[QuoteCandidate]
    ) -> list[QuoteCandidate]:
        """One to `most` of the candidates, which come most relevant first; `relevance` is now the
        probability that it answers. None where the expert cannot judge.

        `query` is what is judged: the question, or the question with the chosen option.
        """
        read = found[: self.read]
        texts = [TextPair(one.text, one.hit.passage.heading) for one in read]
        shares = await self._judge_texts(query, texts)
        if not shares:
            return []
        order = sorted(range(len(read)), key=lambda at: (-shares[at], at))
        chosen: dict[str, QuoteCandidate] = {}
        for at in order:
            if len(chosen) == self.most or shares[at] < self.share * shares[order[0]]:
                break
            # Two passages may say the same in the same words.
            words = " ".join(read[at].text.casefold().split())
            chosen.setdefault(words, replace(read[at], relevance=shares[at]))
        return put_definition_first(question.text, list(chosen.values()))

    async def _judge_texts(self, query: str, texts: Sequence[TextPair]) -> tuple[float, ...]:
        async def work() -> tuple[float, ...]:
            expert = self.expert
            if expert is None or not expert.can_judge(query):
                return ()
            return tuple(await asyncio.to_thread(expert.judge_texts, query, texts))

        if self.boundary is None:
            return await work()
        asked = tuple("\n".join(map(str, astuple(one))) for one in texts)
        return await self.boundary.call("relevance", (ANSWERS, query, asked), work)


def put_definition_first(question: str, quotes: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The quotes, to "What is X?" with one first that says what X is."""
    asked = _DEFINED.match(question)
    if asked is None or _OF.search(asked["subject"]):
        return list(quotes)
    defines = re.compile(re.escape(asked["subject"].strip()) + _DEFINES, re.IGNORECASE)
    first = next((one for one in quotes if defines.search(one.text)), None)
    return [*([first] if first else []), *(one for one in quotes if one is not first)]
