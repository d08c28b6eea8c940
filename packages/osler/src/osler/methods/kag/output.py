"""The last answer: a draft for the composer, and an option for a number (KAG-Thinker §3.4).

The question's own search joins its hits to those of the steps: a plan may look for the wrong thing,
and what one search of the question would have found is then still there to answer from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from osler.answer import UNDECIDED, Composer, who_decided
from osler.answer.abstention import read_draft
from osler.llm.core.ask import Speaker
from osler.llm.core.spans import answer_span, strip_types
from osler.methods.kag.formulas.base import convert_unit
from osler.methods.kag.logical_forms import LogicalPlan, SubAnswer
from osler.methods.kag.planner import plan_event
from osler.prompts import RenderedPrompt, render_prompt
from osler.retrieve import look_up
from osler.trace import FormSolved, Run
from osler.types import Answer, Halt, Hit, Question, Retriever, Solution, numbered

_WORD = "[A-Za-zµμ%％°\u4e00-\u9fff]+"
# A number, with the word behind it and what that is divided by: "41 mL/min/1.73 m2".
_NUMBER = re.compile(
    rf"([-+]?\d+(?:[.,]\d+)*)\s?((?:{_WORD}(?:\s?[/·]\s?(?:1\.73\s?)?{_WORD}\^?[23²³]?)*)?)"
)
_IS_NUMBER = re.compile(
    rf"\W*(?:(?:about|around|approximately)\s|大?约)?\s*(?!\d+\s?(?:[型期级类代]|[\u4e00-\u9fff]{{3}}))"
    rf"{_NUMBER.pattern}\W*"
)
"""A number with its unit and no other words: "Stage 2" names a thing, and so does "2型糖尿病"."""
_PLAIN = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d{1,2}")
_FAR = 0.2
"""Share by which the nearest option may differ."""
_ZH_UNITS = {
    "升": "L",
    "毫升": "ml",
    "克": "g",
    "毫克": "mg",
    "微克": "µg",
    "公斤": "kg",
    "天": "day",
}
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

    Applies only when every option is a number, with a unit or without, and the last answered step
    ends in one, and where the nearest, in the number's unit, is near; the answer is returned
    unchanged otherwise.
    """
    values = [_single_number(one) for one in question.options if _IS_NUMBER.fullmatch(one)]
    solved = [each.text for each in answers if each.text]
    computed = _single_number(solved[-1]) if solved else None
    # A single option in words means that the numbers are not the answer.
    whole = len(values) == len(question.options) and all(values)
    if computed is None or not values or not whole:
        return answer
    value, unit = computed
    near = [convert_unit(*v, unit) for v in values if v is not None]
    apart = [inf if v is None else abs(v - value) for v in near]
    place = apart.index(min(apart))
    if None in near or apart[place] > _FAR * max(abs(near[place] or 0.0), abs(value)):
        return answer
    letter = question.letters[place]
    if letter == answer.option:
        return answer
    told = _NOTE[question.language].format(value=f"{value:g} {unit}".rstrip())
    return replace(answer, option=letter, note=" ".join(filter(None, (answer.note, told))))


def _single_number(text: str) -> tuple[float, str] | None:
    """The only number in a text, with its unit; `None` for none or several."""
    found = _NUMBER.findall(text)
    if len(found) != 1:
        return None
    number, unit = found[0]
    if _DECIMAL_COMMA.fullmatch(number):
        number = number.replace(",", ".")
    elif not _PLAIN.fullmatch(number):  # "1.2.3"
        return None
    return float(number.replace(",", "")), _ZH_UNITS.get(unit, unit)


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
