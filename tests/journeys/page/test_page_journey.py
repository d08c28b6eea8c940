"""Twelve tasks of a newcomer at the page, each done in three actions at the most.

An action is a click, a choice from a list, a key, a drag, or words written into a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import QUESTION, expect_count, expect_exact_text, expect_text
from docx import Document as WordDocument
from served import FixedModel, serve_osler
from waiting import AwaitableEvent

Window = Callable[..., Any]
MOST = 3
ZH = "过敏性休克首选什么药？"


class Hand:
    """What a newcomer does at the page, counted within each task."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.actions = 0

    @contextmanager
    def task(self, name: str) -> Iterator[None]:
        self.actions = 0
        yield
        assert self.actions <= MOST, f"{name} took {self.actions} actions"

    def click(self, role: str, name: str) -> None:
        self.actions += 1
        self.page.get_by_role(role, name=name, exact=True).click()

    def touch(self, selector: str) -> None:
        """A click on what has no name of its own."""
        self.actions += 1
        self.page.locator(selector).first.click()

    def write(self, label: str, text: str) -> None:
        self.actions += 1
        self.page.get_by_label(label).fill(text)

    def choose(self, label: str, name: str) -> None:
        self.actions += 1
        self.page.get_by_label(label).first.select_option(name)

    def press(self, key: str) -> None:
        self.actions += 1
        self.page.keyboard.press(key)

    def drag(self, *paths: Path) -> None:
        """Drags files and folders of the machine onto the page."""
        self.actions += 1
        browser = self.page.context.new_cdp_session(self.page)
        data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            told = {"type": kind, "x": 100, "y": 100, "data": data}
            browser.send("Input.dispatchDragEvent", told)

    def see_answer(self, part: str = "Adrenaline is given first.", name: str = "Answer") -> None:
        self.page.get_by_role("heading", name=name, exact=True).last.wait_for()
        expect_text(self.page.locator(".answer").last, part)


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (390, "dark")], ids=["desktop", "phone"]
)
def test_twelve_tasks_take_a_newcomer_three_actions_each(
    window: Window, home: Path, width: int, scheme: str
) -> None:
    model = FixedModel()
    how: dict[str, Any] = {"model": model, "serve": {"uploads": ["ward"]}}
    size = {"width": width, "height": 844}
    with ExitStack() as stack, ExitStack() as first:
        place = first.enter_context(serve_osler(home, **how))
        known = ["ERR_CONNECTION_REFUSED", "422"]
        options = {"expected": known, "viewport": size, "color_scheme": scheme}
        page = stack.enter_context(window(place, **options))
        hand = Hand(page)
        ask_open_and_follow_up(hand)
        stop_and_edit(hand, model)
        drag_in(hand, home / "dragged")
        find_export_and_compare(hand, phone=width < 1000)
        page.get_by_role("link", name="New question").click()
        with hand.task("server killed and back"):
            hand.write("A medical question", QUESTION)
            first.close()
            hand.press("Enter")
            expect_text(page.get_by_role("alert"), "cannot be reached. Your question is kept")
            stack.enter_context(serve_osler(home, port=place.port, **how))
            hand.press("Enter")
            hand.see_answer()
        speak_chinese(hand, model)
        page.reload()
        page.get_by_role("link", name="新问题").click()
        keyboard_only(hand)


def ask_open_and_follow_up(hand: Hand) -> None:
    with hand.task("ask"):
        hand.write("A medical question", QUESTION)
        hand.press("Enter")
        hand.see_answer()
    with hand.task("open a citation"):
        hand.touch(".cite")
        assert hand.page.get_by_role("dialog").locator("mark").inner_text()
        hand.press("Escape")
    with hand.task("follow up"):
        hand.write("Ask a follow-up question", "And in children?")
        hand.press("Enter")
        expect_count(hand.page.locator(".turn"), 2)
        hand.see_answer()


def stop_and_edit(hand: Hand, model: FixedModel) -> None:
    hand.page.get_by_role("link", name="New question").click()
    model.gate = AwaitableEvent()
    with hand.task("stop"):
        hand.write("A medical question", "What is given in asthma?")
        hand.press("Enter")
        hand.click("button", "Stop")
        expect_text(hand.page.get_by_role("alert"), "You stopped this question.")
    model.gate = None
    hand.page.get_by_role("button", name="Edit").click()
    expect_count(hand.page.locator("textarea:text-is('What is given in asthma?')"), 1)
    hand.page.go_back()
    hand.page.get_by_role("button", name="Ask again").click()
    hand.see_answer()
    with hand.task("edit"):
        hand.click("button", "Edit")
        field = hand.page.get_by_label("A medical question")
        field.wait_for()
        assert field.input_value() == "What is given in asthma?"
        hand.write("A medical question", "What is given in acute asthma?")
        hand.press("Enter")
        expect_exact_text(hand.page.locator("h1"), "What is given in acute asthma?")
        hand.see_answer()


def drag_in(hand: Hand, folder: Path) -> None:
    """A file, and a folder with a file in it and one that no text is read from."""
    (folder / "plans" / "old").mkdir(parents=True)
    (folder / "one.txt").write_text("The okapi is kept in room eight.", encoding="utf-8")
    (folder / "plans" / "old" / "two.txt").write_text("The tapir is kept in room nine.")
    (folder / "plans" / "tool.exe").write_bytes(b"MZ")
    with hand.task("upload by drag"):
        hand.drag(folder / "one.txt", folder / "plans")
        said = hand.page.locator(".drop")
        expect_text(said, "2 files are ready to ask about")
        expect_text(said, "a file of .exe is not accepted")
        hand.touch(".drop button")


def find_export_and_compare(hand: Hand, *, phone: bool) -> None:
    with hand.task("find an old conversation"):
        if phone:
            hand.click("button", "Conversations")
        hand.write("Search conversations", "outer thigh")
        hand.touch(".side li a:has-text('outer thigh')")
        hand.page.wait_for_url("**/#/threads/**")
        expect_exact_text(hand.page.locator("h1"), QUESTION)
        hand.see_answer()
    with hand.task("export Word"):
        hand.touch(".actions summary")
        with hand.page.expect_download() as saved:
            hand.click("button", "Word")
        texts = [one.text for one in WordDocument(saved.value.path()).paragraphs]
        assert any("Adrenaline is given first." in text for text in texts)
    hand.page.reload()
    with hand.task("compare two methods"):
        hand.touch(".actions summary >> text=More")
        hand.choose("Answer by another method, side by side", "direct")
        hand.page.wait_for_url("**/#/compare/**")
        expect_count(hand.page.locator(".pair .answer"), 2)
        expect_exact_text(hand.page.locator(".pair > article > h2"), ["rag", "direct"])


def speak_chinese(hand: Hand, model: FixedModel) -> None:
    hand.page.get_by_role("link", name="New question").click()
    model.reply = "过敏性休克首选肾上腺素。[1]"
    with hand.task("Chinese"):
        hand.click("button", "中文")
        hand.write("医学问题", ZH)
        hand.press("Enter")
        hand.see_answer("首选肾上腺素", "回答")


def keyboard_only(hand: Hand) -> None:
    hand.page.get_by_label("医学问题").wait_for()
    with hand.task("keyboard only"):
        hand.actions += 1
        hand.page.keyboard.type(ZH)
        hand.press("Enter")
        hand.see_answer("首选肾上腺素", "回答")
        hand.press("1")
        assert hand.page.get_by_role("dialog").locator("mark").inner_text()
