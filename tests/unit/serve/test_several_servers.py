"""Several servers over one home: each tells of the others' runs, and goes on with a dead one's."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import FixedModel, ServedOsler, read_stream, serve_osler, start_run
from waiting import AwaitableEvent

from osler.errors import BadConfig
from osler.settings import Settings
from osler_serve.active_runs import FairRoom
from osler_serve.keys import Caller, new_key
from osler_serve.scopes import KeyScope
from osler_serve.workers import check_workers

STUCK = """
import sys
from pathlib import Path
from served import FixedModel, serve_osler
from waiting import AwaitableEvent
with serve_osler(Path(sys.argv[1]), model=FixedModel(gate=AwaitableEvent())) as place:
    print(place.url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def two_servers(home: Path, first: FixedModel) -> Iterator[tuple[ServedOsler, ServedOsler]]:
    with serve_osler(home, model=first) as one, serve_osler(home) as other:
        yield one, other


@contextmanager
def stuck_server(home: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A process whose runs never end; its address."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", STUCK, str(home)]
    with subprocess.Popen(  # noqa: S603
        command, env=environment, stdin=pipe, stdout=pipe, text=True
    ) as child:
        try:
            assert child.stdout is not None
            yield child.stdout.readline().strip(), child
        finally:
            child.kill()


def test_a_run_is_followed_at_another_server_from_its_first_line_to_its_end(
    tmp_path: Path,
) -> None:
    gate = AwaitableEvent()
    model = FixedModel(gate=gate)
    with two_servers(tmp_path, model) as (one, other), httpx2.Client(timeout=30) as http:
        http.base_url = one.url
        run = start_run(http)
        assert model.called.wait(20)
        http.base_url = other.url
        shown = http.get(f"/api/v1/runs/{run}").json()
        assert shown["events"] > 0, "it tells what was said so far"
        with http.stream("GET", f"/api/v1/runs/{run}/events") as reply:
            lines = reply.iter_lines()
            assert next(lines) == "event: run.queued"
            names = []
            for line in lines:
                names += [line[7:]] if line.startswith("event: ") else []
                if names == ["run.started"]:
                    gate.set()
        assert names[-1] == "run.finished"
        http.base_url = one.url
        assert [name for _, name, _ in read_stream(http, run)] == names


def test_a_run_is_cancelled_at_another_server(tmp_path: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with two_servers(tmp_path, model) as (one, other), httpx2.Client(timeout=30) as http:
        http.base_url = one.url
        run = start_run(http)
        assert model.called.wait(20)
        http.base_url = other.url
        assert http.post(f"/api/v1/runs/{run}/cancel").json()["status"] == "cancelled"
        assert model.stopped == 1


def test_a_run_whose_server_was_killed_is_brought_to_its_end_by_another(tmp_path: Path) -> None:
    with serve_osler(tmp_path) as other, stuck_server(tmp_path) as (url, child):
        with httpx2.Client(base_url=url, timeout=30) as http:
            run = start_run(http)
            with http.stream("GET", f"/api/v1/runs/{run}/events") as reply:
                before = next(int(line[4:]) for line in reply.iter_lines() if line[:4] == "id: ")
                child.send_signal(signal.SIGKILL)
        with httpx2.Client(base_url=other.url, timeout=30) as http:
            seen = read_stream(http, run, **{"Last-Event-ID": str(before)})
            numbers = [number for number, _, _ in seen]
            assert numbers == list(range(before + 1, before + 1 + len(seen)))
            assert seen[-1][1] == "run.finished"
            assert http.get(f"/api/v1/runs/{run}").json()["status"] == "finished"


def test_a_run_that_is_taken_over_is_counted_and_booked_as_its_key_s(tmp_path: Path) -> None:
    gate = AwaitableEvent()
    asked = {"question": "What is given first?"}
    with (
        serve_osler(tmp_path, model=FixedModel(gate=gate)) as other,
        stuck_server(tmp_path) as (url, child),
    ):
        ledger = other.site.ledger
        key = new_key(ledger, "ward", scope=KeyScope(tokens=1_000))
        with httpx2.Client(timeout=30, headers={"Authorization": f"Bearer {key}"}) as http:
            assert http.post(f"{url}/api/v1/runs", json=asked).status_code == 202
            child.send_signal(signal.SIGKILL)
            assert other.model.called.wait(30)
            reply = http.post(f"{other.url}/api/v1/runs", json=asked)
            gate.set()
        assert (reply.status_code, reply.json()["code"]) == (429, "token_budget")
        other.wait_for_runs()
        (row,) = ledger.list_keys()
        assert ledger.spent_tokens(row.id, f"{datetime.now(UTC):%Y-%m-%d}") > 0


def test_a_run_that_is_given_up_ends_its_stream_with_the_reason(tmp_path: Path) -> None:
    with serve_osler(tmp_path) as other, stuck_server(tmp_path) as (url, child):
        with httpx2.Client(base_url=url, timeout=30) as http:
            run = start_run(http)
            with http.stream("GET", f"/api/v1/runs/{run}/events") as reply:
                before = next(int(line[4:]) for line in reply.iter_lines() if line[:4] == "id: ")
                with sqlite3.connect(tmp_path / "serve" / "serve.sqlite") as ledger:
                    ledger.execute("UPDATE claim SET tries = 3")
                child.send_signal(signal.SIGKILL)
        with httpx2.Client(base_url=other.url, timeout=30) as http:
            last = read_stream(http, run, **{"Last-Event-ID": str(before)})[-1]
            number, name, end = last
            assert number > before
            assert (name, end["code"]) == ("run.failed", "interrupted")
            assert "died 4 times" in end["detail"]
            for seen in (number - 1, number, 99):
                assert read_stream(http, run, **{"Last-Event-ID": str(seen)}) == [last]
            assert http.get(f"/api/v1/runs/{run}").json()["status"] == "interrupted"


def test_unfinished_runs_of_a_key_count_at_every_server(tmp_path: Path) -> None:
    gate = AwaitableEvent()
    model = FixedModel(gate=gate)
    bounds: dict[str, Any] = {"serve": {"caller_runs": 1}}
    with (
        serve_osler(tmp_path, model=model, **bounds) as one,
        serve_osler(tmp_path, **bounds) as other,
    ):
        with httpx2.Client(base_url=one.url) as http:
            start_run(http)
        with httpx2.Client(base_url=other.url) as http:
            reply = http.post("/api/v1/runs", json={"question": "What is given first?"})
            assert (reply.status_code, reply.json()["code"]) == (429, "too_many_runs")
            assert int(reply.headers["Retry-After"]) >= 1
            gate.set()


def test_replies_tell_what_is_left_of_the_caller_s_share(http: httpx2.Client) -> None:
    reply = http.get("/api/v1/sources")
    assert '"requests";q=' in reply.headers["RateLimit-Policy"]
    before = int(reply.headers["RateLimit"].split(";r=")[1].split(";")[0])
    after = http.get("/api/v1/sources").headers["RateLimit"]
    assert after.startswith(f'"requests";r={before - 1};t=')


def test_requests_at_another_server_count_within_a_second(tmp_path: Path) -> None:
    bounds: dict[str, Any] = {"serve": {"caller_minute": 20}}
    with serve_osler(tmp_path, **bounds) as one, serve_osler(tmp_path, **bounds) as other:
        with httpx2.Client(base_url=one.url) as http:
            for _ in range(15):
                assert http.get("/api/v1/sources").is_success
        with httpx2.Client(base_url=other.url) as http:
            caller = other.site.gate.local_caller()
            while caller.elsewhere < 15:
                assert http.get("/healthz").is_success
            replies = [http.get("/api/v1/sources") for _ in range(6)]
    assert [reply.status_code for reply in replies] == [200] * 5 + [429]
    assert '"requests";r=0;' in replies[4].headers["RateLimit"]


def test_room_that_is_left_is_never_below_nothing() -> None:
    caller = Caller("a", "default", runs=1, minute=1, running=3)
    caller.count_request(10.0)
    assert caller.describe_room(30.0)[1] == '"requests";r=0;t=40, "runs";r=0'


def test_callers_take_turns_at_a_free_place() -> None:
    async def enter(room: FairRoom, name: str, order: list[str]) -> None:
        async with room.hold_place(name[0], name):
            order.append(name)
            await asyncio.sleep(0)

    async def enter_all() -> tuple[list[str], list[str]]:
        room, order = FairRoom(1), list[str]()
        names = ["a1", "a2", "a3", "a4", "b1", "b2", "c1"]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(enter(room, name, order)) for name in names]
            await asyncio.sleep(0)
            waiting = room.list_waiting()
            tasks[2].cancel()
        async with room.hold_place("d"):
            assert room.list_waiting() == []
        return order, waiting

    order, waiting = asyncio.run(enter_all())
    assert waiting == ["a2", "b1", "c1", "a3", "b2", "a4"]
    assert order == ["a1", "a2", "b1", "c1", "a4", "b2"]


@pytest.mark.parametrize(
    "sections", [{"runs": {"keep": False}}, {"serve": {"launch_servers": "servers.json"}}]
)
def test_what_one_process_alone_can_do_is_refused_with_several(
    sections: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    several = {**sections, "serve": {**sections.get("serve", {}), "workers": 2}}
    with pytest.raises(BadConfig, match="workers"):
        check_workers(Settings.model_validate({"home": str(tmp_path), **several}))
    check_workers(Settings.model_validate({"home": str(tmp_path), **sections}))


def children_of(pid: int) -> set[int]:
    """The worker processes; not multiprocessing's own helper."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    told = {int(one): Path(f"/proc/{one}/cmdline").read_bytes() for one in listed}
    return {one for one, command in told.items() if b"spawn_main" in command}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
def test_a_worker_that_is_killed_is_started_again_and_a_sigterm_ends_all(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "osler", "serve", "--workers", "2", "--port", "0", "--json"]
    environment = {**os.environ, "OSLER__HOME": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(  # noqa: S603
        command, env=environment, stdout=pipe, stderr=pipe, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        url = json.loads(parent.stdout.readline())["url"]
        with httpx2.Client(base_url=url, timeout=60) as http:
            assert http.get("/healthz").status_code == 200
            before = children_of(parent.pid)
            assert len(before) == 2
            os.kill(min(before), signal.SIGKILL)
            while "ended with -9" not in parent.stderr.readline():
                pass
            assert http.get("/healthz", headers={"Connection": "close"}).status_code == 200
        parent.terminate()
        assert parent.wait(60) == 0
        assert all(not Path(f"/proc/{one}").exists() for one in before)
