"""By which steps an answer came about: a plan's steps with what each came to and rests on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from osler.trace.events import Calculated, Event, FormSolved, FormsPlanned, Started
from osler.trace.notes import split_note


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A step of a plan."""

    n: int
    function: str
    """Retrieval, Math, Deduce or Output."""
    step: str
    action: str
    """Its logical form: with `step` it can be edited and run again."""
    needs: tuple[int, ...]
    """Numbers of the steps whose results it needs."""
    answer: str = ""
    """The value, or the members of a set; empty if none may be shown."""
    passages: tuple[str, ...] = ()
    """Ids of the passages that it rests on."""
    computed: str = ""
    """The formula with its inputs, or the program."""

    @property
    def wire(self) -> str:
        """The step as plans are written."""
        return f"Step{self.n}: {self.step}\nAction{self.n}: {self.action}"


def proof_steps(events: Iterable[Event]) -> tuple[ProofStep, ...]:
    """The steps of a run's last plan; none without a plan. What a model wrote that may not word
    medicine is left out."""
    steps: dict[int, ProofStep] = {}
    notes_of: Collection[str] = ()
    for event in events:
        match event:
            case Started():
                notes_of = event.notes_of
            case FormsPlanned(nodes=nodes):
                steps = {
                    node.n: ProofStep(node.n, node.fn, node.step, node.action, node.needs)
                    for node in nodes
                }
            case Calculated(n=n, code=code, value=value) if n in steps and value:
                steps[n] = replace(steps[n], computed=code)
            case FormSolved(n=n, passages=passages) if n in steps:
                bare, _ = split_note(event, notes_of)
                answer = bare.answer if isinstance(bare, FormSolved) else ""
                steps[n] = replace(steps[n], answer=answer, passages=passages)
            case _:
                pass
    return tuple(steps.values())
