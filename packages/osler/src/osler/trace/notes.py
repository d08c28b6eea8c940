"""Notes: what a model wrote that may not word medicine.

Such a model steers a run (it thinks, backtracks, sums up); what it writes is not medical advice.
The roles it plays are in `Started.notes_of`; a reader of events shows notes folded, or as notes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from osler.trace.events import (
    Asked,
    BoundaryChecked,
    Event,
    Focused,
    FormSolved,
    Popped,
    Pushed,
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
