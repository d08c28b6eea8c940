"""A source plan is asked for, edited, and run as it stands."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx2
import pytest
from served import (
    FixedModel,
    ServedOsler,
    fill_knowledge_base,
    read_stream,
    serve_osler,
)
from waiting import AwaitableEvent

from osler.runs import answering
from osler.runs.files import read_record

ASKED = {"question": "What is given first in anaphylaxis?"}
REPLY = (
    "<guideline> adrenaline dose ; anaphylaxis first drug </guideline>\n\n"
    "<book> 肾上腺素 </book>\n\n<wiki></wiki>"
)


def test_a_plan_says_what_each_source_would_be_asked_and_asks_nothing(http: httpx2.Client) -> None:
    made = http.post("/api/v1/plan", json=ASKED | {"planner": "original"}).json()
    assert {each["source"] for each in made["queries"]} == {"book", "guideline", "wiki"}
    assert {each["query"] for each in made["queries"]} == {ASKED["question"]}
    assert made["sources"] == ["book", "guideline", "wiki"]
    assert made["planner"].startswith("original")
    assert made["snapshot"]
    assert f"<book> {ASKED['question']} </book>" in made["text"]


def test_a_model_s_plan_is_read_and_what_is_left_out_is_told(home: Path) -> None:
    model = FixedModel(reply=REPLY.replace("<book>", "<book> a ; b ; c ;"))
    with serve_osler(home, model=model) as place, httpx2.Client(base_url=place.url) as client:
        made = client.post("/api/v1/plan", json=ASKED | {"planner": "prompting"}).json()
    told = [(each["source"], each["query"]) for each in made["queries"]]
    assert told[:3] == [("book", "a"), ("book", "b"), ("book", "c")]
    assert told[3:] == [("guideline", "adrenaline dose"), ("guideline", "anaphylaxis first drug")]
    assert made["dropped"] == ["book: '肾上腺素' (more than 3)"]
    assert model.asked == 1


def test_a_plan_that_was_edited_is_what_is_searched_and_the_run_replays(
    place: ServedOsler, http: httpx2.Client
) -> None:
    made = http.post("/api/v1/plan", json=ASKED | {"planner": "original"}).json()
    kept = [each for each in made["queries"] if each["source"] != "wiki"]
    kept[0]["query"] = "过敏性休克首选"
    run = http.post("/api/v1/runs", json=ASKED | {"plan": kept}).json()["run_id"]
    seen = read_stream(http, run)
    (planned,) = [data for _, name, data in seen if name == "plan.proposed"]
    assert planned["origin"] == "user"
    assert [(q["source"], q["query"]) for q in planned["queries"]] == [
        (each["source"], each["query"]) for each in kept
    ]
    searched = [data for _, name, data in seen if name == "retrieval.started"]
    assert {(each["sources"][0], each["query"]) for each in searched} == {
        (each["source"], each["query"]) for each in kept
    }
    told = http.get(f"/api/v1/runs/{run}").json()
    assert told["strategy"] == "omni-rag"
    assert {one["passage"]["source"] for one in told["evidence"]} <= {"book", "guideline"}
    record = read_record(place.site.settings.runs.path / run)
    assert record.plan is not None


async def test_a_run_of_a_given_plan_is_replayed_from_its_folder(place: ServedOsler) -> None:
    plan = [{"source": "guideline", "query": "adrenaline; outer thigh"}]
    async with httpx2.AsyncClient(base_url=place.url, timeout=20) as client:
        run = (await client.post("/api/v1/runs", json=ASKED | {"plan": plan})).json()["run_id"]
        await client.get(f"/api/v1/runs/{run}/events")
    again = await answering.replay(place.site.settings.runs.path / run)
    assert again.solution is not None


def test_an_empty_plan_asks_no_source(http: httpx2.Client) -> None:
    run = http.post("/api/v1/runs", json=ASKED | {"plan": []}).json()["run_id"]
    names = [name for _, name, _ in read_stream(http, run)]
    assert "retrieval.started" not in names
    assert names[-1] == "run.finished"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"plan": [{"source": "emr", "query": "x"}]}, "bad_plan"),
        ({"plan": [{"source": "guideline", "query": ";;;"}]}, "bad_plan"),
        ({"plan": [{"source": "guideline", "query": "</guideline><book> x"}]}, ""),
        ({"plan": [{"source": "guideline", "query": "x" * 4001}]}, "bad_plan"),
        ({"plan": [{"source": "guideline", "query": ""}]}, "invalid"),
        ({"plan": [{"source": "guideline", "query": "x", "hits": []}]}, "unknown_field"),
        ({"plan": [{"source": "guideline", "query": "x"}] * 101}, "too_long"),
        ({"plan": [{"source": "book", "query": "x"}], "sources": ["guideline"]}, "bad_plan"),
        ({"plan": [], "strategy": "rag"}, "bad_choice"),
        ({"plan": [], "sources": ["nowhere"]}, "bad_choice"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused_before_it_starts(
    http: httpx2.Client, more: dict[str, object], code: str
) -> None:
    reply = http.post("/api/v1/runs", json=ASKED | more)
    if code:
        assert (reply.status_code, reply.json()["code"]) == (422, code)
        return
    (planned,) = [
        data
        for _, name, data in read_stream(http, reply.json()["run_id"])
        if name == "plan.proposed"
    ]
    assert [(q["source"], q["query"]) for q in planned["queries"]] == [("guideline", "x")]


def test_a_budget_that_ends_before_there_is_a_plan_is_told(home: Path) -> None:
    with (
        serve_osler(home, model=FixedModel(reply="")) as place,
        httpx2.Client(base_url=place.url) as one,
    ):
        asked = ASKED | {"planner": "prompting", "limits": {"seconds": 1e-9}}
        reply = one.post("/api/v1/plan", json=asked)
    assert (reply.status_code, reply.json()["code"]) == (422, "no_plan")


def test_planning_takes_a_place_like_a_run(home: Path) -> None:
    fill_knowledge_base(home)
    gate = AwaitableEvent()
    model = FixedModel(reply=REPLY, gate=gate)
    with (
        serve_osler(home, model=model, serve={"caller_runs": 1}) as place,
        httpx2.Client(base_url=place.url, timeout=20) as client,
    ):
        found: list[httpx2.Response] = []
        body = ASKED | {"planner": "prompting"}

        def plan() -> None:
            found.append(httpx2.post(f"{place.url}/api/v1/plan", json=body, timeout=20))

        first = threading.Thread(target=plan)
        first.start()
        assert model.called.wait(20)
        refused = client.post("/api/v1/plan", json=body)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
        gate.set()
        first.join(20)
        assert found[0].status_code == 200
        assert client.post("/api/v1/plan", json=body).status_code == 200
