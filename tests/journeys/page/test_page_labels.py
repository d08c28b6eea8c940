"""Two drugs' labels side by side, on the page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browsing import expect_count, expect_text
from served import serve_osler

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

Window = Callable[..., Any]
DRUGS = {
    "WARFARIN SODIUM": "10 OVERDOSAGE Vitamin K1 reverses the effect of warfarin.",
    "APIXABAN": "10 OVERDOSAGE Activated charcoal reduces the absorption of apixaban.",
}


def fill_with_labels(home: Path) -> None:
    results = [
        {
            "set_id": f"0000aaaa-0000-0000-0000-00000000000{n}",
            "version": "1",
            "effective_time": "20210401",
            "openfda": {"generic_name": [name]},
            "overdosage": [text],
            **({"pregnancy": ["8.1 Pregnancy It harms the fetus."]} if n else {}),
        }
        for n, (name, text) in enumerate(DRUGS.items())
    ]
    page = {"meta": {"terms": "https://open.fda.gov/terms/"}, "results": results}
    (home / "labels.json").write_text(json.dumps(page), encoding="utf-8")
    with KnowledgeBase.create(home / "kb") as kb:
        kb.add([home / "labels.json"], source="label")
        kb.build(HashingEncoder())


def test_two_labels_stand_side_by_side_word_for_word(window: Window, home: Path) -> None:
    with serve_osler(home, fill=fill_with_labels) as place, window(place, "knowledge") as page:
        page.get_by_text("Labels of two drugs, side by side").click()
        page.get_by_label("Drug 1").fill("warfarin")
        page.get_by_label("Drug 2").fill("apixaban")
        page.get_by_role("button", name="Show").click()
        overdose = page.get_by_role("region", name="Overdosage")
        overdose.wait_for()
        expect_count(overdose.locator(".text"), 2)
        expect_text(overdose, "Vitamin K1 reverses the effect of warfarin.")
        expect_text(overdose, "Activated charcoal reduces the absorption of apixaban.")
        expect_text(page.get_by_role("region", name="Pregnancy"), "This label has no such section.")
        assert "labels?a=warfarin&b=apixaban" in page.url


def test_a_drug_without_a_label_is_named(window: Window, home: Path) -> None:
    with (
        serve_osler(home, fill=fill_with_labels) as place,
        window(place, "labels?a=warfarin&b=nonesuch", expected=["404"]) as page,
    ):
        expect_text(page.locator("main"), "nonesuch")
