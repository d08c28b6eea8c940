"""One event stream: the terminal prints it, the log stores it, replay compares it.

An event says what happened, never when: wall-clock times would make two equal
runs differ. Seconds come from model replies, which are recorded and replayed.
The wire names (`type`) are those of the native API's event stream.
"""

from osler.trace.events import Answered as Answered
from osler.trace.events import Asked as Asked
from osler.trace.events import BoundaryChecked as BoundaryChecked
from osler.trace.events import Budget as Budget
from osler.trace.events import Calculated as Calculated
from osler.trace.events import Cautioned as Cautioned
from osler.trace.events import DangerNoticed as DangerNoticed
from osler.trace.events import Event as Event
from osler.trace.events import Focused as Focused
from osler.trace.events import FormBegun as FormBegun
from osler.trace.events import FormNode as FormNode
from osler.trace.events import FormSolved as FormSolved
from osler.trace.events import FormsPlanned as FormsPlanned
from osler.trace.events import HitNote as HitNote
from osler.trace.events import Noted as Noted
from osler.trace.events import PassagesOrdered as PassagesOrdered
from osler.trace.events import PlannedQuery as PlannedQuery
from osler.trace.events import PlanScored as PlanScored
from osler.trace.events import Popped as Popped
from osler.trace.events import Pushed as Pushed
from osler.trace.events import Retrieved as Retrieved
from osler.trace.events import Searched as Searched
from osler.trace.events import SourcesPlanned as SourcesPlanned
from osler.trace.events import Started as Started
from osler.trace.events import StateValued as StateValued
from osler.trace.events import from_line as from_line
from osler.trace.events import read_events as read_events
from osler.trace.events import to_line as to_line
from osler.trace.run import BudgetExceeded as BudgetExceeded
from osler.trace.run import Price as Price
from osler.trace.run import ProofStep as ProofStep
from osler.trace.run import Run as Run
from osler.trace.run import RunCancelled as RunCancelled
from osler.trace.run import Sink as Sink
from osler.trace.run import Solver as Solver
from osler.trace.run import list_read_passages as list_read_passages
from osler.trace.run import proof_steps as proof_steps
from osler.trace.run import split_note as split_note
