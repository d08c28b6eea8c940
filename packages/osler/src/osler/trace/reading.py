"""Which passages a run read: those that stood before a reader, of all that its searches found."""

from __future__ import annotations

from collections.abc import Iterable

from osler.trace.events import (
    Asked,
    Event,
    Noted,
    PassagesOrdered,
    PlanScored,
    Retrieved,
    Searched,
    SourcesPlanned,
)


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
