"""A server whose disk is full or broken: no answer is lost unnoticed, no place in the queue, and
it goes on as soon as the disk does."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Semaphore
from typing import IO, Any

import httpx2
import pytest
from disk_faults import FAULTS, FaultDial
from loopback import PostReply, PostRequest, serve_posts
from loopback_servers import chat_reply
from scoped_server import call_tool
from served import fill_knowledge_base, read_stream, start_run
from synthetic_patients import make_patients

from osler_serve.ledger import Ledger, LedgerEntry

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
SERVER = """
import json
import sys
from pathlib import Path
from served import FixedModel, serve_osler
from waiting import AwaitableEvent
gate = AwaitableEvent()
with serve_osler(
    Path(sys.argv[1]),
    model=FixedModel(gate=gate),
    serve={"runs": 2, "waiting": 2},
    **json.loads(sys.argv[2]),
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
        known = {run["run_id"]: run["status"] for run in self.list_runs()}
        return [known[run] for run in runs]

    def list_runs(self) -> list[dict[str, str]]:
        """All of them: runs of one second stand in any order, so that the first page may lack one
        that has just begun."""
        runs: list[dict[str, str]] = self.http.get("/api/v1/runs?limit=100").json()["runs"]
        return runs

    def count(self, series: str) -> float:
        lines = self.http.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(series))


@contextmanager
def trial(home: Path, dial: FaultDial, **sections: Any) -> Iterator[Trial]:
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SERVER, str(home), json.dumps(sections)],
        env={**dial.environment(), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        url = child.stdout.readline().strip()
        with httpx2.Client(base_url=url, timeout=60) as http:
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


REASONS = {
    "full": "No space",
    "inodes": "No space",
    "read-only": "Read-only file system",
    "broken": "Input/output error",
}


@pytest.mark.parametrize("kind", REASONS)
def test_runs_on_a_failing_disk_fail_with_the_reason_and_give_their_places_back(
    served: Trial, kind: str
) -> None:
    http, reason = served.http, REASONS[kind]
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
CHAT = {"model": "osler/rag", "messages": [{"role": "user", "content": ASKED}]}


def post(http: httpx2.Client, path: str, body: Any) -> tuple[bool, str]:
    reply = http.post(path, json=body)
    failed = re.search(r'"error": ?{', reply.text)  # a stream begins with 200
    return reply.is_success and not failed, reply.text


def follow_run(http: httpx2.Client, path: str = "/api/v1/runs") -> tuple[bool, str]:
    """As the page does: it starts a run and reads its events to the end."""
    begun = http.post(path, json={"question": ASKED})
    if not begun.is_success:
        return False, begun.text
    _, name, said = read_stream(http, begun.json()["run_id"])[-1]
    return name == "run.finished", json.dumps(said)


def call_answer(http: httpx2.Client) -> tuple[bool, str]:
    failed, said = call_tool(http, "answer_question", question=ASKED)
    return not failed and r"\"status\": \"finished\"" in said, said


DOORS: dict[str, Callable[[httpx2.Client], tuple[bool, str]]] = {
    "page": follow_run,
    "chat": lambda http: post(http, "/v1/chat/completions", CHAT),
    "chat-stream": lambda http: post(http, "/v1/chat/completions", {**CHAT, "stream": True}),
    "mcp": call_answer,
}
FULL = "No space|disk is full"


@pytest.mark.parametrize("door", DOORS)
def test_four_runs_of_each_door_fail_with_the_reason_and_new_work_is_taken_within_five_seconds(
    served: Trial, door: str
) -> None:
    knock = DOORS[door]

    def under_way() -> list[str]:
        runs = served.list_runs()
        return [run["run_id"] for run in runs if run["status"] in ("queued", "running")]

    with ThreadPoolExecutor(4) as callers:  # as many as there are places
        calls = [callers.submit(knock, served.http) for _ in range(4)]
        while len(begun := under_way()) < 4:
            assert not any(call.done() for call in calls), calls
        served.dial.turn_on(FAULTS["full"])
        served.let_model_answer()
        ends = [call.result() for call in calls]
    assert [taken for taken, _ in ends] == [False] * 4, ends
    assert all(re.search(FULL, said) for _, said in ends), ends
    taken, said = knock(served.http)
    assert (taken, bool(re.search(FULL, said))) == (False, True), said
    served.dial.turn_off()
    began = time.monotonic()
    taken, said = knock(served.http)
    assert taken, said
    assert time.monotonic() - began < 5
    assert set(served.statuses(begun)) == {"failed"}


ASKER = """
import os, sys
from osler.cli import main
def ask(out, of=""):
    sys.stdout = sys.stderr = os.fdopen(os.dup(out), "w")
    sys.argv = ["osler", "ask", "What is first?" + of, "--strategy", "direct"]
    try:
        main()
    except SystemExit as end:
        return end.code or 0
answers = os.fdopen(os.dup(1), "w")
ask(os.open(os.devnull, os.O_WRONLY))  # here, so that no child has to import anything
sys.stdout.flush()
print("ready", file=answers, flush=True)
for line in sys.stdin:
    children = []
    for number in range(int(line)):
        heard, tell = os.pipe()
        if not (child := os.fork()):
            code = ask(tell, f" {line.strip()} {number}")
            sys.stdout.flush()
            os._exit(code)
        os.close(tell)
        children.append((child, heard))
    for child, heard in children:
        reported = open(heard).read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(repr((code, reported)), file=answers, flush=True)
"""


def test_four_questions_of_the_command_line_fail_with_the_reason_and_the_next_is_answered(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    dial, gate, waiting = FaultDial(tmp_path / "dial", home), Event(), Semaphore(0)

    def answer(asked: PostRequest) -> PostReply:
        if ASKED in json.dumps(asked.body):
            waiting.release()
            gate.wait(60)
        return PostReply(chat_reply("Adrenaline is given first."))

    with serve_posts(answer) as model:
        chosen = {"HOME": home, "MODEL__KIND": "openai", "MODEL__URL": model.url}
        more = {**chosen, "MODEL__NAME": "m", "MODEL__WRITES": "yes"}
        environment = {f"OSLER__{name}": str(value) for name, value in more.items()}
        with subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", ASKER],
            env={**dial.environment(), **environment, "COLUMNS": "300"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        ) as child:
            words, said_so = child.stdin, child.stdout
            assert words is not None
            assert said_so is not None

            def ask(times: int, words: IO[str] = words) -> None:
                words.write(f"{times}\n")
                words.flush()

            def ends(times: int, said_so: IO[str] = said_so) -> list[tuple[int, str]]:
                return [ast.literal_eval(said_so.readline()) for _ in range(times)]

            gate.set()
            assert said_so.readline() == "ready\n"
            assert waiting.acquire(timeout=0), "the first question, which imports all"
            gate.clear()
            ask(4)
            assert all(waiting.acquire(timeout=60) for _ in range(4))
            dial.turn_on(FAULTS["full"])
            gate.set()
            failed = ends(4)
            assert all(code != 0 and re.search(FULL, said) for code, said in failed), failed
            assert not any("Traceback" in said for _, said in failed)
            dial.turn_off()
            ask(1)
            (code, said) = ends(1)[0]
            assert (code, "Adrenaline is given first" in said) == (0, True), said
            words.close()


def test_doors_that_only_leave_a_record_refuse_until_there_is_room_for_it(tmp_path: Path) -> None:
    pytest.importorskip("cryptography", reason='not installed: pip install "osler[audit]"')
    home = tmp_path / "home"
    home.mkdir()
    dial = FaultDial(tmp_path / "dial", home)
    asked = make_patients(1, seed=26)[0].request("order-sign")
    with trial(home, dial, audit={"log": "require"}) as served:

        def prescribe() -> httpx2.Response:
            return served.http.post("/cds-services/interactions-order-sign", json=asked)

        assert prescribe().status_code == 200
        dial.turn_on(FAULTS["full"])
        refused = [prescribe() for _ in range(4)]
        assert [reply.status_code for reply in refused] == [503] * 4
        assert all("not_on_record" in reply.text for reply in refused), refused[0].text
        dial.turn_off()
        began = time.monotonic()
        assert prescribe().status_code == 200
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
        first.begin_runs([(entry("a"), None)])
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
        ledger.begin_runs([(entry(id), None)])
    with ledger.hold_open(lambda id: id == "kept") as left:
        assert left == 1
    status = {run.id: run.status for run in ledger.list_runs("default", before="", limit=5)}
    ledger.close()
    assert status == {"kept": "finished", "lost": "interrupted"}
