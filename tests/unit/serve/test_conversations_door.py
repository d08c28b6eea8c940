"""One list of all that was asked: searched, renamed, deleted; the command line's runs in it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import (
    FixedModel,
    ServedOsler,
    fill_knowledge_base,
    loaded_shelf,
    read_stream,
    serve_osler,
    start_run,
)
from waiting import AwaitableEvent

from osler.runs import answering
from osler.runs.feedback import FeedbackStore
from osler.types import Question
from osler_serve.keys import new_key
from osler_serve.ledger import Ledger

LIST = "/api/v1/conversations"


def listed(http: httpx2.Client, **query: Any) -> list[dict[str, Any]]:
    reply = http.get(LIST, params=query)
    assert reply.status_code == 200, reply.text
    return list(reply.json()["conversations"])


def ask(http: httpx2.Client, place: ServedOsler, question: str) -> str:
    run = start_run(http, question)
    read_stream(http, run)
    place.wait_for_runs()
    return run


def ask_on_the_command_line(place: ServedOsler, question: str) -> str:
    """Its run is known by its folder alone."""
    settings = place.site.settings
    shelf = loaded_shelf(settings, FixedModel())

    async def solve() -> str:
        parts = await shelf.parts_for(settings)
        return (await answering.ask(settings, Question("", question), parts=parts)).run

    try:
        return asyncio.run(solve())
    finally:
        shelf.close()


@pytest.fixture
def own(home: Path) -> Any:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as http:
        yield place, http


def test_threads_and_single_questions_stand_in_one_list(own: Any) -> None:
    place, http = own
    lone = ask(http, place, "What is given first in asthma?")
    first = ask(http, place, "What is given first in anaphylaxis?")
    thread = http.post("/api/v1/threads", json={"run_id": first}).json()["thread_id"]
    turn = http.post(f"/api/v1/threads/{thread}/turns", json={"question": "Why is it given?"})
    read_stream(http, turn.json()["run_id"])
    place.wait_for_runs()
    every = listed(http)  # within one second in any order
    assert {(one["id"], one["kind"], one["turns"], one["title"]) for one in every} == {
        (thread, "thread", 2, "What is given first in anaphylaxis?"),
        (lone, "run", 1, "What is given first in asthma?"),
    }
    assert len(every) == 2
    assert [one["id"] for one in listed(http, find="GIVEN why")] == [thread]
    assert len(listed(http, find="adrenaline")) == 2, "a word of both answers"
    assert [one["id"] for one in listed(http, find="ADRENALINE anaphylaxis")] == [thread]
    assert listed(http, find="adrenaline zebra") == []
    page = http.get(LIST, params={"limit": 1}).json()
    pages = [*page["conversations"], *listed(http, before=page["next"])]
    assert pages == every


def test_an_answer_is_found_as_soon_as_it_is_there_and_no_longer_than_it_is(home: Path) -> None:
    model = FixedModel(gate=(gate := AwaitableEvent()))
    with serve_osler(home, model=model) as place, httpx2.Client(base_url=place.url) as http:
        run = start_run(http, "What is given first in anaphylaxis?")
        assert model.called.wait(20)
        assert listed(http, find="adrenaline") == []
        gate.set()
        place.wait_for_runs()
        assert [one["id"] for one in listed(http, find="adrenaline")] == [run]
        assert http.delete(f"{LIST}/{run}").status_code == 204
        assert listed(http, find="adrenaline") == []


def test_a_title_is_given_found_and_taken_back(own: Any) -> None:
    place, http = own
    run = ask(http, place, "What is given first in asthma?")
    assert http.put(f"{LIST}/{run}", json={"title": " Ward round "}).status_code == 204
    assert [one["title"] for one in listed(http, find="ward")] == ["Ward round"]
    assert http.put(f"{LIST}/{run}", json={"title": ""}).status_code == 204
    assert [one["title"] for one in listed(http)] == ["What is given first in asthma?"]
    assert http.put(f"{LIST}/none", json={"title": "x"}).status_code == 404


def test_a_conversation_is_deleted_with_its_runs_and_stays_so(own: Any) -> None:
    place, http = own
    other = ask(http, place, "What is given first in asthma?")
    first = ask(http, place, "What is given first in anaphylaxis?")
    thread = http.post("/api/v1/threads", json={"run_id": first}).json()["thread_id"]
    assert http.delete(f"{LIST}/{thread}").status_code == 204
    assert http.get(f"/api/v1/threads/{thread}").status_code == 404
    assert http.get(f"/api/v1/runs/{first}").status_code == 404
    assert not (place.site.settings.runs.path / first).exists()
    assert [one["id"] for one in listed(http)] == [other]
    assert http.delete(f"{LIST}/{other}").status_code == 204
    assert listed(http) == []
    assert http.delete(f"{LIST}/{other}").status_code == 404


def test_what_readers_wrote_of_a_deleted_run_goes_with_it(own: Any) -> None:
    place, http = own
    kept, gone = (ask(http, place, f"What is given first in {it}?") for it in ("asthma", "shock"))
    for run in (kept, gone):
        said = {"verdict": "wrong", "note": f"of {run}"}
        assert http.post(f"/api/v1/runs/{run}/feedback", json=said).status_code == 201
    assert http.delete(f"{LIST}/{gone}").status_code == 204
    assert [one.about for one in FeedbackStore(place.site.settings.home).read_all()] == [kept]


def test_runs_of_the_command_line_are_listed_opened_and_deleted(own: Any) -> None:
    place, http = own
    folder = ask_on_the_command_line(place, "What is given first in asthma?")
    ((one, kind),) = [(each["id"], each["kind"]) for each in listed(http)]
    assert (one, kind) == (folder, "run")
    assert [each["run_id"] for each in http.get("/api/v1/runs").json()["runs"]] == [one]
    assert http.get(f"/api/v1/runs/{one}").json()["status"] == "finished"
    assert http.delete(f"{LIST}/{one}").status_code == 204
    assert listed(http) == []


def test_another_workspace_sees_and_deletes_nothing(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as http:
        run = ask(http, place, "What is given first in asthma?")
        asked = ask_on_the_command_line(place, "What is given first in anaphylaxis?")
    ledger = Ledger(home / "serve")
    key = new_key(ledger, "other", workspace="other")
    ledger.close()
    sent = {"Authorization": f"Bearer {key}"}
    with (
        serve_osler(home) as place,
        httpx2.Client(base_url=place.url, headers=sent) as http,
    ):
        assert listed(http) == []
        for one in (run, asked):
            assert http.delete(f"{LIST}/{one}").status_code == 404
            assert (place.site.settings.runs.path / one).exists()


def test_questions_to_ask_next_name_sections_that_were_found(home: Path) -> None:
    def fill(at: Path) -> None:
        text = "## Gout\n\n### Acute attack\n\nColchicine is given first in an acute attack.\n\n"
        text += "### Diet\n\nBeer and offal are left out by people with gout.\n"
        fill_knowledge_base(at, {"book": text})

    model = FixedModel(reply="Colchicine is given first in an acute attack. [1]")
    with (
        serve_osler(home, model=model, fill=fill) as place,
        httpx2.Client(base_url=place.url) as http,
    ):
        run = ask(http, place, "What is given first in an acute attack?")
        assert len(http.get(f"/api/v1/runs/{run}").json()["evidence"]) == 1
        told = http.get(f"/api/v1/runs/{run}/follow_ups").json()["questions"]
        assert told == ["Gout: what about diet?"]
        found = http.post("/api/v1/search", json={"query": told[0]}).json()["hits"]
        assert "Beer and offal" in found[0]["passage"]["text"]


def test_a_question_that_is_too_long_is_refused_in_plain_words(http: httpx2.Client) -> None:
    reply = http.post("/api/v1/runs", json={"question": "x" * 29_600})
    assert (reply.status_code, reply.json()["code"]) == (422, "too_long")
    assert reply.json()["detail"] == "question is too long: 8,000 characters or items at most"


def test_what_is_pinned_stands_first_whatever_its_age_until_it_is_unpinned(own: Any) -> None:
    place, http = own
    runs = sorted(ask(http, place, f"What is given first in case {n}?") for n in range(4))
    old, *newer = runs
    assert http.put(f"{LIST}/{old}", json={"pinned": True}).status_code == 204
    page = http.get(LIST, params={"limit": 2}).json()
    assert [one["id"] for one in page["conversations"]] == [old, newer[2], newer[1]]
    assert [one["pinned"] for one in page["conversations"]] == [True, False, False]
    rest = listed(http, limit=2, before=page["next"])
    assert [one["id"] for one in rest] == [newer[0]]
    http.put(f"{LIST}/{old}", json={"pinned": False})
    assert [one["id"] for one in listed(http)] == runs[::-1]
