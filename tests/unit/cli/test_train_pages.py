"""What exploring and judging tell of their cost, and of the queries (Omni-RAG Fig. 6, Table 14)."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType

from osler.cli.train_pages import explored_page, judged_page

EXPLORED: dict[str, Any] = {
    "questions": 4,
    "failed": {},
    "queries": {"book": 3.0, "wiki": 2.0},
    "diversity": {"book": 0.25, "wiki": None},
    "diversity_by_queries": {"book": {2: 0.2, 3: 0.25}, "wiki": {2: 0.125}},
    "calls": 4,
    "tokens": 900,
    "inference_s": 240.4,
    "searches": 20,
    "search_s": 28.4,
}
JUDGED: dict[str, Any] = {
    "judge": "model",
    "questions": 4,
    "with_a_positive": 3,
    "with_both": 2,
    "failed": {},
    "verdicts": {"book": {"positive": 3, "negative": 1}},
    "asked": 20,
    "calls": 20,
    "tokens": 9_000,
    "inference_s": 10.0,
}


def lines_of(page: RenderableType) -> list[list[str]]:
    console = Console(width=120)
    with console.capture() as seen:
        console.print(page)
    return [line.split() for line in seen.get().splitlines()]


def test_exploring_tells_seconds_in_the_model_and_in_searches_a_question() -> None:
    shown = lines_of(explored_page(EXPLORED))
    assert ["inference", "s", "a", "question", "60.1"] in shown
    assert ["search", "s", "a", "question", "7.1"] in shown
    assert lines_of(explored_page({**EXPLORED, "questions": 0, "queries": {}}))


def test_judging_tells_seconds_in_the_model_a_question() -> None:
    assert ["inference", "s", "a", "question", "2.5"] in lines_of(judged_page(JUDGED))


def test_diversity_by_the_number_of_queries_has_a_column_for_each_source() -> None:
    shown = lines_of(explored_page(EXPLORED))
    assert ["first", "queries", "book", "wiki"] in shown
    assert ["2", "0.200", "0.125"] in shown
    assert ["3", "0.250", "-"] in shown
