"""A run's events as lines of text: the memory stack, searches, and the plan of logical forms.

What a model wrote that may not word medicine is a note: it is folded away unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from rich.text import Text

from osler.cli.words import say_all
from osler.text import escape_controls
from osler.trace import (
    Answered,
    Asked,
    BoundaryChecked,
    Calculated,
    Cautioned,
    DangerNoticed,
    Event,
    Focused,
    FormBegun,
    FormNode,
    FormSolved,
    FormsPlanned,
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
    split_note,
)

NOTES = "notes are by a model that may not word medicine: nothing in them is medicine"
"""Stands before the first note of a film."""
METRIC_MEANINGS = {
    "cppl": "how unexpected the text is after the question",
    "uct": "how unsure the model was of its words, in all",
    "sureness": "how likely the evidence does not answer the question",
}
"""What a state value says; lower is surer. Shown once in a film."""


@dataclass(frozen=True, slots=True)
class FilmEntry:
    """A line of the film, with the note that is folded into it."""

    line: Text
    note: str = ""


class Film:
    """Turns events, in order, into lines; it remembers what the next line needs."""

    def __init__(self, *, notes: bool = False) -> None:
        self._shows_notes = notes
        self._notes_of: tuple[str, ...] = ()
        self._noted = False
        """Whether it was said what a note is."""
        self._stacked = False
        self._depth = 1
        self._value: StateValued | None = None
        """It comes before the push it belongs to, and is shown below it."""
        self._explained: set[str] = set()
        """Metrics whose meaning was explained."""
        self._within = 0
        """1 inside a step that has a stack of its own."""

    def event_lines(self, event: Event) -> Iterator[Text]:
        """The lines of an event; its note stands in the last of them where notes are shown."""
        for entry in self.event_entries(event):
            if entry.note and self._shows_notes:
                entry.line.append(escape_controls(f": {' '.join(entry.note.split())}"))
            yield entry.line

    def event_entries(self, event: Event) -> Iterator[FilmEntry]:
        """The lines of an event, its note beside the one that it belongs to."""
        if not isinstance(event, Pushed):
            yield from map(FilmEntry, self._pending_lines())
        bare, note = split_note(event, self._notes_of)
        lines = list(self._own_lines(bare))
        if note and lines and not self._noted:
            self._noted = True
            yield FilmEntry(_styled_line("!", NOTES, "yellow"))
        # Of a composed Conclusion the note is the draft, which stands below what was composed.
        at = int(isinstance(event, Pushed) and bool(event.draft))
        for number, line in enumerate(lines):
            folded = note if number == at else ""
            if folded:
                line.append(f" (note, {len(note):,} characters)")
            yield FilmEntry(line, folded)
        if isinstance(event, Pushed):
            yield from map(FilmEntry, self._pending_lines())

    def _own_lines(self, event: Event) -> Iterator[Text]:
        match event:
            case Started():
                self._notes_of = event.notes_of
                yield _styled_line("", describe_start(event), "dim")
            case SourcesPlanned():
                yield self._inner_line("", describe_plan(event), "magenta")
                for left_out in event.dropped:
                    yield self._inner_line("  !", f"not asked: {left_out}", "yellow")
            case PlanScored():
                yield self._inner_line("  ~", describe_trial(event), "magenta")
            case Searched():
                yield self._inner_line("?", describe_search(event), "blue")
            case Retrieved():
                for mark, words in describe_hits(event):
                    yield self._inner_line(mark, words, "red" if mark == "!" else "blue")
            case Pushed():
                yield from self._pushed_lines(event)
            case Popped():
                self._depth = event.depth
                yield self._indented_line(event.depth + 1, "-", describe_pop(event), "yellow")
            case StateValued():
                self._value = event
            case Asked():
                if not self._stacked or event.repaired:
                    yield self._inner_line("*", describe_call(event), "dim")
            case FormBegun():
                self._turn_to(step=True)
                yield _styled_line("", f"step {event.n}: {event.question}", "magenta")
            case FormsPlanned() | BoundaryChecked() | Focused() | Calculated() | FormSolved():
                if isinstance(event, FormSolved):
                    self._turn_to(step=False)
                for mark, words, style in describe_event(event):
                    yield _styled_line(mark, words, style)
            case Cautioned():
                yield self._inner_line("!", f"{event.rule}: {event.text}", "yellow")
            case Noted():
                yield self._inner_line("!", event.text, "yellow")
            case Answered() | DangerNoticed() | PassagesOrdered():  # the first two stand above it
                return
            case _ as never:
                assert_never(never)

    # Each step of a plan has a stack of its own; the film indents it and starts at depth 0.
    def _turn_to(self, *, step: bool) -> None:
        """A step with a stack of its own begins, or is over."""
        self._stacked, self._depth, self._within = False, 1, int(step)

    def _pushed_lines(self, event: Pushed) -> Iterator[Text]:
        self._stacked, self._depth = True, event.depth
        yield self._indented_line(event.depth, "+", f"{event.kind} {event.text}", "green")
        if event.draft:
            told = f"composed in place of what the planner wrote: {event.draft}"
            yield self._inner_line("~", told, "dim")

    def _pending_lines(self) -> Iterator[Text]:
        if self._value is not None:
            metric = self._value.metric
            yield self._indented_line(self._depth + 1, "=", describe_value(self._value), "cyan")
            if metric in METRIC_MEANINGS and metric not in self._explained:
                words = f"{metric}: {METRIC_MEANINGS[metric]}; lower is surer"
                yield self._indented_line(self._depth + 1, " ", words, "dim")
            self._explained.add(metric)
            self._value = None

    def _inner_line(self, mark: str, words: str, style: str) -> Text:
        """A line that belongs to what is on top of the stack."""
        return self._indented_line(self._depth + 1 if self._stacked else 1, mark, words, style)

    def _indented_line(self, depth: int, mark: str, words: str, style: str) -> Text:
        return _styled_line("  " * (max(0, depth - 1) + self._within) + mark, words, style)


def draw_film(events: Iterable[Event], *, notes: bool = False) -> list[Text]:
    """The whole film of a run that is over; `notes`: with what is folded away else."""
    camera = Film(notes=notes)
    return [line for event in events for line in camera.event_lines(event)]


def planned_sources(events: Sequence[Event]) -> list[SourcesPlanned]:
    return [event for event in events if isinstance(event, SourcesPlanned)]


def describe_start(event: Started) -> str:
    bounds = [
        f"{value:g} {name}"
        for name in ("calls", "tokens", "searches", "seconds")
        if (value := getattr(event.budget, name)) is not None
    ]
    return ", ".join([f"{event.strategy}, seed {event.seed}", *(f"at most {b}" for b in bounds)])


def describe_plan(event: SourcesPlanned) -> str:
    return f"plan ({event.origin}): {_by_source(event.queries)}"


def describe_trial(event: PlanScored) -> str:
    of = f" of {event.source}" if event.source else ""
    after = f", after {event.parent}" if event.parent else ""
    advice = f": {event.suggestion}" if event.suggestion else ""
    return f"plan {event.n}{of}{after}: {event.score} of 5: {_by_source(event.queries)}{advice}"


def _by_source(planned: Iterable[PlannedQuery]) -> str:
    queries: dict[str, list[str]] = {}
    for query in planned:
        queries.setdefault(query.source, []).append(query.query)
    told = (f"{source}: {'; '.join(asked)}" for source, asked in queries.items())
    return " | ".join(told) or "no source needed"


def describe_search(event: Searched) -> str:
    where = ", ".join(event.sources) or "all sources"
    return f"{event.query}  (in {where}, k {event.k})"


def describe_hits(event: Retrieved) -> Iterator[tuple[str, str]]:
    ids = ", ".join(hit.passage for hit in event.hits)
    count = len(event.hits)
    yield " ", f"{count} passage{'' if count == 1 else 's'}: {ids}" if count else "nothing found"
    yield from (("!", f"source down: {reason}") for reason in event.failed)


def describe_pop(event: Popped) -> str:
    reason = f": {event.reason}" if event.reason else ""
    if not event.kind:
        return f"{event.by} nothing to pop{reason}"
    back = "the start" if event.restored is None else format_number(event.restored)
    return f"{event.by} pops {event.kind}, state back to {back}{reason}"


def describe_value(event: StateValued) -> str:
    words = f"{event.metric} {format_number(event.value)} (sigma {format_number(event.sigma)})"
    return ", ".join([words, *(["it stands"] if event.halted else []), *filter(None, [event.note])])


def describe_call(event: Asked) -> str:
    usage = event.usage
    counts = [f"{usage.prompt_tokens:,} read"] if usage.prompt_tokens else []
    counts += [f"{usage.completion_tokens:,} written"] if usage.completion_tokens else []
    counts += [f"{usage.scored_tokens:,} scored"] if usage.scored_tokens else []
    told = f"{event.role} {event.kind} {event.prompt}: {', '.join(counts) or 'no tokens'}"
    told += f" (asked again: {event.repaired})" if event.repaired else ""
    told += f" (thought {len(event.thinking):,} characters)" if event.thinking else ""
    return f"{told}: {event.reply}" if event.reply else told


def format_number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"


def _styled_line(head: str, words: str, style: str) -> Text:
    """One line, cut where the page ends."""
    told = say_all(" ".join(words.split()))
    text = f"{head} {told}" if head else told
    return Text(escape_controls(text), style=style, no_wrap=True, overflow="ellipsis", end="\n")


FormEvent = FormsPlanned | BoundaryChecked | Focused | Calculated | FormSolved
# Mark, words, style.
Line = tuple[str, str, str]


def describe_event(event: FormEvent) -> Iterator[Line]:
    match event:
        case FormsPlanned():
            yield from _describe_forms(event)
        case BoundaryChecked():
            style = "green" if event.known else "yellow"
            yield "  #", f"step {event.n} {_describe_boundary(event)}", style
        case Focused():
            verdict = "enough" if event.enough else "not enough"
            yield "  ~", f"step {event.n}, search {event.turn}: {verdict}: {event.reason}", "blue"
        case Calculated():
            result = f"failed: {event.error}" if event.error else event.value
            style = "red" if event.error else "cyan"
            yield "  =", f"step {event.n} by {event.engine}: {event.code}: {result}", style
        case FormSolved():
            yield _describe_solution(event)


def _describe_forms(event: FormsPlanned) -> Iterator[Line]:
    count = len(event.nodes)
    steps = f"{count} step{'' if count == 1 else 's'}"
    yield "", f"plan of {steps} ({event.origin})", "magenta"
    for node in event.nodes:
        depth = _node_depth(node, {each.n: each for each in event.nodes})
        yield "  " * depth + f"  {node.n}.", _describe_node(node), "magenta"
    for warning in event.warnings:
        yield "  !", warning, "yellow"


def _describe_node(node: FormNode) -> str:
    after = f" (after {', '.join(map(str, node.needs))})" if node.needs else ""
    return f"{node.fn}: {node.step}{after}"


def _node_depth(node: FormNode, nodes: dict[int, FormNode]) -> int:
    """Number of steps before this one, along the longest path."""
    return max((1 + _node_depth(nodes[n], nodes) for n in node.needs if n in nodes), default=0)


def _describe_boundary(event: BoundaryChecked) -> str:
    if not event.answer:
        return "is not known: it must be looked up"
    said = f'says "{event.answer}"'
    signals = []
    if event.probability is not None:
        sign = ">=" if event.probability >= event.tau else "<"
        about = "" if event.exact else "at most "
        signals.append(f"least probability {about}{event.probability:.2f} {sign} {event.tau:g}")
    if event.state is not None and event.sigma is not None:
        sign = "<" if event.state < event.sigma else ">="
        signals.append(f"{event.metric} {event.state:.3g} {sign} sigma {event.sigma:.3g}")
    if event.self_check is not None:
        signals.append("stands by it" if event.self_check else "does not stand by it")
    verdict = "own knowledge" if event.known else "look it up"
    return f"{said}, {', '.join(signals) or 'no signal'}: {verdict}"


def _describe_solution(event: FormSolved) -> Line:
    if event.status == "failed":
        return "  -", f"step {event.n}: no answer", "red"
    basis = "own knowledge" if event.own_knowledge else ", ".join(event.passages)
    return "  +", f"step {event.n}: {event.answer}" + (f"  [{basis}]" if basis else ""), "green"
