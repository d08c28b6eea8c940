"""Which sentences are quoted where the expert `answers` judges them: as many as answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Protocol

from osler.answer.sentences import QuoteCandidate, quotable_spans
from osler.llm.recording import Boundary
from osler.retrieve.experts.answer_cues import share_covered
from osler.retrieve.experts.answering import LEAD, TextPair
from osler.retrieve.naming import has_no_one_subject
from osler.types import Hit, Question

ANSWERS = "answers"
"""Name of the expert, also on tapes."""
READ = frozenset({"web", "research"})
"""Sources like those whose sentences were read to learn what answers. In books and guidelines it
refuses, and misses, what the rule quotes."""
QUOTES = "answers: quotes"
"""Name on tapes of what it says of sentences to be quoted."""
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

    def judge_quotes(self, question: str, sentences: Sequence[TextPair]) -> list[float]:
        """Probabilities that sentences answer what is asked, in order; 0 for what is not read."""


@dataclass(frozen=True)
class QuoteJudge:
    """Quotes the sentences that an expert holds to answer, the surest first, or none.

    It judges of each passage the sentences that share most words with the question, and with them
    the beginning of the passage.
    """

    expert: TextJudge | None
    """`None` behind a tape that plays."""
    most: int = 5
    """Sentences of an answer."""
    passages: int = 8
    """Passages that are judged, in the order of the search."""
    each: int = 2
    """Sentences of a passage by which it is judged."""
    read: int = 8
    """Sentences of a passage that may be quoted, as they share words with the question."""
    first: float = 0.6
    """Least probability of a quote; below it the evidence does not say what is asked."""
    further: float = 0.9
    """Least probability of a further quote."""
    share: float = 0.6
    """In other sources than `READ`: least probability of a further quote, as a share of the first
    one's."""
    boundary: Boundary | None = None
    """The tape that records what the expert says, or plays it."""

    def can_judge(self, question: Question) -> bool:
        """Whether the expert can; else the rule chooses. On a tape, whether it is asked."""
        if self.expert is not None and self.boundary is None:
            return self.expert.can_judge(question.text)
        return question.language == "en" and not has_no_one_subject(question.text)

    async def choose_quotes(
        self,
        question: Question,
        query: str,
        evidence: Sequence[QuoteCandidate],
        hits: Sequence[Hit],
    ) -> list[QuoteCandidate] | None:
        """At most `most` sentences; `relevance` is now the probability that one answers. None
        where nothing says what is asked, in sources of `READ`; `None` where the expert cannot
        judge.

        `evidence` is what may be quoted; of a document that it is from, all passages among the hits
        may be. `query` is what is judged: the question, or the question with the chosen option,
        whose best sentence is quoted in any case.
        """
        known = bool(evidence) and evidence[0].hit.passage.source in READ
        same = _same_documents(evidence, hits)
        found = self._choose_candidates(query, same, self.read if known else self.each)
        shares = await self._judge_candidates(query, found, quotes=known)
        if not shares:
            return None
        least = self.first if known and query == question.text else 0.0
        further = self.further if known else self.share * max(shares)
        chosen: dict[str, QuoteCandidate] = {}
        for at in sorted(range(len(found)), key=lambda at: (-shares[at], at)):
            if len(chosen) == self.most or shares[at] < (further if chosen else least):
                break
            # Two passages may say the same in the same words.
            words = " ".join(found[at].text.casefold().split())
            chosen.setdefault(words, replace(found[at], relevance=shares[at]))
        return put_definition_first(question.text, list(chosen.values()))

    async def judge_passages(self, query: str, hits: Sequence[Hit]) -> dict[str, float]:
        """Of each of the first passages, by its id, the highest probability that a sentence
        answers. None where the expert cannot judge. What is judged again to be quoted is
        remembered."""
        found = self._choose_candidates(query, hits, self.each)
        best: dict[str, float] = {}
        for one, share in zip(found, await self._judge_candidates(query, found), strict=False):
            best[one.hit.passage.id] = max(share, best.get(one.hit.passage.id, 0.0))
        return best

    def _choose_candidates(
        self, query: str, hits: Sequence[Hit], each: int
    ) -> list[QuoteCandidate]:
        """Of each of the first passages the sentences that share most words with the question."""
        found = []
        spans = [(hit, own) for hit in hits if (own := quotable_spans(hit))]
        for hit, own in spans[: self.passages]:
            texts = [f"{hit.passage.heading}. {hit.passage.text[a:b]}" for a, b in own]
            shares = share_covered(query, texts)
            order = sorted(range(len(own)), key=lambda at: (-shares[at], at))
            found += [QuoteCandidate(hit, *own[at], shares[at]) for at in order[:each]]
        return found

    async def _judge_candidates(
        self, query: str, found: Sequence[QuoteCandidate], *, quotes: bool = False
    ) -> tuple[float, ...]:
        texts = [
            TextPair(one.text, one.hit.passage.heading, one.hit.passage.text[:LEAD])
            for one in found
        ]
        return await self.judge_texts(query, texts, quotes=quotes) if texts else ()

    async def judge_texts(
        self, query: str, texts: Sequence[TextPair], *, quotes: bool = False
    ) -> tuple[float, ...]:
        """Probabilities, in order, that each text answers; none where the expert cannot judge.

        `quotes`: that it answers what is asked, and may be quoted.
        """

        async def work() -> tuple[float, ...]:
            expert = self.expert
            if expert is None or not expert.can_judge(query):
                return ()
            judge = expert.judge_quotes if quotes else expert.judge_texts
            return tuple(await asyncio.to_thread(judge, query, texts))

        if self.boundary is None:
            return await work()
        asked = tuple("\n".join(map(str, astuple(one))) for one in texts)
        name = QUOTES if quotes else ANSWERS
        return await self.boundary.call("relevance", (name, query, asked), work)


def _same_documents(evidence: Sequence[QuoteCandidate], hits: Sequence[Hit]) -> list[Hit]:
    """The hits that are evidence, and others of documents with their titles, in their order."""
    here = {one.hit.passage.id for one in evidence}
    titles = {one.hit.passage.title for one in evidence} - {""}
    return [hit for hit in hits if hit.passage.id in here or hit.passage.title in titles]


def put_definition_first(question: str, quotes: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The quotes, to "What is X?" with one first that says what X is."""
    asked = _DEFINED.match(question)
    if asked is None or _OF.search(asked["subject"]):
        return list(quotes)
    defines = re.compile(re.escape(asked["subject"].strip()) + _DEFINES, re.IGNORECASE)
    first = next((one for one in quotes if defines.search(one.text)), None)
    return [*([first] if first else []), *(one for one in quotes if one is not first)]
