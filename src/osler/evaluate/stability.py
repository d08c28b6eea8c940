"""Stability of solutions over two seeds (KAG-Thinker §4.4, Fig. 5).

A question is solved with two seeds at one temperature, and a judge says whether the two solution
processes are consistent. The score is the share of stable questions. Beside it stands a score
without a judge: whether the two plans have the same functions waiting for the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.evaluate.judges import REASONING, Judge
from osler.llm.core.verdict import parse_verdict, verdict_grammar
from osler.prompts import render_question_prompt
from osler.trace import Event, FormSolved, FormsPlanned, Run
from osler.types import Question

Shape = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class SolutionProcess:
    """Solution process as the judge sees it, with its shape."""

    text: str
    shape: Shape


class StabilityJudge(Judge):
    """Model that decides, greedily, whether two processes are consistent."""

    async def is_consistent(
        self,
        question: Question,
        first: SolutionProcess,
        second: SolutionProcess,
        run: Run | None = None,
    ) -> bool | None:
        """Returns `None` for a verdict that cannot be read; `run` pays for it."""
        prompt = render_question_prompt(
            "evaluate/consistent", question, first=first.text, second=second.text
        )
        run = run or Run(id=question.id)
        grammar = verdict_grammar(reason=REASONING)
        return await self._ask_model(prompt, lambda reply: parse_verdict(reply.text), grammar, run)


def process_of_events(events: Sequence[Event], option: str, text: str) -> SolutionProcess:
    """Extracts the solution process from the events of a stored run."""
    lines: list[str] = []
    shape: Shape = ()
    for event in events:
        if isinstance(event, FormsPlanned):
            # A plan made anew replaces the earlier one: the last shape is that of the answer.
            shape = tuple((node.fn, node.needs) for node in event.nodes)
            lines += [f"Step{n.n}: {n.step}\nAction{n.n}: {n.action}" for n in event.nodes]
        elif isinstance(event, FormSolved):
            lines.append(f"#{event.n} {event.answer or 'unknown'}")
    lines.append(" ".join(filter(None, (option, text))))
    return SolutionProcess("\n".join(line for line in lines if line), shape)
