"""Every request is on record before it is answered, and nothing is answered without a record."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("cryptography", reason='not installed: pip install "osler[audit]"')

from served import (
    ServedOsler,
    fill_knowledge_base,
    no_page,
    read_stream,
    serve_osler,
    serving_settings,
    start_run,
)
from typer.testing import CliRunner

from osler.audit.entries import log_folder
from osler.audit.log import ENTRIES, PUBLIC
from osler.build.resource_cache import ResourceCache
from osler.cli import app
from osler.errors import StorageFailed
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.app import build_state
from osler_serve.ops.audit_proofs import prove_run, read_entries, verify_audit
from osler_serve.tools import build_mcp_server

ROOT = Path(__file__).parents[3]
REQUIRED = {"log": "require"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("recorded"), audit=REQUIRED) as place:
        yield place


@pytest.fixture
def client(recorded: ServedOsler) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=recorded.url, timeout=20) as client:
        yield client


def entries_of(place: ServedOsler) -> list[dict[str, Any]]:
    return read_entries(place.site.settings)


def test_each_door_leaves_entries_without_the_words(
    recorded: ServedOsler, client: httpx2.Client
) -> None:
    before = len(entries_of(recorded))
    client.post("/api/v1/search", json={"query": "adrenaline zyxoquestion"})
    client.get("/healthz")
    run = start_run(client, "What is given first, zyxoquestion?")
    read_stream(client, run)
    recorded.wait_for_runs()
    chat = {"model": "osler/auto", "messages": [{"role": "user", "content": "Which zyxoquestion?"}]}
    client.post("/v1/chat/completions", json=chat)
    client.get("/api/v1/passages/none%230")
    new = entries_of(recorded)[before:]
    seen = [(one["what"], one.get("path", "")) for one in new]
    assert seen.count(("run", "")) == 2
    assert ("request", "/api/v1/search") in seen
    assert ("request.begun", f"/api/v1/runs/{run}/events") in seen
    assert ("request.ended", f"/api/v1/runs/{run}/events") in seen
    assert ("request", "/v1/chat/completions") in seen
    assert not any(path == "/healthz" for _, path in seen)
    assert {one["status"] for one in new if one.get("path", "").endswith("none#0")} == {404}
    about = next(one for one in new if one["what"] == "run" and one["run"] == run)
    assert about["sources"]
    assert about["models"] == {"reader": "speaks"}
    assert about["found"]
    assert verify_audit(recorded.site.settings).problems == ()
    folder = log_folder(recorded.site.settings)
    assert b"zyxoquestion" not in b"".join(path.read_bytes() for path in folder.iterdir())


def test_each_field_that_the_file_on_the_ai_act_names_is_in_what_was_written(
    recorded: ServedOsler, client: httpx2.Client
) -> None:
    client.post("/api/v1/search", json={"query": "adrenaline"})
    run = start_run(client, "What is given first?")
    read_stream(client, run)
    recorded.wait_for_runs()
    written: dict[str, set[str]] = {}
    for entry in entries_of(recorded):
        written.setdefault(entry["what"], set()).update(entry)
    text = (ROOT / "docs" / "law" / "ai-act.toml").read_text(encoding="utf-8")
    duties = [duty for duty in tomllib.loads(text)["duty"] if "fields" in duty]
    assert len(duties) >= 8
    lost = [
        (duty["cite"], what, sorted(set(named) - written.get(what, set())))
        for duty in duties
        for what, named in duty["fields"].items()
    ]
    assert [one for one in lost if one[2]] == []


def test_a_proof_is_asked_for_as_a_trace_is(
    recorded: ServedOsler, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start_run(client)
    read_stream(client, run)
    recorded.wait_for_runs()
    monkeypatch.setenv("OSLER__HOME", str(recorded.site.settings.home))
    for word in ("last", run[:-1], run):
        told = CliRunner().invoke(app, ["audit", word])
        assert run in json.loads(told.stdout)["entry"], word
    assert CliRunner().invoke(app, ["audit", "nix"]).exit_code == 2


def test_proof_of_a_run_is_checked_by_a_script_of_its_own(
    recorded: ServedOsler, client: httpx2.Client, tmp_path: Path
) -> None:
    run = start_run(client)
    read_stream(client, run)
    recorded.wait_for_runs()
    proof = prove_run(recorded.site.settings, run)
    key = (log_folder(recorded.site.settings) / PUBLIC).read_text().strip()
    script = ROOT / "examples" / "06_verify_an_audit_proof.py"
    assert len(script.read_text().splitlines()) <= 35

    def check(changed: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        (tmp_path / "proof.json").write_text(json.dumps(changed), encoding="utf-8")
        words = [sys.executable, str(script), str(tmp_path / "proof.json"), key]
        return subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603

    good = check(proof)
    assert good.returncode == 0, good.stderr
    log = recorded.site.settings.runs.path / run / "events.jsonl"
    log.write_text(log.read_text("utf-8").replace("given first", "given\u2028first"), "utf-8")
    said = prove_run(recorded.site.settings, run)["answer"]["statements"]
    assert "given\u2028first" in said[0]["text"], "a text may hold line ends of Unicode"
    assert run in good.stdout
    answer = {**proof["answer"], "statements": []}
    files = {**proof["files"], "tape": proof["files"]["tape"] + " "}
    for wrong in (
        {"answer": answer},
        {"files": files},
        {"entry": proof["entry"].replace("rag", "cot")},
        {"checkpoint": {**proof["checkpoint"], "at": "2020"}},
        {"index": proof["index"] - 1},
    ):
        assert check({**proof, **wrong}).returncode != 0, wrong


class FullDisk:
    """Lets nothing be written to the log until it is emptied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch

    def fill(self) -> None:
        def refuse(handle: int, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        self.patch.setattr("osler.audit.log.os.write", refuse)


def test_server_that_cannot_write_its_record_answers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        serve_osler(tmp_path, audit=REQUIRED) as place,
        httpx2.Client(base_url=place.url, timeout=20) as client,
    ):
        run = start_run(client)
        read_stream(client, run)
        place.wait_for_runs()
        with monkeypatch.context() as full:
            FullDisk(full).fill()
            replies = [
                client.post("/api/v1/search", json={"query": "adrenaline"}),
                client.get(f"/api/v1/runs/{run}"),
                client.get(f"/api/v1/runs/{run}/events"),
                client.get(f"/runs/{run}/report.html"),
                client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
                client.post("/api/v1/runs", json={"question": "What is given first?"}),
            ]
            place.wait_for_runs()
            assert client.get("/healthz").status_code == 200
        for reply in replies:
            assert reply.status_code == 503, reply.text
            assert reply.json()["code"] == "not_on_record"
            assert "drenaline" not in reply.text
        folders = {path.name for path in (tmp_path / "runs").iterdir()}
        assert folders == {run}  # the run without an entry was not kept
        assert client.get(f"/api/v1/runs/{run}").status_code == 200


def test_server_is_not_ready_while_its_record_takes_no_entry(tmp_path: Path) -> None:
    with (
        serve_osler(tmp_path, audit=REQUIRED) as place,
        httpx2.Client(base_url=place.url, timeout=20) as client,
    ):
        assert client.get("/readyz").status_code == 200
        client.post("/api/v1/search", json={"query": "adrenaline"})
        entries = tmp_path / "audit" / "entries.jsonl"
        whole = entries.read_bytes()
        entries.write_bytes(whole[:-9])
        assert client.post("/api/v1/search", json={"query": "adrenaline"}).status_code == 503
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "storage_failed")
        assert "holds 0 entries, and 1 were signed" in ready.json()["detail"]
        entries.write_bytes(whole)
        assert client.get("/readyz").status_code == 200


def test_server_that_only_warns_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        serve_osler(tmp_path, audit={"log": "warn"}) as place,
        httpx2.Client(base_url=place.url, timeout=20) as client,
        monkeypatch.context() as full,
    ):
        FullDisk(full).fill()
        assert client.post("/api/v1/search", json={"query": "adrenaline"}).status_code == 200
    assert "an entry is missing" in caplog.text


def test_tool_over_standard_input_is_on_record(tmp_path: Path) -> None:
    fill_knowledge_base(tmp_path)
    settings = serving_settings(tmp_path, audit=REQUIRED)
    shelf = ResourceCache(settings, encoder=HashingEncoder())
    made = build_state(settings, no_page, shelf=shelf)
    mcp = build_mcp_server(lambda _: (made, None))

    async def call() -> None:
        from mcp import Client

        async with Client(mcp) as client:
            await client.call_tool("calculate", {"python": "1 + 1"})

    asyncio.run(call())
    made.shelf.close()
    made.ledger.close()
    assert [one["tool"] for one in read_entries(settings)] == ["calculate"]


def test_entry_costs_little_of_the_processor(recorded: ServedOsler) -> None:
    from osler.audit.entries import open_audit

    log = open_audit(recorded.site.settings)
    assert log is not None
    took = []
    for _ in range(101):
        began = time.thread_time()  # what the disk takes is measured in research/log/safety.md
        log.append({"what": "test", "asked": "x" * 200})
        took.append(time.thread_time() - began)
    assert statistics.median(took) <= 0.002


def test_log_that_was_changed_stops_the_server(tmp_path: Path) -> None:
    fill_knowledge_base(tmp_path)
    settings = serving_settings(tmp_path, audit=REQUIRED)
    from osler.audit.entries import open_audit, write_entry

    write_entry(settings, {"what": "one"})
    write_entry(settings, {"what": "two"})
    path = log_folder(settings) / ENTRIES
    path.write_bytes(path.read_bytes().replace(b"one", b"won") + b"{}\n")
    assert verify_audit(settings).problems
    assert open_audit(settings) is not None
    with pytest.raises(StorageFailed):
        write_entry(settings, {"what": "three"})
