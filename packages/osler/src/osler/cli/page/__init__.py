"""A recorded run as one HTML page without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from osler.cli.film import Film
from osler.cli.render import RunPage
from osler.text import read_packaged
from osler.trace import Event
from osler.types import Answer, Evidence, Passage

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """A piece of an answer's text, with what is cited after it: numbers and marks."""

    text: str
    cites: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class FilmLine:
    """A line of the film."""

    text: str
    tone: str
    note: str = ""
    """What is folded away below it: text by a model that may not word medicine."""


@dataclass(frozen=True, slots=True)
class CitedPassage:
    """A cited passage cut into plain and quoted pieces."""

    numbers: tuple[int, ...]
    marks: tuple[str, ...]
    passage: Passage
    pieces: tuple[tuple[str, bool], ...]


def render_page(report: RunPage) -> str:
    """One self-contained page: answer, evidence, film, facts."""
    answer = report.solution.answer if report.solution else None
    return _load_template().render(
        report=report,
        solution=report.solution,
        answer=answer,
        parts=_answer_parts(answer) if answer else [],
        sources=_cited_passages(answer) if answer else [],
        option=report.question.option_text(answer.option) if answer and answer.option else "",
        film=_film_of(report.events),
    )


def _answer_parts(answer: Answer) -> list[AnswerPart]:
    marks = answer.marks
    return [
        AnswerPart(one.shown_in(answer.language), tuple((n, marks[n - 1]) for n in one.cites))
        for one in answer.statements
    ]


def _film_of(events: Sequence[Event]) -> list[FilmLine]:
    camera = Film()
    return [
        FilmLine(entry.line.plain, _style_class(entry.line.style), entry.note)
        for event in events
        for entry in camera.event_entries(event)
    ]


def _style_class(style: object) -> str:
    """The film's colour as a class: green, red, …; plain for anything else."""
    known = {"green", "red", "yellow", "blue", "cyan", "magenta", "dim"}
    return str(style) if str(style) in known else "plain"


def _cited_passages(answer: Answer) -> list[CitedPassage]:
    """Each cited passage once, in the order of its first number."""
    grouped: dict[str, list[tuple[int, Evidence]]] = {}
    for number, evidence in enumerate(answer.evidence, 1):
        grouped.setdefault(evidence.passage.id, []).append((number, evidence))
    return [
        CitedPassage(
            tuple(number for number, _ in group),
            tuple(answer.marks[number - 1] for number, _ in group),
            group[0][1].passage,
            _split_quotes(group[0][1].passage.text, [(e.start, e.end) for _, e in group]),
        )
        for group in grouped.values()
    ]


def _split_quotes(text: str, spans: list[tuple[int, int]]) -> tuple[tuple[str, bool], ...]:
    """The text in order, each piece with whether it is quoted; overlaps count once."""
    pieces, at = [], 0
    for begin, end in sorted(spans):
        start = max(begin, at)
        if start >= end:
            continue
        if start > at:
            pieces.append((text[at:start], False))
        pieces.append((text[start:end], True))
        at = end
    if at < len(text):
        pieces.append((text[at:], False))
    return tuple(pieces)


@cache
def _load_template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = read_packaged(__package__, "page.html.j2")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)


__all__ = ["render_page"]
