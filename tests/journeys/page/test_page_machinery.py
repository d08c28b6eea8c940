"""How an answer was reached, on the page: stack, plot, logical form, timeline, replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from browsing import (
    QUESTION,
    ask_question,
    expect_count,
    expect_exact_text,
    expect_text,
    store_run,
    wait_for_script,
)
from served import ServedOsler, read_stream, start_run

Window = Callable[..., Any]


def valued(value: float, i: int, *, halted: bool = False) -> dict[str, Any]:
    told = {"type": "state.updated", "i": i, "metric": "cppl", "value": value, "sigma": 10.0}
    return {**told, "exact": True, "halted": halted}


def pushed(i: int, kind: str, text: str, depth: int) -> dict[str, Any]:
    return {"type": "stack.push", "i": i, "kind": kind, "text": text, "depth": depth}


POPPED = {"type": "stack.pop", "i": 2, "kind": "Thought", "by": "Backtrack", "depth": 1}
FILM = [
    pushed(0, "User_Query", "q", 1),
    pushed(1, "Thought", "<b>first</b>", 2),
    valued(42.0, 1),
    {**POPPED, "restored": None, "reason": "irrelevant"},
    pushed(3, "Thought", "second", 2),
    valued(5.0, 3, halted=True),
    pushed(4, "Conclusion", "done", 3),
]
MEMORY = "section[aria-label='Working memory'] label"
FORMS: list[dict[str, Any]] = [
    {
        "type": "lf.parsed",
        "nodes": [
            {"n": 1, "fn": "Retrieval", "step": "Which drug?", "action": "R(s=d)", "needs": []},
            {"n": 2, "fn": "Math", "step": "Its dose?", "action": "", "needs": [1]},
            {"n": 3, "fn": "Output", "step": "Say it", "action": "", "needs": [1, 2]},
        ],
        "warnings": ["step 4 was cut off"],
    },
    {
        "type": "lf.boundary",
        "n": 1,
        "question": "Which drug?",
        "answer": "adrenaline",
        "known": True,
        "self_check": True,
        "probability": 0.9,
        "tau": 0.5,
    },
    {"type": "lf.node", "n": 1, "status": "done", "answer": "adrenaline", "own_knowledge": True},
    {"type": "math.run", "n": 2, "engine": "python", "code": "print(6 * 7)", "value": "42"},
    {
        "type": "lf.node",
        "n": 2,
        "status": "done",
        "answer": "42",
        "passages": ["guideline:pages#0"],
    },
    {"type": "lf.node", "n": 3, "status": "failed", "answer": ""},
    {
        "type": "retrieval.done",
        "query": "drug",
        "hits": [{"passage": "guideline:pages#1", "score": 1.0, "rank": 1}],
        "failed": ["pubmed: not reached"],
    },
]


@pytest.fixture(scope="module")
def film(place: ServedOsler) -> str:
    return store_run(place, 0xF11F, FILM)


@pytest.fixture(scope="module")
def forms(place: ServedOsler) -> str:
    return store_run(place, 0xDA6, FORMS)


@pytest.fixture
def shown(window: Window, place: ServedOsler, film: str) -> Iterator[Any]:
    """The film, opened."""
    with window(place, f"runs/{film}") as page:
        page.get_by_text("How it was answered").click()
        page.locator(".frames li").first.wait_for()
        yield page


@pytest.fixture
def graph(window: Window, place: ServedOsler, forms: str) -> Iterator[Any]:
    """The logical form, opened."""
    with window(place, f"runs/{forms}") as page:
        page.get_by_text("How it was answered").click()
        page.locator(".node").first.wait_for()
        yield page


def test_by_these_steps_opens_under_the_answer(place: ServedOsler, window: Window) -> None:
    asked = "What is the mean arterial pressure at 120/75 mmHg?"
    with httpx2.Client(base_url=place.url) as http:
        run = start_run(http, asked, strategy="kag-thinker")
        read_stream(http, run)
    with window(place, f"runs/{run}") as page:
        steps = page.locator("details.steps")
        steps.locator("summary").click()
        told = steps.locator("li").inner_text()
    assert "90 mmHg" in told
    assert "formulas:mean-arterial-pressure#0" in told


def seek(page: Any, step: int) -> None:
    page.get_by_role("slider", name="Step").fill(str(step - 1))


def test_the_film_is_sought_and_shows_the_stack_as_it_was(shown: Any) -> None:
    kept = shown.locator(".frames:not(.gone) li")
    expect_exact_text(kept, ["Conclusion done", "Thought second", "Question q"])
    seek(shown, 2)
    expect_exact_text(kept, ["Thought <b>first</b>", "Question q"])
    shown.get_by_role("slider", name="Step").focus()
    shown.keyboard.press("ArrowLeft")
    expect_exact_text(kept, ["Question q"])


def test_what_was_popped_stays_in_the_film(shown: Any) -> None:
    seek(shown, 4)
    expect_exact_text(shown.locator(".frames.gone li"), ["put aside: Thought <b>first</b>"])
    expect_text(shown.locator(MEMORY), "put aside: irrelevant")


def test_the_plot_shows_the_values_against_sigma_and_a_point_seeks_the_film(shown: Any) -> None:
    expect_count(shown.locator("figure circle"), 2)
    expect_text(shown.locator("figcaption"), "σ = 10")
    first, second = shown.locator("figure circle").all()
    line = float(shown.locator("figure line.sigma").get_attribute("y1"))
    assert float(first.get_attribute("cy")) < line < float(second.get_attribute("cy"))
    first.click()
    expect_text(shown.locator(MEMORY), "Step 3/7")
    second.click()
    shown.get_by_text("sure enough").wait_for()


def test_a_node_of_the_graph_opens_by_key_and_tells_its_step(graph: Any) -> None:
    node = graph.locator(".node").first
    node.focus()
    graph.keyboard.press("Enter")
    told = graph.locator(".shown").inner_text()
    assert "Which drug? → adrenaline" in told
    assert "R(s=d)" in told
    assert "Known without a search?" in told
    expect_count(graph.locator(".dag path"), 3)
    assert node.get_attribute("aria-expanded") == "true"


def test_a_calculation_shows_its_code_and_its_passages_open(graph: Any) -> None:
    graph.get_by_role("button", name="2 calculate").click()
    told = graph.locator(".shown")
    expect_text(told, "print(6 * 7)")
    told.get_by_role("link", name="guideline:pages#0").click()
    graph.locator(".here").wait_for()
    expect_text(graph.locator(".here"), "thigh")


def test_a_source_that_was_down_and_a_warning_are_never_hidden(graph: Any) -> None:
    told = graph.locator(".warnings").inner_text()
    assert "Unavailable: pubmed: not reached" in told
    assert "step 4 was cut off" in told


def test_what_was_found_and_not_used_is_named_and_opens(graph: Any) -> None:
    graph.get_by_role("heading", name="Found but not used: 1").wait_for()
    graph.get_by_role("link", name="guideline:pages#1").click()
    graph.get_by_text("Salbutamol is given first").wait_for()


def test_the_timeline_opens_an_event_as_it_is_stored(shown: Any) -> None:
    expect_count(shown.locator(".timeline > li"), len(FILM) + 1)
    shown.locator(".timeline summary").nth(1).click()
    expect_text(shown.locator(".timeline pre"), '"text": "<b>first</b>"')


def test_a_replay_goes_from_the_first_event_to_the_last(
    window: Window, place: ServedOsler, film: str
) -> None:
    with window(place, f"runs/{film}/replay") as page:
        page.get_by_text(f"Event 2/{len(FILM) + 1}").wait_for()
        page.get_by_text(f"Event {len(FILM) + 1}/{len(FILM) + 1}").wait_for()
        page.get_by_role("button", name="Play").wait_for()
        page.get_by_role("slider", name="Replay").fill("2")
        expect_count(page.locator(".frames li"), 2)
        assert page.locator("figure").count() == 0
        page.get_by_role("button", name="Play").click()
        page.get_by_role("button", name="Pause").click()


def test_runs_are_listed_filtered_opened_and_replayed(page: Any, place: ServedOsler) -> None:
    with httpx2.Client(base_url=place.url) as client:
        read_stream(client, start_run(client, "What is given first in case seven?"))
        read_stream(client, start_run(client, "What is given first in case eight?"))
    page.get_by_role("link", name="All questions").click()
    page.get_by_label("Filter").fill("seven")
    link = page.locator("main").get_by_role("link", name="What is given first in case seven?")
    link.wait_for()
    expect_count(page.locator(".runs li"), 1)
    page.locator(".runs").get_by_role("link", name="Replay").click()
    page.get_by_text("Replay: Event").wait_for()
    page.go_back()
    page.get_by_label("Filter").fill("seven")
    link.click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_two_runs_stand_side_by_side_and_what_both_found_is_marked(
    page: Any, place: ServedOsler
) -> None:
    with httpx2.Client(base_url=place.url) as client:
        read_stream(client, start_run(client, "Which drug comes first, one?"))
        read_stream(client, start_run(client, "Which drug comes first, two?", strategy="direct"))
        read_stream(client, start_run(client, "Which drug comes first, one?", k=1))
    page.get_by_role("link", name="All questions").click()
    page.get_by_label("Filter").fill("comes first, one?")
    page.get_by_role("checkbox").nth(0).check()
    page.get_by_role("checkbox").nth(1).check()
    page.get_by_role("link", name="Side by side").click()
    page.locator(".pair .answer").nth(1).wait_for()
    expect_count(page.locator(".pair > article"), 2)
    expect_exact_text(page.locator("h1"), "Which drug comes first, one?")
    expect_count(page.locator(".both"), 2)
    after = "Node.DOCUMENT_POSITION_FOLLOWING"
    figures = "document.querySelector('section > .scroll')"
    wait_for_script(
        page, f"document.querySelector('.pair').compareDocumentPosition({figures}) === {after}"
    )
    names = page.locator("section > .scroll tbody th").all_inner_texts()
    assert "Evidence" in names
    assert "Answer" not in names, "neither chose among options"
    page.reload()
    page.locator(".pair .answer").nth(1).wait_for()
    page.locator(".pair .cite").last.click()
    page.get_by_role("dialog").wait_for()


def test_the_report_to_print_has_the_same_answer_and_no_script(page: Any) -> None:
    ask_question(page, QUESTION)
    page.get_by_text("More", exact=True).click()
    page.get_by_role("link", name="Printable report").click()
    page.wait_for_url("**/report.html")
    assert "Adrenaline is given first." in page.content()
    assert page.locator("script").count() == 0


def test_on_paper_there_are_the_answer_and_its_evidence_and_no_controls(page: Any) -> None:
    ask_question(page)
    page.emulate_media(media="print")
    page.locator(".answer .said").wait_for()
    page.locator(".card .quote").first.wait_for()
    for gone in ("header", "footer", ".actions", ".side"):
        assert not page.locator(gone).first.is_visible()


def test_a_run_of_five_thousand_events_is_shown(window: Window, place: ServedOsler) -> None:
    many: list[dict[str, Any]] = [{"type": "run.note", "text": f"note {n}"} for n in range(3)]
    model: dict[str, Any] = {
        "type": "model.asked",
        "role": "reader",
        "kind": "complete",
        "prompt": "p@1",
    }
    usage = {"calls": 1}
    many += [{**model, "reply": f"r {n}", "usage": usage} for n in range(5_000)]
    id = store_run(place, 0x5000, many)
    with window(place, f"runs/{id}") as page:
        page.get_by_text("How it was answered").click()
        page.get_by_role("heading", name="All events: 5004").wait_for()
        expect_count(page.locator(".timeline > li"), 200)
        page.get_by_role("button", name="Show earlier events: 4804").click()
        wait_for_script(page, "document.querySelectorAll('.timeline > li').length === 700")


def test_a_run_that_is_not_there_says_so(window: Window, place: ServedOsler) -> None:
    with window(place, "runs/20260101-000000-ffffffffffff", expected=["404"]) as page:
        expect_text(page.get_by_role("alert"), "not there any more")
