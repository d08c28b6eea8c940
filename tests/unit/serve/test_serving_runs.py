"""Runs over HTTP, on a server that runs: started, watched, resumed, cancelled, kept."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from browsing import store_run
from served import FixedModel, ServedOsler, read_stream, serve_osler, start_run
from waiting import AwaitableEvent

from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.trace import read_events, to_line
from osler.types import Question
from osler_lab.testing.scripted import HashingEncoder
from osler_serve import run_streams
from osler_serve.active_runs import ActiveRun
from osler_serve.keys import Caller

HOSTILE = "<script>alert(1)</script> What is given first? \u202e\u200b"


def ended(place: ServedOsler, client: httpx2.Client, run: str) -> dict[str, Any]:
    """The run, once it is put away."""
    place.wait_for_runs()
    shown: dict[str, Any] = client.get(f"/api/v1/runs/{run}").json()
    return shown


def test_run_stream_has_its_events_in_order_and_ends_with_the_answer(http: httpx2.Client) -> None:
    seen = read_stream(http, start_run(http))
    assert [number for number, _, _ in seen] == list(range(1, len(seen) + 1))
    names = [name for _, name, _ in seen]
    assert names[0] == "run.started"
    assert names[-1] == "run.finished"
    assert {"retrieval.done", "model.asked"} <= set(names)
    assert all(name == data["type"] for _, name, data in seen)


def test_stream_resumes_after_last_event_id(http: httpx2.Client) -> None:
    run = start_run(http)
    whole = read_stream(http, run)
    assert read_stream(http, run, **{"Last-Event-ID": "3"}) == whole[3:]
    assert read_stream(http, run, **{"Last-Event-ID": str(len(whole))}) == []


def test_the_answer_bears_its_citations_and_their_quotes_are_in_the_passages(
    http: httpx2.Client,
) -> None:
    run = start_run(http)
    read_stream(http, run)
    shown = http.get(f"/api/v1/runs/{run}").json()
    assert shown["status"] == "finished"
    assert shown["grounding"] == "grounded"
    (cited,) = shown["answer"]["citations"]
    passage = http.get(f"/api/v1/passages/{cited['passage_id'].replace('#', '%23')}").json()
    start, end = cited["quote_span"]
    assert passage["passage"]["text"][start:end] == cited["quote"]
    begin, stop = cited["span"]
    assert shown["answer"]["text"][begin:stop] == "Adrenaline is given first."


def test_a_computed_answer_bears_the_steps_that_led_to_it(http: httpx2.Client) -> None:
    asked = "What is the mean arterial pressure at 120/75 mmHg?"
    run = start_run(http, asked, strategy="kag-thinker")
    read_stream(http, run)
    shown = http.get(f"/api/v1/runs/{run}").json()
    math, output = shown["steps"]
    assert (math["function"], math["answer"]) == ("Math", "90 mmHg")
    assert "120" in math["computed"]
    assert output["needs"] == [math["n"]]
    assert math["passages"] == [one["passage"]["id"] for one in shown["evidence"]]


def test_a_run_that_was_cancelled_after_its_plan_is_served_with_its_steps(home: Path) -> None:
    nodes = [{"n": 1, "fn": "Retrieval", "step": "Which drug?", "action": "R", "needs": []}]
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        run = store_run(place, 1, [{"type": "lf.parsed", "nodes": nodes}])
        shown = client.get(f"/api/v1/runs/{run}").json()
    assert (shown["status"], shown["steps"][0]["step"]) == ("cancelled", "Which drug?")


def test_run_is_served_byte_for_byte_the_same_after_a_restart(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        run = start_run(client)
        stream = read_stream(client, run)
        before = ended(place, client, run)
        assert before["status"] == "finished"
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        after = client.get(f"/api/v1/runs/{run}").json()
        assert read_stream(client, run) == stream
    seconds = {"seconds"}  # with or without the time in which it was put away
    assert {k: v for k, v in after.items() if k not in seconds} == {
        k: v for k, v in before.items() if k not in seconds
    }


def test_streamed_events_equal_the_stored_log(place: ServedOsler, http: httpx2.Client) -> None:
    run = start_run(http)
    with http.stream("GET", f"/api/v1/runs/{run}/events") as reply:
        frames = "\n".join(reply.iter_lines()).split("\n\n")
    # `run.queued`, which stands outside the numbers, is no event of the run.
    data = [
        frame.partition("data: ")[2].rstrip("\n") for frame in frames if frame.startswith("id: ")
    ]
    log = place.site.settings.runs.path / run / "events.jsonl"
    assert log.read_text(encoding="utf-8").splitlines() == data
    assert [to_line(event) for event in read_events(log)] == data


def test_cancelling_stops_the_model_call_within_a_second(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with serve_osler(home, model=model) as place, httpx2.Client(base_url=place.url) as client:
        run = start_run(client)
        assert model.called.wait(20)
        began = time.monotonic()
        shown = client.post(f"/api/v1/runs/{run}/cancel").json()
        assert time.monotonic() - began < 1
        assert (shown["status"], shown["error"]["code"]) == ("cancelled", "cancelled")
        assert model.stopped == 1
        assert read_stream(client, run)[-1][1] == "run.cancelled"
        again = client.post(f"/api/v1/runs/{run}/cancel").json()
        assert again == shown


def test_queued_run_streams_an_unnumbered_run_queued_event(
    home: Path,
) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with (
        serve_osler(home, model=model, serve={"runs": 1}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        first = start_run(client)
        assert model.called.wait(20)
        second = start_run(client)
        with client.stream("GET", f"/api/v1/runs/{second}/events") as reply:
            lines = reply.iter_lines()
            assert next(lines) == "event: run.queued"
            assert json.loads(next(lines).removeprefix("data: ")) == {
                "ahead": 0,
                "type": "run.queued",
            }
            assert client.post(f"/api/v1/runs/{first}/cancel").status_code == 200
            assert model.gate
            model.gate.set()
            numbers = [line for line in lines if line.startswith("id: ")]
        assert numbers[0] == "id: 1"
        assert read_stream(client, second)[0][1] == "run.started"


def test_a_queued_run_tells_how_many_wait_before_it(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with (
        serve_osler(home, model=model, serve={"runs": 1}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        runs = [start_run(client)]
        assert model.called.wait(20)
        runs += [start_run(client), start_run(client)]
        shown = [client.get(f"/api/v1/runs/{run}").json() for run in runs]
        assert [one["status"] for one in shown] == ["running", "queued", "queued"]
        assert [one["ahead"] for one in shown] == [0, 0, 1]
        assert model.gate
        model.gate.set()
        place.wait_for_runs()


def test_a_cancelled_run_is_still_told_after_a_restart(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with serve_osler(home, model=model) as place, httpx2.Client(base_url=place.url) as client:
        run = start_run(client)
        assert model.called.wait(20)
        shown = client.post(f"/api/v1/runs/{run}/cancel").json()
        stream = read_stream(client, run)
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        after = client.get(f"/api/v1/runs/{run}").json()
        assert (after["status"], after["error"]) == (shown["status"], shown["error"])
        assert after["question"] == "What is given first?"
        assert read_stream(client, run) == stream


def test_run_over_its_time_limit_fails_with_timeout(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with (
        serve_osler(home, model=model, serve={"run_seconds": 0.1}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        shown = ended(place, client, start_run(client))
        assert shown["status"] == "failed"
        assert shown["error"] == {"code": "timeout", "detail": "over 0.1 seconds"}
        assert model.stopped == 1


def test_run_of_a_server_that_died_is_told_as_interrupted(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        run = start_run(client)
        assert ended(place, client, run)["status"] == "finished"
        place.site.ledger._db.execute("UPDATE run SET status = 'running' WHERE id = ?", (run,))
        place.site.ledger._db.execute(
            "INSERT INTO run SELECT '20200101-000000-000000000000', workspace, caller, created,"
            " 'running', strategy, question, '', '', '' FROM run WHERE id = ?",
            (run,),
        )
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        shown = client.get("/api/v1/runs/20200101-000000-000000000000").json()
        assert (shown["status"], shown["error"]["detail"]) == ("interrupted", "the server stopped")


def test_runs_are_listed_newest_first_and_in_pages(http: httpx2.Client) -> None:
    made = [start_run(http) for _ in range(5)]
    first = http.get("/api/v1/runs", params={"limit": 3}).json()
    rest = http.get("/api/v1/runs", params={"limit": 2, "before": first["next"]}).json()
    assert [run["run_id"] for run in (*first["runs"], *rest["runs"])] == made[::-1]


def test_a_run_may_choose_its_strategy_and_its_limits(http: httpx2.Client) -> None:
    run = start_run(http, strategy="direct", limits={"calls": 1}, seed=7)
    started = read_stream(http, run)[0][2]
    assert started["strategy"] == "direct"
    assert (started["budget"]["calls"], started["seed"]) == (1, 7)


def test_a_limit_narrows_the_server_s_and_never_widens_it(home: Path) -> None:
    with (
        serve_osler(home, budget={"calls": 2, "searches": 5}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = start_run(client, limits={"calls": 100, "searches": 3})
        budget = read_stream(client, run)[0][2]["budget"]
        assert (budget["calls"], budget["searches"]) == (2, 3)


def test_markup_in_a_question_is_escaped_in_the_report(http: httpx2.Client) -> None:
    run = start_run(http, HOSTILE)
    read_stream(http, run)
    reply = http.get(f"/runs/{run}/report.html")
    assert reply.status_code == 200
    assert "<script" not in reply.text
    assert "&lt;script&gt;" in reply.text
    assert "script-src" not in reply.headers["content-security-policy"]
    assert "default-src 'none'" in reply.headers["content-security-policy"]


@pytest.mark.parametrize("id", ["20200101-000000-aaaaaaaaaaaa", "..", "%2e%2e%2fserve", "last"])
def test_a_run_that_is_not_there_is_404_at_every_route(http: httpx2.Client, id: str) -> None:
    for path in (f"/api/v1/runs/{id}", f"/api/v1/runs/{id}/events", f"/runs/{id}/report.html"):
        reply = http.get(path)
        assert reply.status_code == 404, path
        assert reply.headers["content-type"] == "application/problem+json"


async def test_concurrent_runs_lose_reorder_and_double_no_event(home: Path) -> None:
    limits = {"runs": 200, "caller_runs": 400}
    bounds = httpx2.Limits(max_connections=400)
    gate = AwaitableEvent()
    with serve_osler(home, model=FixedModel(gate=gate), serve=limits) as place:
        async with httpx2.AsyncClient(base_url=place.url, timeout=60, limits=bounds) as client:
            runs = await asyncio.gather(*(begun(client, n) for n in range(200)))
            assert place.site.desk.unfinished == 200
            gate.set()
            streams = await asyncio.gather(*(streamed(client, run) for run in runs))
    assert len({tuple(name for _, name, _ in stream) for stream in streams}) == 1
    for n, stream in enumerate(streams):
        assert [number for number, _, _ in stream] == list(range(1, len(stream) + 1))
        assert stream[0][2]["question"]["text"] == f"What is given first in case {n}?"


async def begun(client: httpx2.AsyncClient, n: int) -> str:
    question = {"question": f"What is given first in case {n}?"}
    return str((await client.post("/api/v1/runs", json=question)).json()["run_id"])


async def streamed(client: httpx2.AsyncClient, run: str) -> list[tuple[int, str, Any]]:
    text = (await client.get(f"/api/v1/runs/{run}/events")).text
    blocks = [block.split("\n") for block in text.split("\n\n") if block.startswith("id: ")]
    return [(int(id[4:]), name[7:], json.loads(data[6:])) for id, name, data in blocks]


def test_silent_stream_sends_pings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_streams, "PING_SECONDS", 0.02)
    gate = AwaitableEvent()
    with (
        serve_osler(home, model=FixedModel(gate=gate)) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = start_run(client)
        with client.stream("GET", f"/api/v1/runs/{run}/events") as reply:
            for line in reply.iter_lines():
                if line == ": ping":
                    gate.set()
                    break
        assert gate.is_set()


def test_an_old_answer_says_that_its_evidence_changed_since(
    place: ServedOsler, http: httpx2.Client
) -> None:
    run = start_run(http)
    read_stream(http, run)
    shown = ended(place, http, run)
    assert shown["changed"] == []
    (cited,) = shown["answer"]["citations"]
    with KnowledgeBase.open(place.site.settings.kb.path) as kb:
        before = kb.get(cited["passage_id"]).text
        kb.correct(cited["passage_id"], "Something else.", HashingEncoder())
        again = http.get(f"/api/v1/runs/{run}").json()
        kb.correct(cited["passage_id"], before, HashingEncoder())
    number = cited["number"]
    assert again["changed"] == [
        {"number": number, "passage": cited["passage_id"], "state": "changed", "notice": ""}
    ]


def test_a_run_says_what_it_cost_and_which_words_nothing_confirms(tmp_path: Path) -> None:
    model = FixedModel("Leeches cure it at once, as is known. [1]")
    prices = {"currency": "EUR", "models": ["speaks=1/1/1000000"]}
    with (
        serve_osler(tmp_path, model=model, prices=prices) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = start_run(client, limits={"money": 100.0})
        read_stream(client, run)
        shown = ended(place, client, run)
    statements = shown["answer"]["statements"]
    assert [one["kind"] for one in statements] == ["notice", "unconfirmed"]
    assert statements[1]["text"] == "Leeches cure it at once, as is known."
    assert "(the model's, not confirmed)" in shown["answer"]["text"]
    written = shown["usage"]["completion_tokens"]
    assert shown["usage"]["money"] == {"amount": written, "currency": "EUR"}
    assert shown["halt"] == "no_evidence"


async def test_a_line_that_comes_between_a_look_and_the_wait_is_not_missed() -> None:
    """Else a stream learns of its end with the next ping, 15 seconds later."""
    live = ActiveRun("r", Caller("local", "w", 1, 1), Question("q", "q"), Settings(), "2026")
    waiting = asyncio.ensure_future(asyncio.wait_for(live.wait_for_line(), 5))
    live.append_line("{}")  # before the task of the wait had its first turn
    began = time.perf_counter()
    await waiting
    assert time.perf_counter() - began < 1
