"""The last answer: a draft for the composer, and an option for a number (KAG-Thinker §3.4).

The question's own search joins its hits to those of the steps: a plan may look for the wrong thing,
and what one search of the question would have found is then still there to answer from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from osler.answer import UNDECIDED, Composer, who_decided
from osler.answer.abstention import read_draft
from osler.llm.core.ask import Speaker
from osler.llm.core.spans import answer_span, strip_types
from osler.methods.kag.logical_forms import LogicalPlan, SubAnswer
from osler.methods.kag.planner import plan_event
from osler.prompts import RenderedPrompt, render_prompt
from osler.retrieve import look_up
from osler.trace import FormSolved, Run
from osler.types import Answer, Halt, Hit, Question, Retriever, Solution, numbered

_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
_NOTE = {
    "en": "The option is the one nearest to the computed {value}.",
    "zh": "所选选项最接近计算结果 {value}。",
}


@dataclass(frozen=True)
class AnswerFinisher:
    speaker: Speaker

    async def write_draft(
        self, question: Question, answers: Sequence[SubAnswer], hits: Sequence[Hit], run: Run
    ) -> str:
        """The model's draft of the last answer, from the sub-answers and their passages."""
        prompt = answer_prompt(question, answers, hits)
        text = await self.speaker.ask(prompt, lambda reply: reply.text, run)
        return read_draft(_unbox_answer(text), run)


def answer_prompt(
    question: Question, answers: Sequence[SubAnswer], hits: Sequence[Hit]
) -> RenderedPrompt:
    """The prompt for the last answer, with the sub-answers and their passages."""
    return render_prompt(
        "kag/answer",
        question.language,
        question=question.text,
        options=question.lettered,
        steps=[answer.prompt_line for answer in answers],
        documents=numbered(hits),
    )


def nearest_option(answer: Answer, question: Question, answers: Sequence[SubAnswer]) -> Answer:
    """Chooses the option nearest to a computed number (592 → 600 ml).

    Applies only when every option is a number and the last answered step ends in one; the answer
    is returned unchanged otherwise.
    """
    values = [_single_number(option) for option in question.options]
    solved = [each.text for each in answers if each.text]
    value = _single_number(solved[-1]) if solved else None
    # A single option in words means that the numbers are not the answer.
    if value is None or not values or any(v is None for v in values):
        return answer
    distances = [abs(v - value) for v in values if v is not None]
    letter = question.letters[distances.index(min(distances))]
    if letter == answer.option:
        return answer
    note = " ".join(
        filter(None, (answer.note, _NOTE[question.language].format(value=f"{value:g}")))
    )
    return replace(answer, option=letter, note=note)


def _single_number(text: str) -> float | None:
    """The only number in a text; `None` for none or several."""
    found = _NUMBER.findall(text)
    if len(found) != 1:
        return None
    return float(found[0].replace(",", ""))


def _unbox_answer(text: str) -> str:
    r"""Rewrites `\boxed{C}` inside `<answer>` as `<answer>C</answer>`, the form that composers
    read."""
    span = answer_span(text)
    if span is None:
        return text
    inner = strip_types(text, span)
    before = text[: text.rfind("\\boxed", 0, span[0])]
    before = before.rpartition("<answer>")[0] or before
    return f"{before.strip()}\n<answer>{inner}</answer>".strip()


@dataclass(frozen=True)
class QuestionSearch:
    """Searches the question as it stands, as retrieve-and-read does."""

    retriever: Retriever
    sources: tuple[str, ...] = ()
    k: int = 10

    async def find_passages(self, question: Question, run: Run) -> list[Hit]:
        """The best `k` hits; none where the sources are down. Raises `BudgetExceeded`."""
        found = await look_up(self.retriever, question.text, run, k=self.k, sources=self.sources)
        return list(found.hits)


@dataclass(frozen=True)
class QuestionQuotes:
    """Answers from the question's own search, with no plan of steps: for models whose plans find
    less than that."""

    search: QuestionSearch
    composer: Composer

    async def solve(self, question: Question, run: Run) -> Solution:
        """Raises `BudgetExceeded` where no search may be made."""
        run.emit(plan_event(LogicalPlan.single_retrieval(question.text), "formula"))
        hits = await self.search.find_passages(question, run)
        answer = await self.composer.conclude(question, hits, "", run)
        quoted = [] if answer.is_silent else [one.quote for one in answer.evidence]
        ids = tuple(hit.passage.id for hit in hits)
        run.emit(FormSolved(1, "done" if quoted else "failed", " ".join(quoted), passages=ids))
        halt = Halt.NO_EVIDENCE if answer.is_silent else Halt.CONVERGED
        decided = who_decided(self.composer, UNDECIDED)
        return Solution(answer, halt, "searched as it stands", run.usage, decided)


def merge_hits(*groups: Iterable[Hit]) -> tuple[Hit, ...]:
    """The hits of all groups in order, each passage once."""
    seen: dict[str, Hit] = {}
    for group in groups:
        for hit in group:
            seen.setdefault(hit.passage.id, hit)
    return tuple(seen.values())
