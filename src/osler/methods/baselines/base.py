"""What single-pass methods share: a prompt, a draft, an ending."""

from __future__ import annotations

from osler.llm.core.ask import complete
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.prompts import render_prompt
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Grounding, Halt, Question, Solution

ROLE = "reader"


def list_options(question: Question) -> list[tuple[str, str]]:
    return list(zip(question.letters, question.options, strict=True))


async def write_draft(
    model: LanguageModel,
    prompt: str,
    question: Question,
    sampling: Sampling,
    run: Run,
    **values: object,
) -> str:
    """The model's reply to a baseline's prompt about the question; "" where none is affordable."""
    rendered = render_prompt(
        prompt, question.language, question=question.text, options=list_options(question), **values
    )
    messages = [Message("user", rendered.text)]
    try:
        reply = await complete(model, messages, sampling, run, role=ROLE, prompt=rendered.identity)
    except BudgetExceeded:
        return ""
    return reply.text


def end_single_pass(
    answer: Answer, run: Run, *, converged: str, silent: Halt, why: str
) -> Solution:
    """A single pass has converged when it says something; else it halts as `silent`.

    Where the run's budget refused it something, it says so instead.
    """
    if run.spent:
        return Solution(answer, Halt.BUDGET, f"spent: {run.spent}", run.usage)
    if answer.grounding is Grounding.ABSTAINED:
        return Solution(answer, silent, why, run.usage)
    return Solution(answer, Halt.CONVERGED, converged, run.usage)
