"""The page for every reader and on every screen; and what it must never do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from osler.testing.browsing import ask_question, expect_text, store_run, wait_for_script
from osler.testing.served import FixedModel, ServedOsler, read_stream, serve_osler, start_run

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
SIDEWAYS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def addresses(place: ServedOsler) -> dict[str, str]:
    """Every page → what is there once it is."""
    told = store_run(place, 0xA11, EVENTS, HOSTILE)
    with httpx2.Client(base_url=place.url) as client:
        answered, other = start_run(client), start_run(client, k=1)
        read_stream(client, answered)
        read_stream(client, other)
    return {
        "": "textarea",
        "runs": ".runs li",
        f"runs/{told}": ".machinery",
        f"runs/{answered}": ".card",
        f"compare/{answered}/{other}": ".pair .card",
        "knowledge?q=adrenaline": ".hits li",
        "passages/guideline%3Apages%230": ".here",
        "concepts/T%3A1": ".relations li",
        "evaluations/two": ".figures .cell",
    }


def each(page: Any, addresses: dict[str, str]) -> Any:
    """Goes through all pages with everything open that can be opened."""
    for address, there in addresses.items():
        page.evaluate("where => { location.hash = where }", f"#/{address}")
        page.locator(there).first.wait_for()
        for summary in page.locator(".machinery > summary, .choices > summary").all():
            summary.click()
        if page.locator(".node").count():
            page.locator(".node").first.click()
        yield address


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: make page")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(
    window: Window, place: ServedOsler, addresses: dict[str, str], *, dark: bool
) -> None:
    scheme = "dark" if dark else "light"
    with window(place, color_scheme=scheme) as page:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = []
        for address in each(page, addresses):
            result = page.evaluate("() => axe.run()")
            found += [
                (address, one["id"], one["nodes"][0]["html"][:200])
                for one in result["violations"]
                if one["impact"] in ("serious", "critical")
            ]
    assert not found


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
    """What the page itself says; passages, names and settings are as they are."""
    english = re.compile(
        r"\b(Answer|Evidence|Ask|Runs|Knowledge|Evaluations|Source plan|Timeline|Stack|Replay|Step"
        r"|Search|Made with|Relations|Measure|Strategy|Started|Finished|waiting|done|grounded|Not"
        r" reached|rank|Close|Print|Side by side)\b"
    )
    with window(place, locale="zh-CN") as page:
        found = {}
        for address in each(page, addresses):
            if said := english.findall(page.evaluate("document.body.innerText")):
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
        page.get_by_text("How it was reached").click()
        assert page.title() == "Osler"


def test_what_events_bring_stays_text_and_hidden_letters_are_named(
    window: Window, place: ServedOsler, addresses: dict[str, str]
) -> None:
    (told,) = [one for one in addresses if one.endswith("a11")]
    with window(place, told) as page:
        page.get_by_text("How it was reached").click()
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
        run = start_run(client, "A hostile page, adrenaline?", sources=["wiki"])
        read_stream(client, run)
        with window(place, f"runs/{run}") as page:
            page.locator(".card").first.click()
            expect_text(page.get_by_role("dialog"), "<script>alert(1)</script>")
            assert page.locator("main img, main script, dialog img, dialog script").count() == 0


def test_page_source_has_no_raw_html_sink() -> None:
    """There is no door in the source by which text could become markup."""
    source = Path(__file__).parents[3] / "web" / "src"
    doors = re.compile(r"dangerouslySetInnerHTML|innerHTML\s*=|document\.write|\beval\(|srcdoc")
    assert [p.name for p in source.rglob("*.ts*") if doors.search(p.read_text("utf-8"))] == []
