"""One event stream: the terminal prints it, the log stores it, replay compares it.

An event says what happened, never when: wall-clock times would make two equal
runs differ. Seconds come from model replies, which are recorded and replayed.
The wire names (`type`) are those of the native API's event stream.
"""

from osler.trace.events import (
    SCHEMA,
    Answered,
    Asked,
    BoundaryChecked,
    Budget,
    Calculated,
    Cautioned,
    DangerNoticed,
    Event,
    Focused,
    FormBegun,
    FormNode,
    FormSolved,
    FormsPlanned,
    HitNote,
    Noted,
    PassagesOrdered,
    PlannedQuery,
    PlanScored,
    Popped,
    Pushed,
    Retrieved,
    Searched,
    SourcesPlanned,
    Started,
    StateValued,
    from_line,
    read_events,
    to_line,
)
from osler.trace.notes import split_note
from osler.trace.proof import ProofStep, proof_steps
from osler.trace.reading import list_read_passages
from osler.trace.run import BudgetExceeded, Price, Run, RunCancelled, Sink, Solver

__all__ = [
    "SCHEMA",
    "Answered",
    "Asked",
    "BoundaryChecked",
    "Budget",
    "BudgetExceeded",
    "Calculated",
    "Cautioned",
    "DangerNoticed",
    "Event",
    "Focused",
    "FormBegun",
    "FormNode",
    "FormSolved",
    "FormsPlanned",
    "HitNote",
    "Noted",
    "PassagesOrdered",
    "PlanScored",
    "PlannedQuery",
    "Popped",
    "Price",
    "ProofStep",
    "Pushed",
    "Retrieved",
    "Run",
    "RunCancelled",
    "Searched",
    "Sink",
    "Solver",
    "SourcesPlanned",
    "Started",
    "StateValued",
    "from_line",
    "list_read_passages",
    "proof_steps",
    "read_events",
    "split_note",
    "to_line",
]
