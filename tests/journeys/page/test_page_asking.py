"""Asking on the page, and reading the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import httpx2
from browsing import (
    QUESTION,
    ask_question,
    expect_count,
    expect_exact_text,
    expect_text,
    fill_with_samples,
    many_pages,
    wait_for_script,
)
from served import (
    FixedModel,
    ServedOsler,
    fill_knowledge_base,
    read_stream,
    serve_osler,
    start_run,
)
from waiting import AwaitableEvent

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.keys import new_key
from osler_serve.ledger import Ledger

Window = Callable[..., Any]


def test_a_question_is_answered_and_its_citation_opens_the_passage_at_the_quote(page: Any) -> None:
    ask_question(page)
    expect_text(page.locator(".answer"), "Adrenaline is given first.")
    page.locator(".cite").first.click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    marked = dialog.locator("mark").inner_text()
    assert marked
    expect_text(dialog.locator(".passage"), marked)
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")


def test_a_citation_under_the_pointer_lights_its_card_and_shows_the_quote(page: Any) -> None:
    ask_question(page)
    page.locator(".cite").first.hover()
    page.locator(".card.lit").wait_for()
    tip = page.locator(".cited .tip").first
    assert tip.is_visible()
    expect_text(tip, page.locator(".card.lit .quote").inner_text())
    page.locator("h1").hover()
    page.locator(".card.lit").wait_for(state="detached")
    assert not tip.is_visible()


def test_a_reader_says_that_an_answer_is_unsafe_and_why(page: Any, place: ServedOsler) -> None:
    ask_question(page)
    page.get_by_role("button", name="Feedback").click()
    page.get_by_role("button", name="unsafe").click()
    page.get_by_label("Why? Name no patient.").fill("no dose")
    page.get_by_role("button", name="Send").click()
    expect_text(page.locator(".feedback"), "Stored. Thank you.")
    (kept, *_) = httpx2.get(f"{place.url}/api/v1/feedback").json()["feedback"]
    assert (kept["verdict"], kept["note"]) == ("unsafe", "no dose")


def test_a_reload_shows_the_same_answer_with_its_citations(page: Any) -> None:
    ask_question(page)
    before = page.locator(".answered .answer").inner_text()
    page.reload()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    expect_exact_text(page.locator(".answered .answer"), before)
    expect_count(page.locator(".cite"), 2)


def test_evidence_stands_by_source_and_one_source_can_be_looked_at(page: Any) -> None:
    ask_question(page)
    sources = page.locator(".source").count()
    assert sources > 1
    tabs = page.locator(".tabs button")
    expect_count(tabs, sources + 1)
    tabs.nth(1).click()
    expect_count(page.locator(".source"), 1)
    page.locator(".card").first.click()
    page.get_by_role("dialog").locator("mark").wait_for()


def test_the_keyboard_is_enough(page: Any) -> None:
    page.get_by_label("A medical question").wait_for()
    page.keyboard.type(QUESTION[:20])
    page.keyboard.press("Shift+Enter")
    page.keyboard.type(QUESTION[20:])
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == page.locator(".card").nth(1).get_attribute(
        "id"
    )
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")  # the closed one has no role any more
    page.keyboard.press("1")
    page.get_by_role("dialog").get_by_text("[1]").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    wait_for_script(page, "document.activeElement.tagName === 'TEXTAREA'")


def test_a_plan_is_edited_before_it_runs(page: Any) -> None:
    page.get_by_label("A medical question").fill(QUESTION)
    page.get_by_role("button", name="Plan first").click()
    plan = page.get_by_role("group", name="Source plan")
    plan.wait_for()
    while page.get_by_role("button", name="Remove").count() > 1:
        page.get_by_role("button", name="Remove").first.click()
    plan.get_by_role("textbox").fill("adrenaline dose")
    plan.get_by_role("combobox").select_option("guideline")
    plan.get_by_role("button", name="Add a query").click()
    assert plan.get_by_role("button", name="Run this plan").is_disabled()
    plan.get_by_role("textbox").nth(1).fill("thigh")
    plan.get_by_role("combobox").nth(1).select_option("wiki")
    plan.get_by_role("button", name="Run this plan").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    page.get_by_text("How it was answered").click()
    shown = page.locator(".machinery .plan li").all_inner_texts()
    assert shown == ["guideline: adrenaline dose", "wiki: thigh"]


def test_a_plan_that_asks_nothing_runs_too(page: Any) -> None:
    page.get_by_label("A medical question").fill(QUESTION)
    page.get_by_role("button", name="Plan first").click()
    page.get_by_role("group", name="Source plan").wait_for()
    while page.get_by_role("button", name="Remove").count():
        page.get_by_role("button", name="Remove").first.click()
    page.get_by_text("No source will be searched.").wait_for()
    page.get_by_role("button", name="Run this plan").click()
    page.get_by_text("No search was made.").wait_for()


def test_an_option_that_was_chosen_stands_out(window: Window, home: Path) -> None:
    with serve_osler(home, model=FixedModel(reply="B. [1]")) as place, window(place) as page:
        page.get_by_text("Answer options, method and sources").click()
        page.get_by_label("Answer options, one per line").fill("salbutamol\nadrenaline")
        page.get_by_role("checkbox", name="guideline").check()
        ask_question(page)
        expect_exact_text(page.locator(".option"), "B. adrenaline")
        expect_exact_text(page.locator(".options .chosen"), "adrenaline")
        page.get_by_text("How it was answered").click()
        searched = page.locator(".timeline > li", has_text="Search").first.inner_text()
        assert "guideline: " in searched
        assert "wiki" not in searched


def test_questions_of_the_sample_texts_are_offered_and_fill_the_form(
    window: Window, home: Path
) -> None:
    with serve_osler(home, fill=fill_with_samples) as place, window(place) as page:
        first = page.locator(".example").first
        text = first.inner_text()
        first.click()
        assert page.get_by_label("A medical question").input_value() == text
        page.locator(".example").first.wait_for(state="detached")


def test_a_run_is_watched_while_it_goes_and_shows_its_answer_by_itself(
    window: Window, home: Path
) -> None:
    gate = AwaitableEvent()
    with serve_osler(home, model=FixedModel(gate=gate)) as place, window(place) as page:
        page.get_by_label("A medical question").fill(QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_text("Working: reading 3 passages").wait_for()
        gate.set()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert page.get_by_text("Working").count() == 0


def test_a_run_that_is_stopped_says_so(window: Window, home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with serve_osler(home, model=model) as place, window(place) as page:
        page.get_by_label("A medical question").fill(QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        found = page.get_by_role("region", name="Found so far").locator("article")
        expect_text(found.first, "Adrenaline")
        texts = found.all_inner_texts()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("alert").wait_for()
        expect_exact_text(page.get_by_role("alert"), "You stopped this question.")
        page.get_by_role("button", name="Ask again").wait_for()
        kept = page.get_by_role("region", name="Found before the stop; not an answer")
        assert kept.locator("article").all_inner_texts() == texts
        assert page.get_by_role("heading", name="Answer", exact=True).count() == 0
        page.reload()
        expect_exact_text(kept.locator("article"), texts)
        kept.get_by_role("link").first.click()
        page.wait_for_url("**/#/passages/**")


def cut(page: Any, seen: list[str], *, away: int = 0) -> None:
    """The first reply ends cleanly in mid-run; so many tries after it find no server."""

    def handle(route: Any) -> None:
        seen.append(route.request.headers.get("last-event-id", ""))
        if len(seen) == 1:
            first = b'id: 1\nevent: run.note\ndata: {"type":"run.note","text":"one"}\n\n'
            route.fulfill(body=first, content_type="text/event-stream")
        elif len(seen) <= 1 + away:
            route.abort()
        else:
            route.continue_()

    page.route("**/events", handle)


def test_a_stream_that_ends_in_mid_run_is_read_on_from_the_last_event(
    window: Window, home: Path
) -> None:
    gate = AwaitableEvent()
    seen: list[str] = []
    with serve_osler(home, model=FixedModel(gate=gate)) as place, window(place) as page:
        cut(page, seen)
        page.get_by_label("A medical question").fill(QUESTION)
        with page.expect_request(lambda sent: sent.headers.get("last-event-id") == "1"):
            page.get_by_role("button", name="Ask", exact=True).click()
        wait_for_script(page, "!document.body.innerText.includes('connection was lost')")
        page.get_by_text("Working").wait_for()
        gate.set()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert seen == ["0", "1"]


def test_a_lost_connection_is_said_and_tried_again(window: Window, home: Path) -> None:
    gate = AwaitableEvent()
    seen: list[str] = []
    refused = "ERR_FAILED"
    with (
        serve_osler(home, model=FixedModel(gate=gate)) as place,
        window(place, expected=[refused]) as page,
    ):
        cut(page, seen, away=3)
        page.get_by_label("A medical question").fill(QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_text("Connection lost").wait_for()
        gate.set()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        page.get_by_text("How it was answered").click()
        last = page.locator(".timeline > li").last.inner_text()
        assert last.startswith("Finished")
        assert seen == ["0", "1", "1", "1", "1"]


def test_a_question_that_is_refused_says_why(window: Window, place: ServedOsler) -> None:
    with window(place, expected=["422"]) as page:
        page.get_by_label("A medical question").fill("\x01")
        page.get_by_role("button", name="Ask", exact=True).click()
        expect_text(page.get_by_role("alert"), "signs that are not text. Your question is kept")
        assert page.get_by_label("A medical question").input_value() == "\x01"


def test_a_server_with_keys_asks_for_one(window: Window, home: Path) -> None:
    fill_knowledge_base(home)
    ledger = Ledger(home / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    with serve_osler(home) as place, window(place, expected=["401"]) as page:
        page.get_by_label("API key required").fill(key)
        page.get_by_role("button", name="Open").click()
        ask_question(page)
        page.get_by_text("More", exact=True).click()
        with page.expect_download() as saved:  # a link bears no key
            page.get_by_role("button", name="Printable report").click()
        report = Path(saved.value.path()).read_text(encoding="utf-8")
        assert report.startswith("<!doctype html>")
        page.reload()
        page.get_by_label("API key required").wait_for()


def test_a_sentence_without_a_citation_is_marked(window: Window, home: Path) -> None:
    with serve_osler(home, model=FixedModel(reply="It is so.")) as place, window(place) as page:
        ask_question(page)
        expect_count(page.locator(".uncited"), 1)
        assert page.locator(".cite").count() == 0
        expect_text(page.locator(".answer"), "not cited")


def test_evidence_with_a_later_issue_stands_beside_the_answer_and_opens(
    window: Window, home: Path
) -> None:
    old = "The maintenance dose of examplol in samplosis is 5 mg once a day."
    new = "In samplosis examplol is given once a day, says the ward."
    model = FixedModel(reply=f"{old} [1] {old} [2]")

    def filled_with_both(at: Path) -> None:
        (at / "issues").mkdir()
        for issue, said in (("2nd", old), ("3rd", new)):
            page = f"# Handbook of samplosis, {issue} edition\n\n{said}\n"
            (at / "issues" / f"{issue}.md").write_text(page, encoding="utf-8")
        with KnowledgeBase.create(at / "kb") as kb:
            kb.add([at / "issues"], source="book", licence="CC0-1.0")
            kb.build(HashingEncoder())

    with (
        # As the policy is by default the old issue would be left out.
        serve_osler(home, model=model, fill=filled_with_both, retrieve={"policy": "none"}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = start_run(client, "What is the dose of examplol in samplosis?")
        read_stream(client, run)
        (told, *_) = client.get(f"/api/v1/runs/{run}").json()["cautions"]
        assert told["rule"] == "superseded"
        with window(place, f"runs/{run}") as page:
            box = page.get_by_role("note", name="Cautions")
            box.wait_for()
            expect_text(box, told["text"])
            for said in (old, new):
                expect_text(box, said)
            box.get_by_role("link").first.click()
            page.locator("main .text", has_text="examplol").first.wait_for()


def write_differently(words: Sequence[str], count: int) -> list[str]:
    """Sentences of the same words, none written as another is: an answer says none twice."""
    gaps = islice(product((" ", ", ", ": "), repeat=len(words) - 1), count)
    return ["".join(map("".join, zip(words, (*signs, "."), strict=True))) for signs in gaps]


def test_an_answer_of_ten_thousand_words_is_shown_whole(window: Window, home: Path) -> None:
    words = ["Adrenaline", "is", "given", "first", "into", "the", "outer thigh", "at", "once"]
    reply = " ".join(f"{one} [1]" for one in write_differently(words, 1_000))
    with serve_osler(home, model=FixedModel(reply=reply)) as place, window(place) as page:
        ask_question(page)
        expect_count(page.locator(".cite"), 1_000)
        assert page.locator(".answer").inner_text().count("outer thigh") == 1_000
        page.locator(".cite").last.click()
        page.get_by_role("dialog").wait_for()


def test_two_hundred_cards_are_shown_and_open(window: Window, home: Path) -> None:
    said = write_differently(["Adrenaline", "is", "given", "first", "says", "page"], 200)
    reply = " ".join(f"{one} [{n}]" for n, one in enumerate(said, 1))

    def filled_with_many(at: Path) -> None:
        fill_knowledge_base(at, many_pages(210))

    with (
        serve_osler(home, model=FixedModel(reply=reply), fill=filled_with_many) as place,
        httpx2.Client(base_url=place.url, timeout=60) as client,
    ):
        run = start_run(client, QUESTION, k=200)
        read_stream(client, run)
        with window(place, f"runs/{run}") as page:
            page.locator(".card").first.wait_for()
            expect_count(page.locator(".card"), 200)
            page.locator(".card").nth(199).click()
            page.get_by_role("dialog").get_by_text("[200]").wait_for()
