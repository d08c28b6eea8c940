"""Says why there is no answer, where it was the model that said nothing."""

from __future__ import annotations

from dataclasses import replace

from osler.llm.reading.answers import DECLINED, answer_words, declines
from osler.llm.reading.refusals import is_refusal
from osler.trace import Run
from osler.types import Halt, Solution

_NOTES = {
    "cut": {
        "en": "The model's reply was cut while it was thinking: it said nothing.",
        "zh": "模型在思考时回复被截断，没有给出任何内容。",
    },
    "declined": {"en": "The model declined to answer.", "zh": "模型拒绝回答。"},
}
"""The note that a reader sees, by cause and language."""


def read_draft(draft: str, run: Run) -> str:
    """The answer in a model's draft; empty where there is none, or the model declines, which the
    run then knows."""
    said = answer_words(draft)
    if declines(said):
        run.unsaid = DECLINED
        return ""
    return "" if is_refusal(said) else said


def explain_silence(solution: Solution, run: Run) -> Solution:
    """The solution with the model's own reason for saying nothing, where there is one."""
    if not run.unsaid or not solution.answer.is_silent or solution.why.startswith(run.unsaid):
        return solution
    declined = run.unsaid == DECLINED
    note = _NOTES["declined" if declined else "cut"][solution.answer.language]
    halt = Halt.NO_EVIDENCE if declined else Halt.BUDGET
    answer = replace(solution.answer, note=note)
    return replace(solution, answer=answer, halt=halt, why=f"{run.unsaid} ({solution.why})")
