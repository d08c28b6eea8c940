"""A real Chromium on the page of a real server, watched for what a page must never do.

Needs playwright, a Chromium on the machine (none is fetched) and the built page (`make page`).
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from served import ServedOsler, fill_knowledge_base

from osler.graph.items import Definition, Name, Relation
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.trace import from_line
from osler_lab.testing.scripted import HashingEncoder
from osler_serve import page as page_files
from osler_serve.ledger import LedgerEntry

QUESTION = "Which drug is given first, into the outer thigh, at once?"
# Seconds that a busy machine is given; a test that passes waits for none of them.
PATIENCE = 60
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """The program, where one is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


def missing_program() -> str:
    """Name of the program that a browser test lacks here; empty where none is."""
    if importlib.util.find_spec("playwright") is None:
        return "not installed: playwright"
    if find_chromium() is None:
        return "there is no chromium"
    return "" if page_files.read_files() else "the page is not built: make page"


@contextmanager
def launch_browser() -> Iterator[Any]:
    """Raises `ImportError` without playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=find_chromium(), args=[*FLAGS])
        try:
            yield launched
        finally:
            launched.close()


class PageWatcher:
    """Errors on the console, dialogs, and requests to anywhere but the server."""

    def __init__(self, page: Any, url: str) -> None:
        self.wrong: list[str] = []
        self.expected: tuple[str, ...] = ()
        """Parts of console lines that belong to the test."""
        page.on(
            "console",
            lambda m: self._note_console(m.text) if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("dialog", lambda dialog: self.wrong.append("dialog"))
        page.on("request", lambda r: None if r.url.startswith(url) else self.wrong.append(r.url))

    def _note_console(self, text: str) -> None:
        if not any(one in text for one in self.expected):
            self.wrong.append(text)


@contextmanager
def open_page(
    launched: Any,
    place: ServedOsler,
    address: str = "",
    *,
    expected: Sequence[str] = (),
    **options: Any,
) -> Iterator[Any]:
    """A new window on the page; at its end nothing forbidden may have happened."""
    context = launched.new_context(**{"locale": "en-GB", **options})
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    seen = PageWatcher(page, place.url)
    seen.expected = tuple(expected)
    try:
        page.goto(f"{place.url}/#/{address}")
        yield page
    finally:
        context.close()
    assert not seen.wrong, seen.wrong


def ask_question(page: Any, question: str = QUESTION) -> None:
    """Asks, and waits for the answer."""
    page.get_by_label("A medical question").fill(question)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def expect_text(there: Any, text: str) -> None:
    """Waits until the one element there shows the text, among other things.

    What is drawn a moment later is no failure. Like `expect_exact_text`
    and `expect_count` it fails after `PATIENCE`.
    """
    _make_expectation(there).to_contain_text(text, use_inner_text=True)


def expect_exact_text(there: Any, text: Any) -> None:
    """Waits until what is there shows this text and nothing else: a string, a pattern, or one
    for each of several elements."""
    _make_expectation(there).to_have_text(text, use_inner_text=True)


def expect_count(there: Any, number: int) -> None:
    """Waits until so many are there. That none is there is asserted, not waited for."""
    _make_expectation(there).to_have_count(number)


def _make_expectation(there: Any) -> Any:
    from playwright.sync_api import expect

    expect.set_options(timeout=1000 * PATIENCE)
    return expect(there)


# The page's Content-Security-Policy has no unsafe-eval.
def wait_for_script(page: Any, true: str) -> None:
    """Waits for a JavaScript expression to be true. Playwright's own waiting for one would need an
    `eval`, which the page's policy forbids. Raises `AssertionError` after `PATIENCE`."""
    last = time.monotonic() + PATIENCE
    while not page.evaluate(true):
        assert time.monotonic() < last, true
        page.wait_for_timeout(20)


def store_run(
    place: ServedOsler, number: int, lines: Sequence[dict[str, Any]], question: str = "A film"
) -> str:
    """A run that was cancelled after these events, which must be such as Osler writes; its id."""
    id = f"20260101-000000-{number:012x}"
    texts = [json.dumps(line, separators=(",", ":")) for line in lines]
    for line in texts:
        from_line(line)
    end = {"code": "cancelled", "detail": "it was asked to stop", "type": "run.cancelled"}
    texts.append(json.dumps(end, separators=(",", ":")))
    ledger = place.site.ledger
    when = "2026-01-01T00:00:00"
    ledger.begin_runs(
        [(LedgerEntry(id, "default", "local", when, "queued", "tc-rag", question), None)]
    )
    code = {"code": "cancelled", "detail": "it was asked to stop"}
    ledger.end_run(id, "cancelled", events="\n".join(texts), **code)
    return id


def fill_with_graph(home: Path) -> None:
    """The usual small knowledge base and a graph of three concepts, one with a hostile name."""
    fill_knowledge_base(home)
    with Graph.create(home / "kb") as graph:
        graph.add(
            [
                Name("T:1", "anaphylaxis"),
                Name("T:1", "过敏性休克"),
                Name("T:2", "adrenaline"),
                Name("T:3", "<img src=x onerror=alert(1)>"),
                Definition("T:1", "A severe reaction.", "written for this test"),
                Relation("T:1", "treated_by", "T:2"),
                Relation("T:1", "related_to", "T:3"),
            ]
        )
        graph.load_arrays()


def fill_with_samples(home: Path) -> None:
    """A knowledge base of sample texts, for which example questions are offered."""
    text = "# Fever\n\nA sample text of one sentence.\n"
    (home / "one.md").write_text(text, encoding="utf-8")
    with KnowledgeBase.create(home / "kb") as kb:
        kb.add([home / "one.md"], source="book", licence="CC0-1.0", illustrative=True)
        kb.build(HashingEncoder())


def many_pages(count: int) -> dict[str, str]:
    """A book of `count` passages, each about adrenaline."""
    pages = [f"# Page {n}\n\nAdrenaline is given first, says page {n}.\n" for n in range(count)]
    return {"book": "\n".join(pages)}
