"""A judge's feedback on the documents that a plan found (Omni-RAG App. E.9).

<suggestion>…</suggestion>
<score> 3 </score>                     0 to 5
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, alt, free_text, seq
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription, source_variables
from osler.methods.omni.plan import Query
from osler.prompts import render_question_prompt
from osler.retrieve import LookupResult
from osler.text import clean_text, one_line
from osler.trace import Noted, Run
from osler.types import Question

BEST = 5
"""The score at which planning stops (App. D.3)."""
_SCORE = re.compile(
    r"<\s*score\s*>\s*([0-9]+)(?:\s*/\s*5)?\s*(?:[.。分][^<]*)?(?:<|$)", re.IGNORECASE
)
_NAMED = re.compile(r"(?:score|得分|评分)\s*(?:is|:|：|是|为)\s*([0-9]+)", re.IGNORECASE)
_SUGGESTION = re.compile(
    r"<\s*suggestion\s*>(.*?)(?:<\s*/?\s*(?:suggestion|score)\s*>|$)", re.IGNORECASE | re.DOTALL
)
# Characters of a suggestion in later prompts (about 100 words).
_LONGEST = 800


@dataclass(frozen=True, slots=True)
class Feedback:
    score: int
    suggestion: str = ""
    unread: str = ""
    """Why no verdict could be read: then further plans would not be led by anything."""

    def __post_init__(self) -> None:
        if not 0 <= self.score <= BEST:
            raise ValueError(f"the score must be 0 to {BEST}, not {self.score}")


class Evaluator(Protocol):
    async def evaluate_documents(
        self,
        question: Question,
        found: Mapping[Query, LookupResult],
        offers: tuple[SourceDescription, ...],
        run: Run,
    ) -> Feedback:
        """Scores the documents for the question. Raises only `BudgetExceeded`."""


@dataclass(frozen=True)
class DocumentJudge:
    """A model with prompt E.9. An unreadable verdict counts as score 0 and is noted in the run."""

    speaker: Speaker
    documents: int = 5
    """Documents of each query that it reads: the second half is left out while judging (§5.1.2)."""

    async def evaluate_documents(
        self,
        question: Question,
        found: Mapping[Query, LookupResult],
        offers: tuple[SourceDescription, ...],
        run: Run,
    ) -> Feedback:
        prompt = render_question_prompt(
            "omni/feedback",
            question,
            sources=source_variables(offers, question.language),
            documents=[
                {
                    "source": query.source,
                    "query": query.wire,
                    "texts": [hit.passage.text for hit in result.hits[: self.documents]],
                }
                for query, result in found.items()
            ],
        )
        try:
            return await self.speaker.ask(
                prompt,
                lambda reply: read_feedback(reply.text),
                run,
                grammar=feedback_grammar(),
                repairs=1,
            )
        except MalformedOutput as error:
            run.emit(Noted(f"a plan could not be judged: {error.message}"))
            return Feedback(0, unread=error.message)


def read_feedback(reply: str) -> Feedback:
    """Reads the last score, 0 to 5, and the last suggestion, which may be absent.

    Raises `MalformedOutput` without such a score.
    """
    text = clean_text(reply)
    scores = _SCORE.findall(text) or _NAMED.findall(text)
    said = [one_line(found)[:_LONGEST] for found in _SUGGESTION.findall(text)]
    # "10" and "45" are no scores of this scale, not even cut to their first digit.
    if not scores or len(scores[-1]) > 1 or int(scores[-1]) > BEST:
        raise MalformedOutput(reply, expected="<suggestion>…</suggestion> <score>0 to 5</score>")
    return Feedback(int(scores[-1]), next(filter(None, reversed(said)), ""))


def feedback_grammar(longest: int = 400) -> Grammar:
    score = seq("<score> ", alt(*map(str, range(BEST + 1))), " </score>")
    told_ = seq("<suggestion>", free_text(longest, without="<>"), "</suggestion>\n")
    return Grammar("feedback", seq(told_, score))
