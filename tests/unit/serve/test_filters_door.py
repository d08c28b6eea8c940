"""What is searched through a filter, at every interface: the same fields, and the same effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from served import ServedOsler, fill_knowledge_base, read_stream, serve_osler

from osler_serve.client import Client

QUESTION = "What is given first in anaphylaxis?"


def dated(year: int, words: str) -> str:
    return f"---\ndate: {year}\n---\n# Anaphylaxis\n\nIn anaphylaxis adrenaline is given {words}.\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    home = tmp_path_factory.mktemp("home")
    fill_knowledge_base(
        home, {"guideline": dated(2012, "first, slowly"), "book": dated(2021, "first, at once")}
    )
    with serve_osler(home) as served:
        yield served


@pytest.fixture
def http(place: ServedOsler) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=place.url, timeout=30) as client:
        yield client


def report_of(http: httpx2.Client, run: str) -> dict[str, Any]:
    read_stream(http, run)
    return dict(http.get(f"/api/v1/runs/{run}").json())


def sources_of(report: dict[str, Any]) -> set[str]:
    return {one["passage"]["source"] for one in report["evidence"]}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"since": 2020}, {"book"}),
        ({"until": 2020}, {"guideline"}),
        ({"kinds": ["guideline"]}, {"guideline"}),
        ({"as_of": "2020-01-31"}, {"guideline"}),
        ({"as_of": "2020-01"}, {"guideline"}),
        ({"as_of": 2020}, {"guideline"}),
        ({"since": "2013-01", "until": "2999-12"}, {"book"}),
        ({"sources": ["book"]}, {"book"}),
    ],
)
def test_the_api_the_client_and_the_openai_endpoint_take_the_same_fields(
    http: httpx2.Client, place: ServedOsler, filters: dict[str, Any], found: set[str]
) -> None:
    run = http.post("/api/v1/runs", json={"question": QUESTION, **filters}).json()["run_id"]
    assert sources_of(report_of(http, run)) == found
    with Client(place.url) as client:
        hits = client.search(QUESTION, **filters).hits
        assert {hit.passage.source for hit in hits} == found
        assert sources_of(report_of(http, client.start_run(QUESTION, **filters).run_id)) == found
    said = {"model": "osler/auto", "messages": [{"role": "user", "content": QUESTION}]}
    reply = http.post("/v1/chat/completions", json={**said, "osler": filters}).json()
    assert sources_of(reply["osler"]) == found


def test_an_answer_names_the_filter_that_it_was_found_through(http: httpx2.Client) -> None:
    asked = {"question": QUESTION, "since": "2020-02", "as_of": "2024-01-31"}
    report = report_of(http, http.post("/api/v1/runs", json=asked).json()["run_id"])
    assert "(since 2020-02; as of 2024-01-31)" in report["answer"]["note"]


def test_what_is_asked_next_is_asked_through_the_same_filter_until_another_is_given(
    http: httpx2.Client,
) -> None:
    thread = http.post("/api/v1/threads").json()["thread_id"]

    def ask(**filters: Any) -> tuple[set[str], bool]:
        """The sources that are cited, and whether the answer names a filter."""
        asked = {"question": QUESTION, "standalone": QUESTION, **filters}
        run = http.post(f"/api/v1/threads/{thread}/turns", json=asked).json()["run_id"]
        report = report_of(http, run)
        return sources_of(report), "pass the filter" in report["answer"]["note"]

    assert ask(until=2020) == ({"guideline"}, True)
    assert ask() == ({"guideline"}, True)
    assert ask(since=2020) == ({"book"}, True)
    assert ask() == ({"book"}, True)
    assert ask(sources=[])[1] is False


@pytest.mark.parametrize(
    "filters",
    [{"since": 2900}, {"kinds": ["novel"]}, {"as_of": "soon"}, {"since": 2020, "until": 2000}],
)
def test_a_filter_that_lets_nothing_through_is_refused(
    http: httpx2.Client, filters: dict[str, Any]
) -> None:
    for path in ("runs", "search"):
        asked = {"question" if path == "runs" else "query": QUESTION, **filters}
        assert http.post(f"/api/v1/{path}", json=asked).status_code == 422, path
