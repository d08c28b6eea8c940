"""The knowledge base and evaluations, on the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browsing import (
    expect_count,
    expect_exact_text,
    expect_text,
)
from served import ServedOsler, serve_osler
from stores import HOSTILE

Window = Callable[..., Any]


def test_a_search_leads_to_a_passage_among_its_neighbours(page: Any) -> None:
    page.get_by_role("link", name="Knowledge").click()
    page.get_by_label("Words to search for").fill("adrenaline thigh")
    page.get_by_role("button", name="Search").click()
    page.locator(".hits a", has_text="Anaphylaxis").first.click()
    page.locator(".here").wait_for()
    expect_text(page.locator(".here"), "outer thigh")
    page.locator(".beside").wait_for()
    expect_text(page.locator(".beside"), "Salbutamol")
    page.locator(".beside a").click()
    page.locator(".here", has_text="Salbutamol").wait_for()
    origin = page.get_by_role("region", name="Provenance").inner_text()
    assert "pages.md" in origin
    expect_text(page.locator("main"), "CC0-1.0")


def test_a_search_is_an_address_and_can_be_narrowed(window: Window, place: ServedOsler) -> None:
    with window(place, "knowledge?q=adrenaline+休克&source=wiki") as page:
        page.locator(".hits li").first.wait_for()
        expect_count(page.locator(".hits li"), 1)
        assert page.get_by_label("Words to search for").input_value() == "adrenaline 休克"
        page.get_by_role("combobox", name="Source").select_option("")
        page.get_by_role("combobox", name="Language").select_option("zh")
        page.get_by_role("button", name="Search").click()
        page.locator(".hits li", has_text="立即肌内注射").wait_for()
        assert page.locator(".hits li", has_text="A hostile page").count() == 0
        page.reload()
        page.locator(".hits li", has_text="立即肌内注射").wait_for()


def test_what_there_is_to_search_is_counted(window: Window, place: ServedOsler) -> None:
    with window(place, "knowledge") as page:
        page.locator("table tbody tr").first.wait_for()
        rows = page.locator("table tbody tr").all_inner_texts()
        assert [row.split()[0] for row in rows] == ["book", "guideline", "wiki"]


def test_years_that_are_the_wrong_way_round_are_refused_in_words(
    window: Window, place: ServedOsler
) -> None:
    address = "knowledge?q=adrenaline&from=2020&to=2010"
    with window(place, address, expected=["422"]) as page:
        expect_text(page.get_by_role("alert"), "since is after until")


def test_a_concept_is_found_by_name_and_leads_to_others(window: Window, place: ServedOsler) -> None:
    with window(place, "knowledge") as page:
        page.get_by_text("Concept in the graph").click()
        page.get_by_label("Concept name").fill("anaphylaxis")
        page.get_by_role("button", name="Concept").click()
        page.get_by_role("link", name="anaphylaxis").click()
        page.get_by_role("heading", name="anaphylaxis").wait_for()
        page.locator("main", has_text="过敏性休克").wait_for()
        expect_text(page.locator("blockquote"), "A severe reaction.")
        expect_count(page.locator(".relations li"), 2)
        assert page.locator("main img").count() == 0
        page.get_by_role("link", name="adrenaline").click()
        page.get_by_role("heading", name="adrenaline").wait_for()


def test_a_name_that_no_concept_has_says_so(window: Window, place: ServedOsler) -> None:
    with window(place, "concepts?term=nothing") as page:
        page.get_by_text("No concept has this name.").wait_for()


def test_a_passage_that_is_not_there_says_so(window: Window, place: ServedOsler) -> None:
    with window(place, "passages/book%3Anone%231", expected=["404"]) as page:
        page.get_by_role("alert").wait_for()


def test_an_evaluation_is_a_table_with_intervals_that_sorts(page: Any) -> None:
    page.get_by_role("link", name="Evaluations").click()
    page.get_by_role("link", name="two").click()
    first = page.locator("table.figures tbody tr").first
    first.wait_for()
    expect_exact_text(first.locator("th"), "direct")
    expect_exact_text(first.locator(".value"), "40.0 [16.8, 68.7]")
    expect_count(first.locator("svg.bar .interval"), 1)
    page.get_by_role("button", name="Sort by pubmedqa").click()
    expect_exact_text(first.locator("th"), "rag:k=5")
    expect_text(first, "81.8 [52.3, 94.9]")
    expect_text(page.locator("main"), "+50.0 [")
    expect_text(page.locator("main"), "1 failed")
    page.get_by_label("Measure").select_option("calls")
    expect_exact_text(first.locator(".value"), re.compile(r"^2\.00 \["))


def test_a_cell_opens_its_samples_failures_first(window: Window, place: ServedOsler) -> None:
    with window(place, "evaluations/two") as page:
        page.locator(".cell").nth(1).click()
        page.locator(".sample").first.wait_for()
        badges = page.locator(".sample .badge").all_inner_texts()
        assert badges[:3] == ["failed", "0.0", "1.0"]
        page.locator(".sample summary").nth(1).click()
        expect_text(page.locator(".sample").nth(1), HOSTILE)
        assert page.locator("main img").count() == 0


def test_the_published_scoreboard_sorts_by_any_column(page: Any) -> None:
    page.get_by_role("link", name="Evaluations").click()
    page.get_by_role("link", name="Scoreboard").click()
    page.locator(".scoreboard table").first.wait_for()
    table = page.locator(".scoreboard table").first
    right = table.get_by_role("button", name="bioasq")
    for direction, order in (("ascending", 1), ("descending", -1)):
        right.click()
        sorted_by = table.locator(f"th[aria-sort={direction}]")
        column = sorted_by.evaluate("head => head.cellIndex")
        cells = table.locator(f"tbody td:nth-child({column + 1})").all_inner_texts()
        found = [order * float(one.partition(" ")[0]) for one in cells]
        assert found == sorted(found)
        assert len(found) > 2
    expect_text(page.locator(".scoreboard"), "The papers' claims")


def test_a_home_without_evaluations_says_how_to_make_one(window: Window, home: Path) -> None:
    with serve_osler(home) as place, window(place, "evaluations") as page:
        page.get_by_text("osler eval run").wait_for()


def test_an_address_that_is_no_page_says_so(window: Window, place: ServedOsler) -> None:
    with window(place, "nowhere") as page:
        expect_exact_text(page.get_by_role("alert"), "Page not found.")
