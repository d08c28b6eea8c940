"""Stability of solutions over two seeds (KAG-Thinker §4.4, Fig. 5).

A question is solved with two seeds at one temperature, and a judge says whether the two solution
processes are consistent. The score is the share of stable questions. Beside it stands a score
without a judge: whether the two plans have the same functions waiting for the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.trace import Event, FormSolved, FormsPlanned

Shape = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class SolutionProcess:
    """Solution process as the judge sees it, with its shape."""

    text: str
    shape: Shape


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
