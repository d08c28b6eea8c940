"""The page in a real Chromium, over a real server. Needs `make page`, playwright and Chromium."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from osler import web
from osler.serve.ledger import Entry
from osler.testing.served import TEXTS, Place, Speaks, asked, events, filled, serving
from osler.trace import from_line

sync_api = pytest.importorskip("playwright.sync_api", reason="not installed: playwright")
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
    pytest.mark.skipif(not web.files(), reason="the page is not built: make page"),
]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
QUESTION = "Which drug is given first, into the outer thigh, at once?"
HOSTILE = "<img src=x onerror=document.title='owned'> **[x](http://192.0.2.1/)** first \u202e"
FILM: list[dict[str, Any]] = [
    {"type": "stack.push", "i": 0, "kind": "User_Query", "text": "q", "depth": 1},
    {"type": "stack.push", "i": 1, "kind": "Thought", "text": "<b>first</b>", "depth": 2},
    {
        "type": "state.updated",
        "i": 1,
        "metric": "cppl",
        "value": 42.0,
        "sigma": 10.0,
        "exact": True,
        "halted": False,
    },
    {
        "type": "stack.pop",
        "i": 2,
        "kind": "Thought",
        "by": "Backtrack",
        "depth": 1,
        "restored": None,
        "reason": "irrelevant",
    },
    {
        "type": "lf.parsed",
        "nodes": [
            {"n": 1, "fn": "Retrieval", "step": "Which drug?", "action": "", "needs": []},
            {"n": 2, "fn": "Output", "step": "Say it", "action": "", "needs": [1]},
        ],
    },
    {"type": "lf.node", "n": 1, "status": "done", "answer": "adrenaline", "own_knowledge": True},
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    many = {"caller_minute": 100_000}
    with serving(tmp_path_factory.mktemp("page"), serve=many) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Seen:
    """What a page must never do."""

    def __init__(self, page: Any, url: str) -> None:
        self.wrong: list[str] = []
        self.expected = ""
        page.on("console", lambda m: self._note(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append("dialog"))
        page.on("request", lambda r: self.wrong.append(r.url) if url not in r.url else None)

    def _note(self, text: str) -> None:
        if not (self.expected and self.expected in text):
            self.wrong.append(text)


@pytest.fixture
def seen() -> dict[str, Seen]:
    return {}


@pytest.fixture
def page(chromium: Any, place: Place, seen: dict[str, Seen]) -> Iterator[Any]:
    context = chromium.new_context(locale="en-GB")
    made = context.new_page()
    made.set_default_timeout(15_000)
    seen["page"] = Seen(made, place.url)
    made.goto(f"{place.url}/")
    yield made
    wrong = seen["page"].wrong
    context.close()
    assert not wrong


def ask(page: Any, question: str = QUESTION) -> None:
    page.get_by_label("A medical question").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def recorded(place: Place, id: str, lines: list[dict[str, Any]]) -> None:
    """A run that was cancelled after these events."""
    told = [json.dumps(line, separators=(",", ":")) for line in lines]
    for line in told:
        from_line(line)  # the test's events are such as Osler writes
    ledger = place.site.ledger
    ledger.begin(Entry(id, "default", "local", "2026-01-01T00:00:00", "queued", "tc-rag", "A film"))
    ledger.end(
        id, "cancelled", code="cancelled", detail="it was asked to stop", events="\n".join(told)
    )


def test_a_question_is_answered_and_its_citation_opens_the_passage_at_the_quote(page: Any) -> None:
    ask(page)
    assert "Adrenaline is given first." in page.locator(".answer").inner_text()
    page.locator(".cite").first.click()
    dialog = page.get_by_role("dialog")
    dialog.wait_for()
    marked = dialog.locator("mark").inner_text()
    assert marked
    assert marked in dialog.locator(".passage").inner_text()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")


def test_a_reload_shows_the_same_answer_with_its_citations(page: Any) -> None:
    ask(page)
    before = page.locator(".columns").inner_text()
    page.reload()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert page.locator(".columns").inner_text() == before
    assert page.locator(".cite").count() == 1


def test_evidence_stands_by_source_and_a_card_opens_too(page: Any) -> None:
    ask(page)
    assert page.locator(".source h3").first.inner_text() in TEXTS
    page.locator(".card").first.click()
    page.get_by_role("dialog").locator("mark").wait_for()


def test_a_plan_is_edited_before_it_runs(page: Any) -> None:
    page.get_by_label("A medical question").fill(QUESTION)
    page.get_by_role("button", name="Plan first").click()
    page.get_by_role("group", name="Source plan").wait_for()
    page.get_by_label("guideline").fill("adrenaline dose")
    while page.get_by_role("button", name="Leave out").count() > 1:
        page.locator("fieldset .row", has_not=page.get_by_label("guideline")).first.get_by_role(
            "button"
        ).click()
    page.get_by_role("button", name="Run this plan").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    page.get_by_text("How it was reached").click()
    assert page.locator(".machinery ul li").all_inner_texts() == ["guideline: adrenaline dose"]


def test_the_film_is_sought_and_shows_the_stack_as_it_was(page: Any, place: Place) -> None:
    recorded(place, "20260101-000000-00000000f11f", FILM)
    page.goto(f"{place.url}/#/runs/20260101-000000-00000000f11f")
    page.get_by_text("How it was reached").click()
    page.locator(".frames li").first.wait_for()
    assert page.locator(".frames li").all_inner_texts() == ["User_Query q"]
    page.locator("svg circle").click()
    assert page.locator(".frames li").first.inner_text() == "Thought <b>first</b>"
    assert "σ = 10" in page.locator("figcaption").inner_text()
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".frames li").count() == 1


def test_a_node_of_the_graph_tells_its_step_and_answer(page: Any, place: Place) -> None:
    recorded(place, "20260101-000000-00000000da60", FILM)
    page.goto(f"{place.url}/#/runs/20260101-000000-00000000da60")
    page.get_by_text("How it was reached").click()
    node = page.locator(".node").first
    node.focus()
    page.keyboard.press("Enter")
    assert "Which drug? → adrenaline" in page.locator(".shown").inner_text()
    assert page.locator(".dag path").count() == 1


def test_what_a_question_or_a_passage_wrote_stays_text(page: Any) -> None:
    ask(page, HOSTILE + " adrenaline hostile page")
    assert page.locator("main img, main script, main iframe").count() == 0
    assert "<img src=x" in page.locator("h1").inner_text()
    page.get_by_text("How it was reached").click()
    assert page.title() == "Osler"


def test_a_hostile_passage_is_shown_as_it_is_written(chromium: Any, tmp_path: Path) -> None:
    model = Speaks(reply="A hostile page, adrenaline. [1]")
    with serving(tmp_path, model=model) as place, httpx2.Client(base_url=place.url) as client:
        run = asked(client, "A hostile page, adrenaline?", sources=["wiki"])
        events(client, run)
        page = chromium.new_page()
        watched = Seen(page, place.url)
        page.goto(f"{place.url}/#/runs/{run}")
        page.locator(".card").first.click()
        assert "<script>alert(1)</script>" in page.get_by_role("dialog").inner_text()
        assert page.locator("main img, main script, dialog img, dialog script").count() == 0
        page.close()
    assert not watched.wrong


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: make page")
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_serious_on_any_page(page: Any, place: Place, *, dark: bool) -> None:
    id = f"20260101-000000-0000000000a{int(dark)}"
    recorded(place, id, FILM)
    with httpx2.Client(base_url=place.url) as client:
        answered = asked(client)
        events(client, answered)
    if dark:
        page.get_by_role("button", name="Dark or light").click()
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = []
    for address, there in (
        ("", "textarea"),
        ("runs", ".runs li"),
        (f"runs/{id}", ".machinery"),
        (f"runs/{answered}", ".card"),
    ):
        page.evaluate("where => { location.hash = where }", f"#/{address}")
        page.locator(there).first.wait_for()
        if summary := page.locator("summary").all():
            summary[0].click()
        result = page.evaluate("() => axe.run()")
        found += [
            (address, one["id"], one["nodes"][0]["html"][:200])
            for one in result["violations"]
            if one["impact"] in ("serious", "critical")
        ]
    assert not found


def test_the_page_is_all_chinese_when_asked(page: Any) -> None:
    page.get_by_role("button", name="中文").click()
    page.get_by_label("医学问题").fill("过敏性休克首选什么药？")
    page.get_by_role("button", name="提问", exact=True).click()
    page.get_by_role("heading", name="回答").wait_for()
    assert page.evaluate("document.documentElement.lang") == "zh"


def test_dark_and_light_differ_and_the_narrowest_screen_needs_no_sideways_scroll(page: Any) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Dark or light").click()
    assert page.evaluate(colour) != light
    page.set_viewport_size({"width": 360, "height": 700})
    ask(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_runs_are_listed_and_open_again(page: Any, place: Place) -> None:
    with httpx2.Client(base_url=place.url) as client:
        events(client, asked(client, "What is given first in case seven?"))
    page.get_by_role("link", name="Runs").click()
    page.get_by_role("link", name="What is given first in case seven?").first.click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_a_question_that_is_refused_says_why(page: Any, seen: dict[str, Seen]) -> None:
    seen["page"].expected = "422"
    page.get_by_label("A medical question").fill("\x01")
    page.get_by_role("button", name="Ask", exact=True).click()
    assert "control characters" in page.get_by_role("alert").inner_text()


def test_a_run_that_is_stopped_says_so(chromium: Any, tmp_path: Path) -> None:
    filled(tmp_path)
    with serving(tmp_path, model=Speaks(gate=threading.Event())) as place:
        page = chromium.new_page()
        page.goto(f"{place.url}/")
        page.get_by_label("A medical question").fill(QUESTION)
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("alert").wait_for()
        assert page.get_by_role("alert").inner_text() == "It was stopped"
        page.close()
