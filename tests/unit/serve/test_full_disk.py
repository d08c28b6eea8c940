"""A server whose disk is full or broken: no answer is lost in silence, no place in the queue, and
it goes on as soon as the disk does."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from scoped_server import call_tool

from osler.serve.ledger import Ledger, LedgerEntry
from osler.testing.faults import FAULTS, FaultDial
from osler.testing.served import fill_knowledge_base, read_stream, start_run

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
SERVER = """
import sys
from pathlib import Path
from osler.testing.served import FixedModel, serve_osler
from osler.testing.waiting import AwaitableEvent
gate = AwaitableEvent()
with serve_osler(
    Path(sys.argv[1]), model=FixedModel(gate=gate), serve={"runs": 2, "waiting": 2}
) as place:
    print(place.url, flush=True)
    for line in sys.stdin:
        gate.set() if line.strip() == "go" else gate.clear()
        print("done", flush=True)
"""
CRY = "I want to kill myself"


@dataclass
class Trial:
    dial: FaultDial
    child: subprocess.Popen[str]
    http: httpx2.Client

    def let_model_answer(self, word: str = "go") -> None:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(f"{word}\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "done\n"

    def statuses(self, runs: Sequence[str]) -> list[str]:
        listed = self.http.get("/api/v1/runs").json()["runs"]
        known = {run["run_id"]: run["status"] for run in listed}
        return [known[run] for run in runs]

    def count(self, series: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(series))


@contextmanager
def trial(home: Path, dial: FaultDial) -> Iterator[Trial]:
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SERVER, str(home)],
        env=dial.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        url = child.stdout.readline().strip()
        with httpx2.Client(base_url=url, timeout=20) as http:
            yield Trial(dial, child, http)
        child.stdin.close()
    assert child.returncode == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served") / "home"
    made.mkdir()
    fill_knowledge_base(made)
    return made


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Trial]:
    with trial(home, FaultDial(home.with_name("dial"), home)) as made:
        yield made


@pytest.fixture
def served(server: Trial) -> Trial:
    """Its disk works, and its model is silent."""
    server.dial.turn_off()
    server.let_model_answer("hold")
    return server


@pytest.mark.parametrize("kind", ["full", "broken"])
def test_runs_on_a_failing_disk_fail_with_the_reason_and_give_their_places_back(
    served: Trial, kind: str
) -> None:
    http, reason = served.http, {"full": "No space", "broken": "Input/output error"}[kind]
    failed = 'osler_runs_total{status="failed",strategy="rag"}'
    refusals = 'osler_http_requests_total{route="/api/v1/runs",status="503"}'
    before = served.count(failed), served.count(refusals)
    begun = [start_run(http) for _ in range(4)]
    served.dial.turn_on(FAULTS[kind])
    served.let_model_answer()
    ends = [read_stream(http, run)[-1] for run in begun]
    assert [(name, reason in said["detail"]) for _, name, said in ends] == [
        ("run.failed", True)
    ] * 4
    assert set(served.statuses(begun)) == {"failed"}
    assert http.get(f"/api/v1/runs/{begun[0]}").json()["answer"] is None

    ready = http.get("/readyz")
    assert (ready.status_code, ready.json()["code"]) == (503, "storage_failed")
    refused = http.post("/api/v1/runs", json={"question": CRY})
    assert (refused.status_code, refused.json()["code"]) == (503, "storage_failed")
    assert refused.json()["danger"]["kinds"] == ["self-harm"]
    assert "Retry-After" in refused.headers
    assert (served.count(failed), served.count(refusals)) == (before[0] + 4, before[1] + 1)

    served.dial.turn_off()
    assert http.get("/readyz").status_code == 200
    after = start_run(http)
    assert read_stream(http, after)[-1][1] == "run.finished"
    assert served.statuses([*begun, after]) == ["failed"] * 4 + ["finished"]


ASKED = "What is first?"
DOORS: dict[str, Callable[[httpx2.Client], tuple[bool, str]]] = {
    "runs": lambda http: _post(http, "/api/v1/runs", question=ASKED),
    "chat": lambda http: _post(
        http,
        "/v1/chat/completions",
        model="osler/rag",
        messages=[{"role": "user", "content": ASKED}],
    ),
    "responses": lambda http: _post(http, "/v1/responses", model="osler/rag", input=ASKED),
    "mcp": lambda http: _call(http, "answer_question", question=ASKED),
}


def _post(http: httpx2.Client, path: str, **body: object) -> tuple[bool, str]:
    reply = http.post(path, json=body)
    return reply.is_success, reply.text


def _call(http: httpx2.Client, tool: str, **arguments: object) -> tuple[bool, str]:
    failed, said = call_tool(http, tool, **arguments)
    return not failed, said


@pytest.mark.parametrize("door", DOORS)
def test_each_door_says_why_and_takes_new_work_within_five_seconds_of_room(
    served: Trial, door: str
) -> None:
    served.let_model_answer()
    served.dial.turn_on(FAULTS["full"])
    for _ in range(4):  # as many as there are places
        taken, said = DOORS[door](served.http)
        assert not taken
        assert re.search("No space|disk is full", said), said
    served.dial.turn_off()
    began = time.monotonic()
    taken, said = DOORS[door](served.http)
    assert taken, said
    assert time.monotonic() - began < 5


def test_what_ended_on_a_full_disk_is_in_the_ledger_once_there_is_room(
    served: Trial, home: Path
) -> None:
    run = start_run(served.http)
    served.dial.turn_on(FAULTS["full"])
    served.let_model_answer()
    read_stream(served.http, run)
    served.dial.turn_off()
    start_run(served.http)
    ledger = Ledger(home / "serve")
    kept = ledger.find_run(run)
    ledger.close()
    assert kept is not None
    assert (kept.status, "No space" in kept.detail) == ("failed", True)


def entry(id: str) -> LedgerEntry:
    return LedgerEntry(id, "default", "", "2026-01-02", "running", "rag", "?")


def test_a_second_server_on_a_home_leaves_the_runs_of_the_first_alone(tmp_path: Path) -> None:
    first, second = Ledger(tmp_path), Ledger(tmp_path)
    with first.hold_open(lambda _: False):
        first.begin_run(entry("a"))
        with second.hold_open(lambda _: False) as left:
            assert left == 0
    found = second.find_run("a")
    assert found is not None
    assert found.status == "running"
    second.close()
    first.close()


def test_a_run_that_was_kept_before_the_server_died_is_finished(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for id in ("kept", "lost"):
        ledger.begin_run(entry(id))
    with ledger.hold_open(lambda id: id == "kept") as left:
        assert left == 1
    status = {run.id: run.status for run in ledger.list_runs("default", before="", limit=5)}
    ledger.close()
    assert status == {"kept": "finished", "lost": "interrupted"}
