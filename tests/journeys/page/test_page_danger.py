"""Whom to call stands first on the page, before the answer is there, and notes stay folded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import ask_question, expect_count, expect_text
from danger_dialogues import DIALOGUES, expected_words
from served import FixedModel, serve_osler
from waiting import AwaitableEvent

from osler.types import DangerKind

Window = Callable[..., Any]
CRY = DIALOGUES[0][0]


@pytest.mark.parametrize(("question", "kinds"), DIALOGUES)
def test_the_page_says_it_first_as_an_alert(
    page: Any, question: str, kinds: tuple[DangerKind, ...]
) -> None:
    ask_question(page, question)
    alerts = page.get_by_role("alert")
    expect_count(alerts, int(bool(kinds)))
    if not kinds:
        return
    expect_text(alerts, expected_words(question))
    above = alerts.bounding_box()["y"]
    assert above < page.locator("h1").bounding_box()["y"]
    assert alerts.get_attribute("lang") == (
        "zh" if expected_words(question)[0] > "\u4e00" else "en"
    )
    page.reload()
    expect_text(page.get_by_role("alert"), expected_words(question))


def test_it_stands_there_before_the_answer_does(home: Path, window: Window) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with serve_osler(home, model=model) as place, window(place) as page:
        page.get_by_label("A medical question").fill(CRY)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect_text(page.get_by_role("alert"), "This may be an emergency.")
        expect_count(page.locator(".answer"), 0)
        assert model.gate is not None
        model.gate.set()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        expect_count(page.get_by_role("alert"), 1)


def test_who_is_turned_away_reads_whom_to_call(home: Path, window: Window) -> None:
    model = FixedModel(gate=AwaitableEvent())
    bounds = {"runs": 1, "waiting": 0}
    with (
        serve_osler(home, model=model, serve=bounds) as place,
        window(place, expected=["503"]) as page,
    ):
        page.get_by_label("A medical question").fill("What is asthma?")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.locator(".working").wait_for()
        page.goto(place.url)
        page.get_by_label("A medical question").fill(CRY)
        page.get_by_role("button", name="Ask", exact=True).click()
        expect_text(page.locator(".danger"), "This may be an emergency.")
        assert model.gate is not None
        model.gate.set()
        place.wait_for_runs()


def test_what_a_model_wrote_that_may_not_word_medicine_is_folded_away(
    home: Path, window: Window
) -> None:
    babble = "Thought: arsenic is given first"
    mute = {role: {"writes": "no"} for role in ("planner", "reader")}
    asked: dict[str, Any] = {"roles": mute, "strategy": {"kind": "tc-rag"}}
    with serve_osler(home, model=FixedModel(reply=babble), **asked) as place, window(place) as page:
        ask_question(page)
        page.locator(".machinery > summary").click()
        page.get_by_role("slider").first.wait_for()
        assert "arsenic" not in page.locator("main").inner_text()
        folded = page.locator(".modelnote").first
        expect_text(folded, "not medicine")
        folded.locator("summary").click()
        expect_text(folded, "arsenic")
