"""What readers say of answers, over HTTP."""

from __future__ import annotations

import httpx2
import pytest
from served import ServedOsler, read_stream, start_run

from osler.runs.feedback import Feedback, FeedbackStore


@pytest.fixture
def answered(place: ServedOsler, http: httpx2.Client) -> str:
    run = start_run(http)
    read_stream(http, run)
    place.wait_for_runs()
    return run


def test_a_verdict_with_its_note_is_kept_and_listed(answered: str, http: httpx2.Client) -> None:
    where = f"/api/v1/runs/{answered}/feedback"
    made = http.post(where, json={"verdict": "unsafe", "note": "剂量不对: no dose"})
    assert made.status_code == 201
    assert made.json()["note"] == "剂量不对: no dose"
    (kept, *_) = http.get("/api/v1/feedback").json()["feedback"]
    assert kept == made.json()
    assert (kept["kind"], kept["about"], kept["verdict"]) == ("run", answered, "unsafe")


def test_the_reply_tells_one_s_own_verdict_though_another_comes_at_once(
    answered: str, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = FeedbackStore.add_all

    def add_both(store: FeedbackStore, given: list[Feedback], workspace: str) -> list[Feedback]:
        kept = add(store, given, workspace)
        add(store, [Feedback("run", answered, "unsafe", note="another's")], workspace)
        return kept

    monkeypatch.setattr(FeedbackStore, "add_all", add_both)
    told = http.post(f"/api/v1/runs/{answered}/feedback", json={"verdict": "helpful"}).json()
    assert (told["verdict"], told["note"]) == ("helpful", "")
    assert told in http.get("/api/v1/feedback").json()["feedback"]


def test_an_unknown_verdict_and_an_unknown_run_are_refused(
    answered: str, http: httpx2.Client
) -> None:
    where = f"/api/v1/runs/{answered}/feedback"
    assert http.post(where, json={"verdict": "fine"}).status_code == 422
    other = "/api/v1/runs/20260102-030405-0123456789ab/feedback"
    assert http.post(other, json={"verdict": "wrong"}).status_code == 404
