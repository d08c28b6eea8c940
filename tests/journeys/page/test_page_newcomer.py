"""What a newcomer stumbled over at the page, once each."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from browsing import (
    PATIENCE,
    QUESTION,
    ask_question,
    expect_count,
    expect_exact_text,
    expect_text,
    wait_for_script,
)
from served import ServedOsler, serve_osler, start_run

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

Window = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 844}}


def until(page: Any, true: Callable[[], bool]) -> None:
    """The page's own rules let no test wait inside of it."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        page.wait_for_timeout(50)


def stands_high(one: Any) -> bool:
    return bool(0 <= one.bounding_box()["y"] < 422)


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_a_menu_stands_whole_on_the_screen(
    window: Window, place: ServedOsler, options: dict[str, Any]
) -> None:
    with window(place, **options) as page:
        ask_question(page)
        page.get_by_text("More", exact=True).click()
        wide = page.viewport_size["width"]
        box = page.locator(".actions .menu[open] > div").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= wide
        page.keyboard.press("Escape")
        if options:
            page.get_by_role("button", name="Conversations").click()
        page.locator(".side .menu summary").first.click()
        for name in ("Rename", "Pin"):
            one = page.get_by_role("button", name=name, exact=True).bounding_box()
            assert one["height"] < 60, "a word stands on one line"
            assert one["x"] >= 0
            assert one["x"] + one["width"] <= wide


def test_a_menu_closes_by_escape_by_a_click_elsewhere_and_on_another_page(page: Any) -> None:
    ask_question(page)
    opened = page.locator("details.menu[open]")

    def open_menu() -> None:
        page.get_by_text("More", exact=True).click()
        expect_count(opened, 1)

    open_menu()
    page.keyboard.press("Escape")
    expect_count(opened, 0)
    assert page.evaluate("document.activeElement.textContent") == "More"
    open_menu()
    page.locator("h1").click()
    expect_count(opened, 0)
    page.locator(".side .menu summary").first.click()
    expect_count(opened, 1)
    page.get_by_role("link", name="Knowledge", exact=True).click()
    expect_count(opened, 0)


def test_another_page_begins_at_its_top(window: Window, place: ServedOsler) -> None:
    with window(place, viewport={"width": 1280, "height": 300}) as page:
        ask_question(page)
        page.mouse.move(900, 200)
        page.mouse.wheel(0, 5_000)
        until(page, lambda: page.evaluate("scrollY") > 100)
        page.evaluate("location.hash = '#/knowledge'")
        page.get_by_role("heading", name="Knowledge", exact=True).wait_for()
        until(page, lambda: page.evaluate("scrollY") == 0)


def test_what_is_asked_next_is_in_sight(window: Window, place: ServedOsler) -> None:
    with window(place, **PHONE) as page:
        ask_question(page)
        for text in ("Which dose is given first?", "Which dose is given at once?"):
            page.get_by_label("Ask a follow-up question").fill(text)
            page.keyboard.press("Enter")
            turn = page.locator("details.turn summary", has_text=text)
            turn.wait_for()
            until(page, partial(stands_high, turn))


def test_an_example_that_is_chosen_is_sent_by_enter(window: Window, place: ServedOsler) -> None:
    with window(place) as page:
        example = {"question": QUESTION, "options": [], "language": "en"}
        page.route("**/api/v1/examples", lambda route: route.fulfill(json={"examples": [example]}))
        page.reload()
        page.get_by_role("button", name=QUESTION).click()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_a_server_that_takes_no_documents_promises_nothing(window: Window, home: Path) -> None:
    with serve_osler(home) as plain, window(plain) as page:
        browser = page.context.new_cdp_session(page)
        file = home / "protocol.txt"
        file.write_text("Glucose is measured again after 15 minutes.", encoding="utf-8")
        data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver"):
            told = {"type": kind, "x": 100, "y": 100, "data": data}
            browser.send("Input.dispatchDragEvent", told)
        expect_text(page.locator(".drop"), "Documents cannot be added on this page")
        assert "Let go" not in page.locator(".drop").inner_text()
        assert page.get_by_label("Add your own files").count() == 0


def attach(page: Any, *names: str) -> None:
    """Each file has words of its own."""
    texts = {name: f"The okapi of {name} is kept in room eight. It is well." for name in names}
    kind = "text/plain"
    files = [{"name": name, "mimeType": kind, "buffer": texts[name].encode()} for name in names]
    page.get_by_label("Add your own files").set_input_files(files)


def test_files_are_attached_beside_the_question_and_are_said_to_be_ready(
    window: Window, place: ServedOsler
) -> None:
    with window(place) as page:
        expect_text(page.locator(".ask"), "or drop a file here")
        told = page.locator(".drop p")
        attach(page, "ward-protocol.md")
        expect_exact_text(told, "ward-protocol.md is ready to ask about")
        attach(page, "ward-protocol.md")
        expect_exact_text(told, "ward-protocol.md is already there")
        attach(page, "one.md", "two.md")
        expect_exact_text(told, ["2 files are ready to ask about"])
        expect_count(told, 0)  # by itself


def test_what_is_said_of_a_file_hides_nothing_on_a_phone(
    window: Window, place: ServedOsler
) -> None:
    with window(place, expected=["422"], **PHONE) as page:
        attach(page, "tool.exe")
        expect_text(page.locator(".drop"), "tool.exe: a file of .exe is not accepted")
        ask_question(page)
        told, answer = page.locator(".drop").bounding_box(), page.locator(".answer").bounding_box()
        assert told["y"] >= 0
        assert told["y"] + told["height"] <= answer["y"]


def test_a_method_that_reads_no_texts_is_not_told_that_they_changed(
    window: Window, place: ServedOsler
) -> None:
    with httpx2.Client(base_url=place.url) as client:
        run = start_run(client, QUESTION, strategy="direct")
    with window(place, f"runs/{run}") as page:
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert page.locator(".outdated").count() == 0


def test_a_method_that_searches_nothing_says_so_where_no_model_may_write(
    window: Window, home: Path
) -> None:
    mute = {role: {"writes": "no"} for role in ("planner", "reader")}
    with serve_osler(home, roles=mute, strategy={"kind": "cot"}) as place, window(place) as page:
        ask_question(page)
        expect_text(page.locator(".answer .abstained"), "No search was made; without one only")
        expect_text(page.locator(".cards"), "No search was made.")
        assert page.get_by_text("evidence does not").count() == 0


def test_without_the_laboratory_there_are_no_evaluations_and_nothing_is_wrong(
    window: Window, place: ServedOsler
) -> None:
    told = {"code": "not_found", "message": "no such address"}
    with window(place, expected=("404",)) as page:
        page.route(
            "**/api/v1/evaluations", lambda route: route.fulfill(status=404, json={"error": told})
        )
        page.get_by_role("link", name="Evaluations").click()
        page.get_by_text("No evaluations yet").wait_for()
        assert page.get_by_role("alert").count() == 0


def test_the_list_gives_way_to_the_conversation_that_is_chosen_even_the_open_one(
    window: Window, place: ServedOsler
) -> None:
    with window(place, **PHONE) as page:
        ask_question(page)
        page.get_by_role("button", name="Conversations").click()
        page.locator(".side a[aria-current]").click()
        page.locator(".side").wait_for(state="hidden")


def test_a_fresh_answer_is_not_outdated_however_old_the_page_is(window: Window, home: Path) -> None:
    with serve_osler(home) as place, window(place) as page:
        ask_question(page)
        with KnowledgeBase.open(home / "kb") as kb:
            kb.remove(source="wiki")
            kb.build(HashingEncoder())
        first = page.url
        page.get_by_role("link", name="New question").click()
        ask_question(page)
        assert page.url != first
        assert page.locator(".outdated").count() == 0
        page.goto(first)
        expect_text(page.locator(".outdated"), "has changed since this answer")
        page.locator(".outdated button").click()
        expect_count(page.locator("details.turn"), 2)
        page.get_by_role("region", name="Answer 2", exact=True).wait_for()
        assert page.locator(".outdated").count() == 0


def test_a_new_question_begins_with_an_empty_box_wherever_it_is_begun(page: Any) -> None:
    field = page.get_by_label("A medical question")
    for name in ("New question", "Knowledge"):
        field.fill("Half a question")
        page.get_by_role("link", name=name, exact=True).click()
        page.get_by_role("link", name="New question").click()
        until(page, lambda: field.input_value() == "")
        wait_for_script(page, "document.activeElement.tagName === 'TEXTAREA'")


def test_a_slash_on_an_answer_leads_to_the_box_that_asks_further(page: Any) -> None:
    ask_question(page)
    page.get_by_label("Ask a follow-up question").wait_for()
    page.keyboard.press("/")
    wait_for_script(page, "document.activeElement.closest('.followup') !== null")


def test_a_question_that_is_asked_is_listed_whatever_was_searched_for(page: Any) -> None:
    ask_question(page)
    page.get_by_label("Search conversations").fill("zebra")
    expect_count(page.locator(".side li"), 0)
    page.get_by_role("link", name="New question").click()
    ask_question(page, "What is given in asthma?")
    expect_text(page.locator(".side a[aria-current]"), "What is given in asthma?")


def test_a_quote_under_the_pointer_stays_inside_the_window(
    window: Window, place: ServedOsler
) -> None:
    with window(place, viewport={"width": 1280, "height": 800}) as page:
        ask_question(page)
        page.evaluate("document.querySelector('.said').style.paddingLeft = '500px'")
        page.locator(".cite").first.hover()
        box = page.locator(".tip").first.bounding_box()
        assert box["x"] + box["width"] <= 1280
