"""Pages as text, 100 columns wide and without colour, held to golden files."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType

from osler.cli.film import METRIC_MEANINGS, draw_film, format_number
from osler.cli.render import (
    RunPage,
    answer_block,
    evidence_block,
    hits_page,
    mark_quotes,
    passages_page,
    run_page,
    short_page,
)
from osler.cli.tables import plain_text
from osler.methods.tcrag.stack import Metric
from osler.text import escape_controls
from osler.trace import Event, SourcesPlanned, Started
from osler.types import (
    Answer,
    Evidence,
    Grounding,
    Halt,
    Hit,
    Passage,
    Question,
    Solution,
    Statement,
)

GOLDEN = Path(__file__).parent / "golden"


def text_of(*page: RenderableType) -> str:
    out = io.StringIO()
    console = Console(file=out, width=100, no_color=True, color_system=None, highlight=False)
    console.print(Group(*page))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def report(events: tuple[Event, ...], question: Question, solution: Solution | None) -> RunPage:
    return RunPage(
        run="20260102-030405-abcdef",
        strategy="tc-rag",
        snapshot="5f2a",
        models={"reader": "smollm2-135m"},
        solution=solution,
        events=events,
        question=question,
        seconds=4.2,
    )


def test_the_film_of_a_stack(stack_events: tuple[Event, ...]) -> None:
    assert text_of(*draw_film(stack_events)) == (GOLDEN / "film-stack.txt").read_text("utf-8")


def test_every_state_value_has_a_meaning_in_words() -> None:
    assert set(METRIC_MEANINGS) == {*get_args(Metric)} - {"off"}


def test_notes_of_a_model_that_may_not_word_medicine_are_folded_away(
    noted_events: tuple[Event, ...],
) -> None:
    told = text_of(*draw_film(noted_events))
    assert told == (GOLDEN / "film-notes.txt").read_text("utf-8")
    assert not [
        said for said in ("antibody", "aspirin", "what the planner wrote: DOC") if said in told
    ]
    assert told.count("a model that may not word medicine") == 1


def test_notes_are_shown_as_notes_when_they_are_asked_for(
    noted_events: tuple[Event, ...],
) -> None:
    told = text_of(*draw_film(noted_events, notes=True))
    assert "+ Thought (note, 45 characters): first-line treatment" in told
    assert "(note, 12 characters): give aspirin" in told


def test_what_the_planner_wrote_and_what_was_composed_are_two_things(
    noted_events: tuple[Event, ...],
) -> None:
    start, *events = noted_events
    assert isinstance(start, Started)
    told = text_of(*draw_film([replace(start, notes_of=()), *events]))
    assert "+ Conclusion Give adrenaline" in told
    assert "~ composed in place of what the planner wrote: DOC_RAG" in told
    assert "(note" not in told


def test_the_film_of_a_strategy_without_a_stack(plain_events: tuple[Event, ...]) -> None:
    assert text_of(*draw_film(plain_events)) == (GOLDEN / "film-plain.txt").read_text("utf-8")


def test_the_page_of_a_run(
    plain_events: tuple[Event, ...], question: Question, solution: Solution
) -> None:
    shown = text_of(run_page(report(plain_events, question, solution)))
    assert shown == (GOLDEN / "page.txt").read_text("utf-8")


def test_the_page_of_an_abstention(question: Question, abstention: Solution) -> None:
    shown = text_of(run_page(report((), question, abstention), with_film=False))
    assert shown == (GOLDEN / "page-abstained.txt").read_text("utf-8")


def test_the_page_of_a_plan(plain_events: tuple[Event, ...], question: Question) -> None:
    plans = tuple(event for event in plain_events if isinstance(event, SourcesPlanned))
    assert text_of(run_page(report(plans, question, None), with_film=False)) == (
        "plan (fixed): book: anaphylaxis; adrenaline | wiki: anaphylaxis\n\n"
        "model      reader smollm2-135m\n"
        "knowledge  snapshot 5f2a\n"
        "run        20260102-030405-abcdef\n"
    )


def test_a_chinese_abstention_is_in_chinese(question: Question) -> None:
    lines = answer_block(Answer(language="zh"), question)
    assert text_of(*lines) == "现有证据没有说明。\n"


def test_what_stands_around_a_chinese_answer_is_chinese(
    plain_events: tuple[Event, ...], question: Question, solution: Solution
) -> None:
    chinese = replace(question, language="zh")
    answer = replace(solution.answer, language="zh")
    ended = replace(solution, answer=answer, halt=Halt.NO_EVIDENCE, why="nothing was found")
    page = report(plain_events, chinese, ended)
    shown = text_of(run_page(page, with_film=False, with_facts=False, with_passages=False))
    for english in ("How:", "Extractive", "read;", "passages", "quoted", "no_evidence", "nothing"):
        assert english not in shown
    for chinese_words in ("经过：", "摘引原文", "均为原文摘句", "没有回答这个问题"):
        assert chinese_words in shown


def test_a_chosen_option_is_shown_with_its_words(solution: Solution) -> None:
    question = Question("q", "Which drug?", ("aspirin", "adrenaline"))
    answer = replace(solution.answer, option="B")
    assert text_of(*answer_block(answer, question)).startswith("B. adrenaline\n")


def test_what_the_answer_notes_is_not_said_twice(solution: Solution, question: Question) -> None:
    shown = text_of(*answer_block(replace(solution.answer, note="Quoted."), question))
    assert shown.endswith("Quoted.\n")
    assert "Extractive" not in shown


def test_the_short_page_has_the_answer_alone(
    stack_events: tuple[Event, ...], question: Question, solution: Solution
) -> None:
    shown = text_of(short_page(report(stack_events, question, solution)))
    assert shown == (
        "Give adrenaline into the outer thigh at once; repeat after five minutes. [1]\n"
        "Extractive: quoted sentences, worded by no model.\n"
    )


def test_an_answer_without_citations_has_no_evidence(
    question: Question, solution: Solution
) -> None:
    answer = Answer(statements=(Statement("Perhaps adrenaline."),))
    shown = text_of(
        run_page(report((), question, replace(solution, answer=answer)), with_film=False)
    )
    assert answer.grounding is Grounding.UNGROUNDED
    assert "Evidence" not in shown
    assert "grounding  ungrounded" in shown


def test_the_quote_is_marked_in_its_passage_to_the_character(passage: Passage) -> None:
    hit = Hit(passage, 1.0, 1, "q", "guideline")
    shown = mark_quotes([("[1]", Evidence(hit, 0, 11))]).plain
    assert shown.startswith("«Anaphylaxis» is a medical")
    assert shown.replace("«", "").replace("»", "") == passage.text


def test_quotes_of_one_passage_stand_in_it_together(passage: Passage, question: Question) -> None:
    hit = Hit(passage, 1.0, 1, "q", "guideline")
    spans = ((17, 34), (0, 11), (5, 20))
    evidence = tuple(Evidence(hit, start, end) for start, end in spans)
    shown = text_of(
        *evidence_block(Answer((Statement("x", (1, 2, 3)),), evidence), "20260102-030405-6f")
    )
    assert "[1] [2] guideline" in shown
    assert "«Anaphylaxis»[2] is a «medical emergency»[1]. Give" in shown
    assert "[3] guideline" in shown
    assert "Anaph«ylaxis is a med»ical" in shown


def test_hits_are_listed_with_rank_and_score(passage: Passage) -> None:
    shown = text_of(hits_page([Hit(passage, 0.8312, 1, "q", "guideline")]))
    assert shown.startswith("1. 0.831 guideline · Anaphylaxis · First minutes, p. 3, 2021 · ")
    assert "illustrative sample text" in shown


def test_a_passage_is_marked_among_its_neighbours(passage: Passage) -> None:
    other = replace(passage, id="guideline:anaphylaxis#1", illustrative=False, text="Before.")
    shown = text_of(passages_page([other, passage], passage.id))
    heads = [line for line in shown.splitlines() if "Anaphylaxis ·" in line]
    assert [line[:2] for line in heads] == ["  ", "> "]


def test_terminal_escape_sequences_are_removed(passage: Passage) -> None:
    hostile = replace(passage, text="a\x1b[2Jb\x07c\u202ed\te\n", title="\x1b]0;x\x07")
    shown = text_of(hits_page([Hit(hostile, 1.0, 1, "q", "s")]))
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert escape_controls("a\tb\n中\u3000文") == "a\tb\n中\u3000文"


def test_rich_markup_in_a_text_is_escaped(passage: Passage) -> None:
    marked = replace(passage, text="[bold]x[/bold] [1]", title="[red]")
    shown = text_of(hits_page([Hit(marked, 1.0, 1, "q", "s")]))
    assert "[bold]x[/bold] [1]" in shown


@pytest.mark.parametrize(
    ("value", "words"),
    [(12.345, "12.3"), (0.00012, "0.00012"), (1234.5, "1,234"), (1e12, "1e+12"), (10.0, "10")],
)
def test_numbers_are_short(value: float, words: str) -> None:
    assert format_number(value) == words


@pytest.mark.parametrize("width", range(4, 40))
def test_a_chinese_line_breaks_neither_in_a_number_nor_before_a_mark_or_a_stop(width: int) -> None:
    text = (
        "机械二尖瓣者为2.5～3.5。[1] 汉族人群（HLA-B*15:02）慎用5%溶液；3/4合格，见“表”。[R2] 停药"
    )
    lines = plain_text(text).wrap(Console(width=width), width)
    whole = [line.plain.strip() for line in lines]
    assert "".join(whole).replace(" ", "") == text.replace(" ", "")
    assert max(map(cell_len, whole)) <= width
    cut = "|".join(whole)
    if width > 15:  # nothing that stays together is longer than a line
        assert not re.search(r"[（“]\||\|[，。；：！？、）”\[]", cut)
        assert "2.5～3.5。[1]" in cut
        assert "（HLA-B*15:02）" in cut
