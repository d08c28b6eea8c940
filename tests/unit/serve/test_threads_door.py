"""Conversations over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import ServedOsler, read_stream, serve_osler

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder
from osler_serve import threads

QUESTION = "What is given first in anaphylaxis?"

THREADS = "/api/v1/threads"


@pytest.fixture
def thread(http: httpx2.Client) -> str:
    made = http.post(THREADS)
    assert made.status_code == 201
    return str(made.json()["thread_id"])


def ask(http: httpx2.Client, thread: str, question: str, **more: Any) -> httpx2.Response:
    return http.post(f"{THREADS}/{thread}/turns", json={"question": question, **more})


def test_a_thread_is_asked_listed_exported_and_deleted(
    place: ServedOsler, http: httpx2.Client, thread: str
) -> None:
    first = ask(http, thread, QUESTION).json()
    read_stream(http, first["run_id"])
    alone = http.post(f"{THREADS}/{thread}/standalone", json={"question": "Why is it given?"})
    assert alone.json()["rewritten_by"] == "rule"
    second = ask(http, thread, "Why is it given?").json()
    assert second["turn"]["standalone"] == alone.json()["standalone"]
    read_stream(http, second["run_id"])
    place.wait_for_runs()
    turns = http.get(f"{THREADS}/{thread}").json()["turns"]
    assert [turn["question"] for turn in turns] == [QUESTION, "Why is it given?"]
    run = http.get(f"/api/v1/runs/{second['run_id']}").json()
    assert run["question"] == second["turn"]["standalone"]
    assert thread in [one["thread_id"] for one in http.get(THREADS).json()["threads"]]
    text = http.get(f"{THREADS}/{thread}/export").text
    assert f"# {QUESTION}" in text
    assert "# Why is it given?" in text
    assert http.delete(f"{THREADS}/{thread}").status_code == 204
    assert http.get(f"{THREADS}/{thread}").status_code == 404
    assert http.get(f"/api/v1/runs/{second['run_id']}").status_code == 200


def test_what_changed_is_told_of_a_question_that_was_asked_again(
    place: ServedOsler, http: httpx2.Client, thread: str
) -> None:
    for _ in range(2):
        read_stream(http, ask(http, thread, QUESTION, standalone=QUESTION).json()["run_id"])
    read_stream(http, ask(http, thread, "Why is it given?").json()["run_id"])
    place.wait_for_runs()
    (change,) = http.get(f"{THREADS}/{thread}/changes").json()["changes"]
    turns = http.get(f"{THREADS}/{thread}").json()["turns"]
    assert [change["before"], change["after"]] == [turn["run_id"] for turn in turns[:2]]
    assert change["new_statements"] == change["gone_passages"] == []
    assert http.get(f"{THREADS}/none/changes").status_code == 404


def test_a_conversation_goes_on_from_a_run(http: httpx2.Client) -> None:
    run = http.post("/api/v1/runs", json={"question": QUESTION}).json()["run_id"]
    read_stream(http, run)
    begun = http.post(THREADS, json={"run_id": run}).json()
    (first,) = begun["turns"]
    assert (first["run_id"], first["question"]) == (run, QUESTION)
    second = ask(http, begun["thread_id"], "Why is it given?", after=1).json()["turn"]
    assert (second["n"], second["rewritten_by"]) == (2, "rule")
    assert http.post(THREADS, json={"run_id": "20260101-000000-ffffffffffff"}).status_code == 404


def test_the_reader_may_word_the_standalone_question(http: httpx2.Client, thread: str) -> None:
    turn = ask(http, thread, "And then?", standalone=QUESTION).json()["turn"]
    assert (turn["standalone"], turn["rewritten_by"]) == (QUESTION, "user")


def test_who_has_not_seen_the_last_turn_is_told_to_read_again(
    http: httpx2.Client, thread: str
) -> None:
    assert ask(http, thread, QUESTION, after=0).status_code == 202
    late = ask(http, thread, QUESTION, after=0)
    assert (late.status_code, late.json()["code"]) == (409, "thread_moved")
    assert ask(http, thread, QUESTION, after=1).status_code == 202


def test_a_question_asked_again_in_its_own_words_counts_as_nobody_s_rewriting(
    http: httpx2.Client, thread: str
) -> None:
    ask(http, thread, QUESTION)
    turn = ask(http, thread, "Why is it given?", standalone="Why is it given?").json()["turn"]
    assert (turn["standalone"], turn["rewritten_by"]) == ("Why is it given?", "")


def test_a_full_thread_refuses_before_anything_runs(
    place: ServedOsler, http: httpx2.Client, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MOST_TURNS", 1)
    read_stream(http, ask(http, thread, QUESTION).json()["run_id"])
    place.wait_for_runs()
    before = http.get("/api/v1/runs").json()["runs"]
    full = ask(http, thread, QUESTION, after=1)
    assert (full.status_code, full.json()["code"]) == (409, "thread_full")
    assert http.get("/api/v1/runs").json()["runs"] == before


def test_a_thread_whose_last_answer_is_of_another_knowledge_base_says_so(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url, timeout=20) as http:
        thread = http.post(THREADS).json()["thread_id"]
        for _ in range(2):
            read_stream(http, ask(http, thread, QUESTION).json()["run_id"])
        empty = http.post(THREADS).json()["thread_id"]
        place.wait_for_runs()
        assert outdated(http) == {thread: False, empty: False}
        with KnowledgeBase.open(home / "kb") as kb:
            kb.remove(source="wiki")
            kb.build(HashingEncoder())
        assert outdated(http) == {thread: True, empty: False}
        assert http.get(f"{THREADS}/{thread}").json()["outdated"]
        runs = [turn["run_id"] for turn in http.get(f"{THREADS}/{thread}").json()["turns"]]
        runs.append(ask(http, thread, QUESTION).json()["run_id"])
        read_stream(http, runs[-1])
        place.wait_for_runs()
        assert not outdated(http)[thread]
        told = [http.get(f"/api/v1/runs/{run}").json()["outdated"] for run in runs]
        assert told == [True, True, False]


def test_what_reads_no_texts_or_came_before_their_vectors_is_not_outdated(home: Path) -> None:
    (home / "more.md").write_text("# Anaphylaxis\n\nLie the patient down.\n", encoding="utf-8")
    with serve_osler(home) as place, httpx2.Client(base_url=place.url, timeout=20) as http:
        thread = http.post(THREADS).json()["thread_id"]
        read_stream(http, ask(http, thread, QUESTION, strategy="direct").json()["run_id"])
        place.wait_for_runs()
        with KnowledgeBase.open(home / "kb") as kb:
            kb.add([home / "more.md"], source="ward", licence="CC0-1.0")
            assert not outdated(http)[thread]
            read_stream(http, ask(http, thread, QUESTION).json()["run_id"])
            place.wait_for_runs()
            kb.build(HashingEncoder())
        assert not outdated(http)[thread]


def outdated(http: httpx2.Client) -> dict[str, bool]:
    return {one["thread_id"]: one["outdated"] for one in http.get(THREADS).json()["threads"]}


def test_danger_in_an_earlier_turn_still_counts(http: httpx2.Client, thread: str) -> None:
    assert ask(http, thread, "I want to kill myself").json()["danger"] is not None
    assert ask(http, thread, QUESTION).json()["danger"] is not None


def test_a_thread_that_is_not_there_is_404(http: httpx2.Client) -> None:
    assert http.get(f"{THREADS}/nope").status_code == 404
    assert ask(http, "nope", QUESTION).status_code == 404
    assert http.delete(f"{THREADS}/nope").status_code == 404
    assert http.get(f"{THREADS}/..%2Fx").status_code in (404, 422)
