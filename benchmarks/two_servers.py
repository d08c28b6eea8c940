"""Kills two servers of one home in turn while questions, uploads and deletions are in flight.

    python benchmarks/two_servers.py [--kills N] [--seed N]

Each server is a process with its uploads' process below it; both are killed (SIGKILL) at a random
moment and started again. What a client was told is done must be there at the end, and once: each
run that ended, in the ledger and in its folder; each file that was taken, found by its word in one
document, and none that was deleted. No run is left open, the ledger and the knowledge base are
whole, and the audit log verifies.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from served import fill_knowledge_base, start_run

from osler.kb.base import KnowledgeBase
from osler.kb.upkeep import _build_where_needed
from osler.settings import Settings
from osler_lab.testing.scripted import HashingEncoder
from osler_serve.ledger import Ledger
from osler_serve.ops.audit_proofs import verify_audit

SERVER = """
import json, sys
from pathlib import Path
from served import serve_osler
with serve_osler(Path(sys.argv[1]), **json.loads(sys.argv[2])) as place:
    print(place.url, flush=True)
    sys.stdin.read()
"""
WARD = "/api/v1/uploads/ward"


@dataclass
class Told:
    """What clients were told is done."""

    runs: set[str] = field(default_factory=set)
    files: dict[str, bool] = field(default_factory=dict)
    """By name: there, or deleted. One of which nobody knows is in neither."""
    statuses: Counter[str] = field(default_factory=Counter)


class Server:
    def __init__(self, home: Path, sections: dict[str, object]) -> None:
        self.command = [sys.executable, "-c", SERVER, str(home), json.dumps(sections)]
        self.start()

    def start(self) -> None:
        self.child = subprocess.Popen(  # noqa: S603
            self.command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.child.stdout is not None
        self.url = self.child.stdout.readline().strip()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()


def ask(servers: list[Server], told: Told, chance: random.Random, over: threading.Event) -> None:
    while not over.is_set():
        with suppress(httpx2.HTTPError, AssertionError), httpx2.Client(timeout=20) as http:
            http.base_url = chance.choice(servers).url
            run = start_run(http)
            with http.stream("GET", f"/api/v1/runs/{run}/events") as reply:
                reply.read()
            told.statuses["streams"] += 1
            if http.get(f"/api/v1/runs/{run}").json().get("status") == "finished":
                told.runs.add(run)


def send(servers: list[Server], told: Told, chance: random.Random, over: threading.Event) -> None:
    """Files of words of their own; every third is deleted again."""
    number = 0
    while not over.is_set():
        number += 1
        name = f"word{chance.randrange(10**9)}.txt"
        text = f"The {name[:-4]} plan is green. It holds today."
        with suppress(httpx2.HTTPError), httpx2.Client(timeout=60) as http:
            http.base_url = chance.choice(servers).url
            reply = http.post(WARD, files={"file": (name, text.encode())})
            told.statuses[f"upload {reply.status_code}"] += 1
            if reply.status_code not in (200, 201):
                continue
            told.files[name] = True
            if number % 3 == 0:
                http.base_url = chance.choice(servers).url
                told.files.pop(name)
                reply = http.delete(f"{WARD}/{name}")
                told.statuses[f"delete {reply.status_code}"] += 1
                if reply.status_code in (200, 204):
                    told.files[name] = False


def look(home: Path, settings: Settings, told: Told) -> list[str]:
    problems = []
    with KnowledgeBase.open(home / "kb") as kb:
        _build_where_needed(kb, HashingEncoder())
        kb.update(source="ward", prune=True)
        _build_where_needed(kb, HashingEncoder())
        problems += kb.verify()
        texts = [one.text for document in kb.read_documents("ward") for one in document]
    for name, there in told.files.items():
        count = sum(f"The {name[:-4]} plan" in text for text in texts)
        if count != there:
            problems.append(f"{name}: found {count} times, told {there}")
    ledger = Ledger(home / "serve")
    with ledger.hold_open(lambda run: (settings.runs.path / run / "run.json").is_file()):
        for run in told.runs:
            entry = ledger.find_run(run)
            if entry is None or entry.status != "finished":
                problems.append(f"{run}: {entry and entry.status}")
            if not (settings.runs.path / run / "run.json").is_file():
                problems.append(f"{run}: no folder")
    ledger.close()
    with closing(sqlite3.connect(home / "serve" / "serve.sqlite")) as db:
        problems += [line for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
        left = db.execute("SELECT count(*) FROM run WHERE status IN ('queued','running')")
        if number := left.fetchone()[0]:
            problems.append(f"{number} runs are open")
    problems += verify_audit(settings).problems
    return problems


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    asked = parser.parse_args()
    chance, told, over = random.Random(asked.seed), Told(), threading.Event()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        home = Path(name) / "home"
        home.mkdir()
        fill_knowledge_base(home)
        audit = {"log": "require", "anchor": str(home / "anchor")}
        sections: dict[str, object] = {"audit": audit, "serve": {"uploads": ["ward"]}}
        servers = [Server(home, sections) for _ in range(2)]
        work = [ask, ask, send, send]
        threads = [
            threading.Thread(target=one, args=(servers, told, random.Random(n), over))
            for n, one in enumerate(work)
        ]
        for thread in threads:
            thread.start()
        began, kills = time.monotonic(), 0
        while kills < asked.kills and time.monotonic() - began < asked.seconds:
            time.sleep(chance.uniform(0.5, 5))
            server = chance.choice(servers)
            server.kill()
            kills += 1
            server.start()
        over.set()
        for thread in threads:
            thread.join()
        for server in servers:
            server.kill()
        settings = Settings.model_validate({"home": str(home), "audit": audit})
        problems = look(home, settings, told)
        print(
            f"{kills} kills, {len(told.runs)} runs and {len(told.files)} files told,"
            f" {dict(told.statuses)}, {len(problems)} problems"
        )
        print("\n".join(problems[:20]))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
