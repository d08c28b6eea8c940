"""Labels of two drugs side by side through the API: verbatim, and nothing that is closed."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from served import fill_with_labels, serve_osler


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    with (
        serve_osler(tmp_path_factory.mktemp("home"), fill=fill_with_labels) as served,
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
