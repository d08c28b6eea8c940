"""What the events of a run say: its notes, the passages that it read, the steps of its proof.

A model that may not word medicine steers a run (it thinks, backtracks, sums up): what it writes are
notes, and no medical advice. The roles it plays are in `Started.notes_of`; a reader of events shows
notes folded, or as notes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from osler.trace.events import (
    Asked,
    BoundaryChecked,
    Calculated,
    Event,
    Focused,
    FormSolved,
    FormsPlanned,
    Noted,
    PassagesOrdered,
    PlanScored,
    Popped,
    Pushed,
    Retrieved,
    Searched,
    SourcesPlanned,
    Started,
)

PLANNER, READER = "planner", "reader"
ROLES = {"helper": PLANNER}
"""Roles of calls that have another name in the settings."""
FOLDED = "…"
"""Stands for a draft or an answer that is a note: an empty one means that there is none."""


def split_note(event: Event, notes_of: Collection[str]) -> tuple[Event, str]:
    """The event without its note, and the note; an empty one for an event that has none.

    `notes_of` as in `Started`.
    """
    match event:
        case Pushed(draft=draft) if draft and PLANNER in notes_of:
            return replace(event, draft=FOLDED), draft
        case Pushed(text=text, writer=writer) if writer in notes_of:
            return replace(event, text=""), text
        case Popped(reason=reason) if PLANNER in notes_of:
            return replace(event, reason=""), reason
        # TC-RAG's helpers are asked of the planner's model.
        case Asked(role=role, kind="complete") if ROLES.get(role, role) in notes_of:
            # A complaint about the reply before quotes it.
            repaired = FOLDED if event.repaired else ""
            note = "\n".join(filter(None, (event.repaired, event.thinking, event.reply)))
            return replace(event, reply="", thinking="", repaired=repaired), note
        case BoundaryChecked(answer=answer) if answer and READER in notes_of:
            return replace(event, answer=FOLDED), answer
        case Focused(reason=reason) if READER in notes_of:
            return replace(event, reason=""), reason
        case FormSolved(answer=answer, own_knowledge=True) if READER in notes_of:
            return replace(event, answer=""), answer
        case _:
            return event, ""


def list_read_passages(events: Iterable[Event]) -> tuple[str, ...]:
    """Ids of the passages that were read, each once.

    A search is read whole, unless an order follows it: of the searches of a source plan, and of one
    for what was not read yet, that is read which stands in their order. What a planner only tried,
    to have it scored, is not read by that.
    """
    read: dict[str, None] = {}
    found: dict[str, None] = {}
    for event in events:
        match event:
            case Retrieved(hits=hits):
                found |= dict.fromkeys(hit.passage for hit in hits)
            case PassagesOrdered(passages=passages):
                read |= dict.fromkeys(passages)
                found = {}
            case PlanScored():
                found = {}
            # These stand between the searches of one plan, and between them and their order.
            case Searched() | SourcesPlanned() | Asked() | Noted():
                pass
            case _:
                read |= found
                found = {}
    return tuple(read | found)


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
