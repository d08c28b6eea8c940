"""Labels of two drugs side by side through the API: verbatim, and nothing that is closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from served import serve_osler

from osler.kb.base import KnowledgeBase
from osler.sources.formats.labels import KIND
from osler.types import Locator, Passage
from osler_lab.testing.scripted import HashingEncoder


def put_label(kb: KnowledgeBase, id: str, title: str, source: str = "label") -> None:
    texts = [("Product", "Effective: 2021-05-01"), ("Overdosage", f"<b>{title}</b>: call.")]
    if id == "w1":
        texts.append(("Drug interactions", "Aspirin adds to bleeding."))
    where = [Locator(section, kind=KIND, code=f"SPL:{id}") for section, _ in texts]
    kb.put(
        Passage(f"{source}:{id}#{n}", text, source, title, where[n])
        for n, (_, text) in enumerate(texts)
    )


def fill(home: Path) -> None:
    with KnowledgeBase.create(home / "kb") as kb:
        put_label(kb, "w1", "Warfarin sodium")
        put_label(kb, "a1", "Apixaban (Eliquis)")
        put_label(kb, "d1", "Dabigatran", source="emr")
        kb.build(HashingEncoder())


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        serve_osler(tmp_path_factory.mktemp("home"), fill=fill) as served,
        httpx2.Client(base_url=served.url, timeout=30) as client,
    ):
        yield client


def test_two_labels_stand_side_by_side_in_the_words_of_the_labels(http: httpx2.Client) -> None:
    told = http.get("/api/v1/labels", params={"drug": ["warfarin", "eliquis"]}).json()

    assert [(one["name"], one["code"], one["effective"]) for one in told["labels"]] == [
        ("warfarin", "SPL:w1", "2021-05-01"),
        ("eliquis", "SPL:a1", "2021-05-01"),
    ]
    assert told["headings"] == ["Product", "Drug interactions", "Overdosage"]
    first, second = (one["sections"] for one in told["labels"])
    assert [one["text"] for one in second["Overdosage"]] == ["<b>Apixaban (Eliquis)</b>: call."]
    assert (len(first["Drug interactions"]), second["Drug interactions"]) == (1, [])


def test_sections_are_chosen_by_a_word_of_their_heading(http: httpx2.Client) -> None:
    asked = {"drug": ["warfarin"], "section": ["interact"]}

    assert http.get("/api/v1/labels", params=asked).json()["headings"] == ["Drug interactions"]


@pytest.mark.parametrize("drug", ["dabigatran", "nothing"])
def test_a_closed_label_is_as_unknown_as_one_that_is_not_there(
    http: httpx2.Client, drug: str
) -> None:
    assert http.get("/api/v1/labels", params={"drug": drug}).status_code == 404
