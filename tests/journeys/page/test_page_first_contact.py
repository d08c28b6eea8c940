"""The first minute at the page: Enter sends, the question stands at once, a quote is read once."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import httpx2
import pytest
from browsing import QUESTION, ask_question, expect_count, expect_exact_text, expect_text
from docx import Document
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

Window = Callable[..., Any]
GOUT = {
    "book": "## Gout\n\n### Acute attack\n\nGout begins at night. Colchicine is given first in an"
    " acute attack of gout. It is taken early.\n\n"
    "### Diet\n\nBeer and offal are left out by people with gout.\n"
}


def test_the_question_stands_on_the_page_before_the_server_has_replied(
    window: Window, home: Path
) -> None:
    with serve_osler(home) as place, window(place) as page:
        held: list[Any] = []

        def hold(route: Any) -> None:
            held.append(route)

        page.route("**/api/v1/runs", hold)
        page.get_by_label("A medical question").fill(QUESTION)
        page.keyboard.press("Enter")
        expect_exact_text(page.locator("h1"), QUESTION)
        expect_text(page.get_by_role("status").first, "Working")
        (waiting,) = held
        waiting.continue_()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        expect_text(page.locator(".side a[aria-current]"), QUESTION)


def test_stages_are_told_while_an_answer_is_made(window: Window, home: Path) -> None:
    gate = AwaitableEvent()
    with serve_osler(home, model=FixedModel(gate=gate)) as place, window(place) as page:
        page.get_by_label("A medical question").fill(QUESTION)
        page.keyboard.press("Enter")
        try:
            expect_text(page.locator(".stages .now"), "reading 3 passages")
            expect_text(page.locator(".stages"), "searching")
            first = page.get_by_role("region", name="Found so far")
            expect_text(first, "into the outer thigh, at once")
        finally:
            gate.set()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_enter_of_an_input_method_sends_nothing(window: Window, place: ServedOsler) -> None:
    with window(place) as page:
        field = page.get_by_label("A medical question")
        field.fill("过敏性休克")
        field.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
        assert field.input_value() == "过敏性休克"
        field.dispatch_event("keydown", {"key": "Enter"})
        page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_a_server_that_is_away_is_said_in_words_and_the_question_is_kept(
    window: Window, place: ServedOsler
) -> None:
    with window(place, expected=["ERR_FAILED"]) as page:
        page.route("**/api/v1/runs", lambda route: route.abort())
        page.get_by_label("A medical question").fill(QUESTION)
        page.keyboard.press("Enter")
        said = "The server cannot be reached. Your question is kept; send it again."
        expect_exact_text(page.get_by_role("alert"), said)
        page.unroute("**/api/v1/runs")
        page.reload()
        assert page.get_by_label("A medical question").input_value() == QUESTION
        page.get_by_label("A medical question").press("Enter")
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        page.get_by_role("link", name="New question").click()
        assert page.get_by_label("A medical question").input_value() == ""


def test_the_list_of_conversations_comes_back_with_the_server(
    window: Window, place: ServedOsler
) -> None:
    with window(place, expected=["ERR_FAILED"]) as page:
        page.route("**/api/v1/conversations*", lambda route: route.abort())
        page.reload()
        told = page.locator("nav.side").get_by_text("cannot be reached")
        expect_count(told, 1)
        page.unroute("**/api/v1/conversations*")
        expect_count(told, 0)


def test_a_question_that_is_too_long_is_refused_in_words_and_kept(
    window: Window, place: ServedOsler
) -> None:
    with window(place, expected=["422"]) as page:
        page.get_by_label("A medical question").fill("x" * 9_000)
        page.keyboard.press("Enter")
        expect_text(page.get_by_role("alert"), "This is too long: shorten it")
        assert len(page.get_by_label("A medical question").input_value()) == 9_000


@pytest.fixture
def quoting(home: Path) -> Any:
    """A server whose model words nothing: answers are quotes."""

    def fill(at: Path) -> None:
        fill_knowledge_base(at, GOUT)

    mute = {role: {"writes": "no"} for role in ("planner", "reader")}
    with serve_osler(home, roles=mute, fill=fill) as place:
        yield place


def test_each_quote_stands_once_and_the_others_are_marked_in_their_passages(
    window: Window, quoting: ServedOsler
) -> None:
    with window(quoting) as page:
        ask_question(page, "Which drug is given first in an acute attack of gout?")
        best = "Colchicine is given first in an acute attack of gout. It is taken early."
        expect_text(page.locator(".answer .said"), best)
        shown = page.locator("main").evaluate("main => main.innerText")
        assert shown.count(best) == 1
        assert "(" not in page.locator(".answer .sure").inner_text(), "a word, not a figure"
        page.locator(".card").first.click()
        expect_exact_text(page.get_by_role("dialog").locator("mark"), best)


def test_the_best_quote_opens_in_its_whole_section_and_in_no_other(
    window: Window, home: Path
) -> None:
    attack = GOUT["book"].partition("### Diet")[0]
    filler = [f"On day {n} of the attack the foot is rested and kept cool.\n\n" for n in range(90)]
    text = attack + "".join(filler) + "### Diet\n\nBeer and offal are left out.\n"
    mute = {role: {"writes": "no"} for role in ("planner", "reader")}

    def fill(at: Path) -> None:
        fill_knowledge_base(at, {"book": text})

    with serve_osler(home, roles=mute, fill=fill) as place, window(place) as page:
        ask_question(page, "Which drug is given first in an acute attack of gout?")
        page.get_by_role("button", name="See it in its section").press("Enter")
        shown = page.get_by_role("dialog").locator(".passage")
        expect_exact_text(
            shown.locator("mark"),
            "Colchicine is given first in an acute attack of gout. It is taken early.",
        )
        expect_text(shown, "Gout begins at night.")
        expect_text(shown.locator(".beside"), "On day")
        assert "Beer" not in shown.inner_text()


def test_an_exported_answer_begins_as_the_page_does_and_goes_on_in_its_order(
    window: Window, quoting: ServedOsler
) -> None:
    guide = "# Gout\n\nIn an acute attack of gout colchicine is the drug that is given first.\n"
    with KnowledgeBase.open(quoting.site.settings.home / "kb") as kb:
        (quoting.site.settings.home / "gout.md").write_text(guide, encoding="utf-8")
        kb.add([quoting.site.settings.home / "gout.md"], source="guideline", licence="CC0-1.0")
        kb.build(HashingEncoder())
    with window(quoting) as page:
        ask_question(page, "Which drug is given first in an acute attack of gout?")
        said = page.locator(".answer .said").inner_text()
        cards = page.locator(".card .number").all_inner_texts()
        run = page.url.rpartition("/")[2]
    where = f"{quoting.url}/api/v1/runs/{run}/export"
    word = Document(io.BytesIO(httpx2.get(where, params={"to": "docx"}).content))
    texts = [one.text for one in word.paragraphs]
    assert texts[1] == " ".join(said.split())
    heads = [text.partition(" ")[0] for text in texts[texts.index("References") + 1 : -1]]
    assert re.findall(r"\[\d+\]", "".join(heads)) == cards
    assert len(cards) > 1


def fill_with_packaged_texts(home: Path) -> None:
    with KnowledgeBase.create(home / "kb") as kb, as_file(files("osler.sample")) as folder:
        for source in ("book", "guideline", "research", "web", "wiki"):
            kb.add([folder / source], source=source, licence="CC0-1.0", illustrative=True)
        kb.build(HashingEncoder())


SENTENCE = re.compile(r"[^.!?。！？…\n]{25,}[.!?。！？]")


def test_no_answer_shows_the_same_sentence_twice(window: Window, home: Path) -> None:
    """The 40 questions that come with the sample texts; what is seen of answer and evidence."""
    texts = (files("osler.sample") / f"questions_{one}.jsonl" for one in ("en", "zh"))
    lines = [line for text in texts for line in text.read_text("utf-8").splitlines()]
    mute = {role: {"writes": "no"} for role in ("planner", "reader")}
    twice, seen = {}, 0
    with (
        serve_osler(home, roles=mute, fill=fill_with_packaged_texts) as place,
        httpx2.Client(base_url=place.url, timeout=60) as client,
        window(place) as page,
    ):
        for question in (json.loads(line)["question"] for line in lines):
            run = start_run(client, question)
            read_stream(client, run)
            page.evaluate("where => { location.hash = where }", f"#/runs/{run}")
            expect_exact_text(page.locator("h1"), " ".join(question.split()))
            page.locator(".answer").wait_for()
            shown = "\n".join(page.locator(".said, .note, .context, .cautions").all_inner_texts())
            count = Counter(one.strip() for one in SENTENCE.findall(shown))
            seen += len(count)
            if found := [text for text, times in count.items() if times > 1]:
                twice[question] = found
    assert seen > 100
    assert not twice


def test_a_question_to_ask_next_is_one_click_and_is_answered(
    window: Window, quoting: ServedOsler
) -> None:
    with window(quoting) as page:
        ask_question(page, "Which drug is given first in an acute attack of gout?")
        page.get_by_role("button", name="Gout: what about diet?").click()
        page.wait_for_url("**/#/threads/**")
        expect_count(page.locator(".turn"), 2)
        expect_text(page.locator(".turn .answer"), "Beer and offal")


def test_no_answer_looks_otherwise_and_says_what_may_help(
    window: Window, quoting: ServedOsler
) -> None:
    with window(quoting) as page:
        ask_question(page, "What does zorblaxine do in the kidney?")
        looks = page.locator(".answer").get_attribute("class")
        assert looks.split()[-1] in ("refused", "nearest")
        expect_text(page.locator(".answer"), "Ask in other words")
        page.get_by_role("link", name="Search the texts").click()
        page.get_by_label("Words to search for").wait_for()
        assert "zorblaxine" in page.get_by_label("Words to search for").input_value()


DROP = """name => {
  const data = new DataTransfer();
  data.items.add(new File(["The okapi is kept in room eight. It is well."], name));
  for (const kind of ["dragover", "drop"])
    window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, cancelable: true }));
}"""


def test_a_file_is_dragged_onto_the_page_and_is_found(window: Window, home: Path) -> None:
    with (
        serve_osler(home, serve={"uploads": ["ward"]}) as place,
        window(place, expected=["422"]) as page,
    ):
        page.wait_for_load_state("networkidle")
        page.evaluate(DROP, "plan.txt")
        # On a busy machine the page may not have been told yet that it takes files.
        while "cannot be added" in page.locator(".drop").inner_text():
            page.wait_for_timeout(500)
            page.evaluate(DROP, "plan.txt")
        expect_text(page.locator(".drop"), "plan.txt is ready to ask about")
        page.evaluate(DROP, "tool.exe")
        expect_text(page.locator(".drop"), "a file of .exe is not accepted")
        page.locator(".drop button").click()
        expect_count(page.locator(".drop p"), 0)
        page.evaluate("location.hash = '#/knowledge?q=okapi'")
        page.locator(".hits li", has_text="room eight").wait_for()
