"""A run as one HTML page: whole, hostile texts and all, and safe to open."""

from html.parser import HTMLParser

import pytest

from osler.cli.page import render_page
from osler.cli.render import RunPage
from osler.trace import (
    BoundaryChecked,
    Budget,
    Event,
    FormNode,
    FormSolved,
    FormsPlanned,
    Popped,
    Pushed,
    Started,
    StateValued,
)
from osler.types import Answer, Evidence, Halt, Hit, Passage, Question, Solution, Statement

HOSTILE = "<script>alert(1)</script><img src=http://example.org/x onerror=alert(2)>\"'&{{ 7*7 }}"
TEXT = f"The INR rises. {HOSTILE} Lower the dose."
PASSAGE = Passage("guideline:inr#0", TEXT, "guideline", HOSTILE, illustrative=True)
HIT = Hit(PASSAGE, 1.0, 1, "q", "guideline")
ANSWER = Answer(
    (Statement("The INR rises.", (1, 2)), Statement(HOSTILE)),
    (Evidence(HIT, 0, 14), Evidence(HIT, 4, 14)),
    note=HOSTILE,
)
EVENTS: tuple[Event, ...] = (
    Pushed(0, "User_Query", HOSTILE, 1),
    StateValued(1, "cppl", 60.0, 10.0, halted=False),
    Pushed(1, "Thought", "hm", 2),
    Popped(2, "Thought", "Backtrack", 1, None, HOSTILE),
    StateValued(3, "cppl", 4.2, 10.0, halted=True),
)
NODES = (
    FormNode(1, "Retrieval", f"Who? {HOSTILE}", "Retrieval(…)", ()),
    FormNode(
        2,
        "Retrieval",
        "谁是《白鲸》的作者，他是在哪一年出生、哪一年去世的，享年多少岁，葬在哪里？",
        "…",
        (),
    ),
    FormNode(3, "Deduce", "Which of #1 and #2?", "Deduce(…)", (1, 2)),
)
PLANNED: tuple[Event, ...] = (
    FormsPlanned(NODES),
    BoundaryChecked(1, "Who?", "Ann", True, True, 0.91, 0.5),
    FormSolved(1, "done", "Ann", True, 0.91),
    FormSolved(2, "failed", ""),
)


def report(events: tuple[Event, ...] = EVENTS, answer: Answer = ANSWER) -> RunPage:
    question = Question("q", HOSTILE, (HOSTILE, "no"))
    solution = Solution(answer, Halt.CONVERGED, HOSTILE)
    return RunPage("run1", "tc-rag", "snap", {"reader": HOSTILE}, solution, events, question, 1.0)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


@pytest.mark.parametrize("events", [EVENTS, PLANNED, ()])
def test_a_page_has_no_script_and_loads_nothing(events: tuple[Event, ...]) -> None:
    page = render_page(report(events))
    tags = parsed(page)
    names = {name for name, _ in tags.found}
    assert not names & {"script", "img", "iframe", "link", "object", "embed", "form"}
    for _, attributes in tags.found:
        assert not any(name.startswith("on") for name in attributes)
        assert not any(name == "src" for name in attributes)
        href = attributes.get("href")
        assert href is None or href.startswith("#")
    assert "{{ 7*7 }}" in "".join(tags.words)
    assert ">49<" not in page


def test_each_citation_opens_its_passage_with_the_quote_marked() -> None:
    page = render_page(report())
    tags = parsed(page)
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert {"e1", "e2"} <= set(ids)
    assert len(ids) == len(set(ids))
    assert "<mark>The INR rises.</mark>" in page
    assert "illustrative sample text" in page


def test_an_abstention_says_so() -> None:
    assert "The evidence does not say." in render_page(report(answer=Answer()))


def test_a_note_is_folded_into_a_closed_detail_and_escaped() -> None:
    noted: tuple[Event, ...] = (
        Started("r", "tc-rag", Question("q", "Why?"), "", {}, 0, Budget(), notes_of=("planner",)),
        Pushed(1, "Thought", f"aspirin {HOSTILE}", 2, "planner"),
    )
    page = render_page(report(noted))
    assert '<details class="note"><summary>+ Thought (note,' in page.replace("  +", "+")
    assert "aspirin &lt;script&gt;" in page
    assert "<details open" not in page
