"""The page for every reader and on every screen; and what it must never do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from browsing import QUESTION, ask_question, expect_text, store_run, wait_for_script
from danger_dialogues import DIALOGUES
from served import FixedModel, ServedOsler, fill_with_labels, read_stream, serve_osler, start_run
from waiting import AwaitableEvent

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

Window = Callable[..., Any]
AXE = Path(__file__).parents[3] / "web" / "node_modules" / "axe-core" / "axe.min.js"
HOSTILE = (
    "<img src=x onerror=document.title='owned'> **[x](http://192.0.2.1/)** first \u202e \u200b"
)
VALUE = {"type": "state.updated", "i": 1, "metric": "cppl", "value": 42.0, "sigma": 10.0}
EVENTS: list[dict[str, Any]] = [
    {"type": "run.note", "text": HOSTILE},
    {"type": "stack.push", "i": 0, "kind": "User_Query", "text": HOSTILE, "depth": 1},
    {**VALUE, "exact": True, "halted": False},
    {
        "type": "lf.parsed",
        "nodes": [{"n": 1, "fn": "Output", "step": HOSTILE, "action": HOSTILE, "needs": []}],
    },
    {"type": "lf.node", "n": 1, "status": "done", "answer": HOSTILE, "own_knowledge": True},
    {"type": "plan.proposed", "queries": [{"source": "book", "j": 0, "query": HOSTILE}]}
    | {"origin": "planner"},
]
CLOSED = (
    ".machinery > summary, .actions .menu > summary, .choices > summary,"
    " .turn:not([open]) > summary, .studies > summary"
)
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def addresses(place: ServedOsler) -> dict[str, str]:
    """Every page → what is there once it is."""
    told = store_run(place, 0xA11, EVENTS, HOSTILE)
    with httpx2.Client(base_url=place.url, timeout=60) as client:
        answered, other = start_run(client), start_run(client, k=1)
        read_stream(client, answered)
        read_stream(client, other)
        thread = client.post("/api/v1/threads", json={"run_id": answered}).json()["thread_id"]
        asked = {"question": "And in children?"}
        turn = client.post(f"/api/v1/threads/{thread}/turns", json=asked).json()
        read_stream(client, turn["run_id"])
        file = {"file": ("plan.txt", b"The zebra is kept in room one. It is well.")}
        client.post("/api/v1/uploads/ward", files=file).raise_for_status()
    return {
        "": "textarea",
        "runs": ".runs li",
        f"threads/{thread}": ".turn .answer",
        "knowledge": ".files li",
        f"runs/{told}": ".machinery",
        f"runs/{answered}": ".card",
        f"compare/{answered}/{other}": ".pair .card",
        "knowledge?q=adrenaline": ".hits li",
        "passages/guideline%3Apages%230": ".here",
        "concepts/T%3A1": ".relations li",
        "evaluations/two": ".figures .cell",
        "scoreboard": ".scoreboard table",
    }


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("labels"), fill=fill_with_labels) as running:
        yield running


def each(page: Any, addresses: dict[str, str]) -> Any:
    """Goes through all pages with everything open that can be opened."""
    for address, there in addresses.items():
        page.evaluate("where => { location.hash = where }", f"#/{address}")
        page.locator(there).first.wait_for()
        for summary in page.locator(CLOSED).all():
            summary.click()
        if page.locator(".node").count():
            page.locator(".node").first.click()
        yield address


def violations(page: Any) -> list[tuple[str, str, str]]:
    """What axe finds on the page as it is now."""
    page.emulate_media(reduced_motion="reduce")  # a colour on its way to another is no fault
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    result = page.evaluate("() => axe.run()")
    return [(page.url, one["id"], one["nodes"][0]["html"][:200]) for one in result["violations"]]


needs_axe = pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: make page")


@needs_axe
@pytest.mark.parametrize(
    ("width", "scheme", "locale"), [(390, "dark", "zh-CN"), (1440, "light", "en-GB")]
)
def test_axe_finds_nothing_on_any_page(
    window: Window,
    place: ServedOsler,
    addresses: dict[str, str],
    width: int,
    scheme: str,
    locale: str,
) -> None:
    size = {"width": width, "height": 900}
    with window(place, color_scheme=scheme, viewport=size, locale=locale) as page:
        found = [one for _ in each(page, addresses) for one in violations(page)]
    assert not found


@needs_axe
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_axe_finds_nothing_in_what_comes_and_goes(
    window: Window, home: Path, width: int, scheme: str
) -> None:
    """A plan, waiting, danger, an opened passage, a follow-up, a question asked again, files sent
    and refused, alerts, a stop."""
    model, gate, found = FixedModel(), AwaitableEvent(), []
    size = {"width": width, "height": 900}
    how: dict[str, Any] = {"model": model, "serve": {"uploads": ["ward"]}}
    with (
        serve_osler(home, **how) as place,
        window(place, color_scheme=scheme, viewport=size, expected=["404", "422"]) as page,
    ):
        page.get_by_label("A medical question").fill(DIALOGUES[0][0])
        page.get_by_role("button", name="Plan first").click()
        page.locator(".danger").wait_for()
        page.get_by_role("group", name="Source plan").wait_for()
        found += violations(page)
        page.get_by_label("A medical question").fill(QUESTION)
        model.gate = gate
        page.get_by_role("button", name="Ask", exact=True).click()
        page.locator(".working").wait_for()
        found += violations(page)
        gate.set()
        page.locator(".cite").first.click()
        page.get_by_role("dialog").wait_for()
        found += violations(page)
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Feedback").click()
        page.get_by_role("button", name="unsafe").click()
        page.get_by_label("Ask a follow-up question").fill("And in children?")
        page.get_by_role("button", name="Show what will be searched for").click()
        page.get_by_label("Searched for as").wait_for()
        found += violations(page)
        page.locator(".followup").get_by_role("button", name="Ask", exact=True).click()
        page.locator(".turn .answer").wait_for()
        with KnowledgeBase.open(home / "kb") as kb:
            kb.remove(source="wiki")
            kb.build(HashingEncoder())
        page.reload()
        page.get_by_role("button", name="Ask again").click()
        page.get_by_role("region", name="What changed").wait_for()
        found += violations(page)
        page.evaluate("location.hash = '#/knowledge'")
        for name, data in (("plan.txt", b"The zebra is well. It is here."), ("a.exe", b"MZ")):
            file = {"name": name, "mimeType": "text/plain", "buffer": data}
            page.get_by_label("Send documents").set_input_files([file])
        page.locator(".lines [role=alert]").wait_for()
        found += violations(page)
        for address in ("nowhere", "runs/20260101-000000-ffffffffffff"):
            page.evaluate("where => { location.hash = where }", f"#/{address}")
            page.get_by_role("alert").first.wait_for()
            found += violations(page)
        model.gate = AwaitableEvent()
        page.get_by_role("link", name="New question").click()
        page.get_by_label("A medical question").fill(QUESTION)
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("region", name="Found before the stop").wait_for()
        found += violations(page)
    assert not found


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "locale"), [(390, "zh-CN"), (1280, "en-GB")])
def test_axe_finds_nothing_in_two_labels_side_by_side(
    labels: ServedOsler, window: Window, width: int, locale: str, scheme: str
) -> None:
    """Two labels, one that is not there, and the empty form."""
    size, found = {"width": width, "height": 900}, []
    views = {"a=warfarin&b=eliquis": "h2", "a=warfarin&b=zebra": "[role=alert]", "": "form.tools"}
    how = {"color_scheme": scheme, "viewport": size, "locale": locale, "expected": ["404"]}
    with window(labels, **how) as page:
        for asked, there in views.items():
            page.evaluate("where => { location.hash = where }", f"#/labels?{asked}")
            page.locator(there).first.wait_for()
            found += violations(page)
            assert not page.evaluate(SIDEWAYS)
    assert not found


def test_the_first_paint_comes_within_three_tenths_of_a_second(
    window: Window, place: ServedOsler
) -> None:
    """The quickest of five first visits: what else the machine does is not the page's affair."""
    told = "performance.getEntriesByName('first-contentful-paint').map(one => one.startTime)"
    seen = []
    for _ in range(5):
        with window(place) as page:
            page.get_by_label("A medical question").wait_for()
            wait_for_script(page, f"{told}.length > 0")
            seen += page.evaluate(told)
    assert min(seen) <= 300, seen


@pytest.mark.parametrize(("width", "height"), [(360, 740), (768, 1024), (3840, 2160)])
def test_no_page_scrolls_sideways(
    window: Window, place: ServedOsler, addresses: dict[str, str], width: int, height: int
) -> None:
    with window(place, viewport={"width": width, "height": height}) as page:
        wide = [address for address in each(page, addresses) if page.evaluate(SIDEWAYS)]
    assert not wide


def test_letters_of_twice_the_size_still_fit(
    window: Window, place: ServedOsler, addresses: dict[str, str]
) -> None:
    with window(place, viewport={"width": 640, "height": 450}, device_scale_factor=2) as page:
        wide = [address for address in each(page, addresses) if page.evaluate(SIDEWAYS)]
    assert not wide


def test_every_page_is_all_chinese_when_asked(
    window: Window, place: ServedOsler, addresses: dict[str, str]
) -> None:
    """What the page itself says; passages, names, settings and published figures are as they
    are."""
    english = re.compile(
        r"\b(Answer|Evidence|Ask|Runs|Knowledge|Evaluations|Source plan|All events|Working memory"
        r"|Replay|Step|Search|Made with|Relations|Measure|Strategy|Started|Finished|waiting|done"
        r"|Print|Feedback|More|Rename|Title|New question"
        r"|Not reached|rank|Close|Conversation|Conversations|Delete|Copy|Save|Documents"
        r"|Group|Side by side|Scoreboard|Keep|look up|calculate|Thought)\b"
    )
    with window(place, locale="zh-CN") as page:
        found = {}
        for address in each(page, addresses):
            where = "h1" if address == "scoreboard" else "body"
            if said := english.findall(page.locator(where).inner_text()):
                found[address] = said
        assert page.evaluate("document.documentElement.lang") == "zh"
        expect_text(page.locator(".notice"), "不用于急救")
    assert not found


def test_a_chinese_question_is_asked_and_answered_in_chinese(window: Window, home: Path) -> None:
    model = FixedModel(reply="过敏性休克首选肾上腺素。[1]")
    with serve_osler(home, model=model) as place, window(place, locale="zh-CN") as page:
        page.get_by_label("医学问题").fill("过敏性休克首选什么药？")
        page.get_by_role("button", name="提问", exact=True).click()
        page.get_by_role("heading", name="回答").wait_for()
        expect_text(page.locator(".answer"), "首选肾上腺素")
        page.locator(".cite").first.click()
        assert page.get_by_role("dialog").locator("mark").inner_text()
        page.get_by_role("button", name="关闭").click()


def test_language_and_darkness_are_chosen_and_stay(window: Window, place: ServedOsler) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    with window(place) as page:
        another = f"{colour} !== '{page.evaluate(colour)}'"
        page.get_by_role("button", name="Dark or light").click()
        wait_for_script(page, another)
        page.get_by_role("button", name="中文").click()
        page.reload()
        page.get_by_label("医学问题").wait_for()
        wait_for_script(page, another)


def test_markup_in_a_question_is_escaped_on_the_page(window: Window, place: ServedOsler) -> None:
    with window(place) as page:
        ask_question(page, f"{HOSTILE.strip()} adrenaline hostile page")
        assert page.locator("main img, main script, main iframe, main a[href^=http]").count() == 0
        expect_text(page.locator("h1"), "<img src=x")
        page.get_by_text("How it was answered").click()
        assert page.title() == "Osler"


def test_what_events_bring_stays_text_and_hidden_letters_are_named(
    window: Window, place: ServedOsler, addresses: dict[str, str]
) -> None:
    (told,) = [one for one in addresses if one.endswith("a11")]
    with window(place, told) as page:
        page.get_by_text("How it was answered").click()
        page.locator(".node").first.click()
        wait_for_script(page, "document.body.innerText.split('<img src=x onerror').length > 6")
        text = page.evaluate("document.body.innerText")
        assert "⟨U+202E⟩" in text
        assert "⟨U+200B⟩" in text
        assert not re.search("[\u202a-\u202e\u200b]", text)
        assert page.locator("main img, main a[href*='192.0.2']").count() == 0
        assert page.title() == "Osler"


def test_a_hostile_passage_is_shown_as_it_is_written(window: Window, home: Path) -> None:
    model = FixedModel(reply="A hostile page, adrenaline. [1]")
    with serve_osler(home, model=model) as place, httpx2.Client(base_url=place.url) as client:
        run = start_run(client, "What does a hostile page say?", sources=["wiki"])
        read_stream(client, run)
        with window(place, f"runs/{run}") as page:
            page.locator(".card").first.click()
            expect_text(page.get_by_role("dialog"), "<script>alert(1)</script>")
            assert page.locator("main img, main script, dialog img, dialog script").count() == 0


def test_page_source_has_no_raw_html_sink() -> None:
    """Nothing in the source can turn text into markup."""
    source = Path(__file__).parents[3] / "web" / "src"
    doors = re.compile(r"dangerouslySetInnerHTML|innerHTML\s*=|document\.write|\beval\(|srcdoc")
    assert [p.name for p in source.rglob("*.ts*") if doors.search(p.read_text("utf-8"))] == []
