"""Several workers of one server under many streams, two of which are killed in turn.

    python benchmarks/speed/workers.py [--workers N] [--streams N] [--kills N] [--chunks N]

A model that takes no time, a real search, hashed vectors; the client shares the machine, and opens
all streams at once. A client whose connection breaks opens the stream anew after the last event
that it has. Wanted: first event p95 <= 1 s; each stream has every number once and ends with
`run.finished`; each run is finished in the ledger, once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

import httpx2

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parent))

from serve import QUESTION, Forgetful, at, texts  # type: ignore[import-not-found]
from served import fill_knowledge_base, loaded_shelf, no_page, serving_settings

from osler.settings import Settings
from osler_serve.app import build_state, create_app
from osler_serve.ledger import Ledger, LedgerEntry
from osler_serve.transport import build_server, open_sockets
from osler_serve.workers import run_workers

WIDE = {"caller_minute": 1_000_000, "caller_runs": 100_000, "waiting": 10_000}


def serve_worker(settings: Settings, sock: socket, level: int) -> None:
    made = build_state(settings, no_page, shelf=loaded_shelf(settings, Forgetful()))
    build_server(create_app(made), made).run([sock])


def serve(home: Path, workers: int) -> None:
    settings = serving_settings(home, serve={**WIDE, "workers": workers})
    sock = open_sockets("127.0.0.1", 0)
    print(f"http://127.0.0.1:{sock.getsockname()[1]}", flush=True)
    run_workers(build_state(settings, no_page), sock, 30, serve_worker)


@dataclass
class Seen:
    """What one client saw of its run."""

    run: str = ""
    taken: float = 0.0
    first: float = 0.0
    whole: float = 0.0
    numbers: list[int] = field(default_factory=list)
    last: str = ""
    breaks: int = 0

    @property
    def is_whole(self) -> bool:
        counted = list(range(1, len(self.numbers) + 1))
        return self.numbers == counted and self.last == "run.finished"


async def watch(server: httpx2.URL) -> Seen:
    """Asks by plain lines: a client library takes 14 ms of processor for a stream, which would be
    half of what is measured."""
    seen, began = Seen(), time.perf_counter()
    body = json.dumps(QUESTION)
    while not seen.run:
        async for line in lines_of(server, "POST /api/v1/runs", body):
            if found := re.search(r'"run_id":"([^"]+)"', line):
                seen.run = found.group(1)
        if not seen.run:
            await asyncio.sleep(0.2)
    seen.taken = time.perf_counter() - began
    while not seen.last.startswith("run.f") and seen.breaks < 50:
        head = f"Last-Event-ID: {len(seen.numbers)}\r\n"
        async for line in lines_of(server, f"GET /api/v1/runs/{seen.run}/events", "", head):
            if line.startswith("id: "):
                seen.numbers.append(int(line[4:]))
            elif line.startswith("event: "):
                seen.first = seen.first or time.perf_counter() - began
                seen.last = line[7:]
        if not seen.last.startswith("run.f"):
            seen.breaks += 1
            await asyncio.sleep(0.2)
    seen.whole = time.perf_counter() - began
    return seen


async def lines_of(server: httpx2.URL, what: str, body: str, head: str = "") -> AsyncIterator[str]:
    """The reply's lines, sizes of chunks among them; none where the connection breaks."""
    with suppress(OSError):
        reader, writer = await asyncio.open_connection(server.host, server.port)
        with closing(writer):
            writer.write(
                f"{what} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{head}\r\n"
                f"{body}".encode()
            )
            while line := await reader.readline():
                yield line.decode().rstrip()


def workers_of(parent: int) -> list[int]:
    found = subprocess.run(  # noqa: S603
        ["/usr/bin/pgrep", "-P", str(parent), "-f", "spawn_main"],
        check=False,
        capture_output=True,
        text=True,
    )
    return [int(line) for line in found.stdout.split()]


async def kill_in_turn(home: Path, parent: int, asked: argparse.Namespace) -> int:
    """Kills a worker while half of the runs or more are unfinished, waits until there are as many
    workers as before, and kills the next."""
    done, many, chance = 0, len(workers_of(parent)), random.Random(asked.seed)
    ledger = sqlite3.connect(home / "serve" / "serve.sqlite", timeout=60)
    for kill in range(asked.kills):
        wanted = asked.streams // 2 >> kill
        while ledger.execute("SELECT count(*) FROM claim").fetchone()[0] < wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        os.kill(chance.choice(workers_of(parent)), signal.SIGKILL)
        done += 1
        while len(workers_of(parent)) < many:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return done


async def wait_until_ready(client: httpx2.AsyncClient, workers: int) -> None:
    ready = 0
    while ready < 8 * workers:  # any of them answers
        try:
            ready += (await client.get("/readyz", headers={"Connection": "close"})).is_success
        except httpx2.HTTPError:
            await asyncio.sleep(0.2)
    await asyncio.sleep(3)


async def main(asked: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        home = Path(name) / "home"
        home.mkdir()
        fill_knowledge_base(home, texts(asked.chunks))
        command = [sys.executable, __file__, "--home", str(home), "--workers", str(asked.workers)]
        parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220, S603
        assert parent.stdout
        url = parent.stdout.readline().strip()
        bounds = httpx2.Limits(max_connections=1_000, max_keepalive_connections=1_000)
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=120, limits=bounds) as client:
                await wait_until_ready(client, asked.workers)
                await asyncio.gather(*(watch(client.base_url) for _ in range(8)))
                await look(client, home, parent.pid, asked)
        finally:
            parent.terminate()
            parent.wait()


async def finished_entries(ledger: Ledger, found: list[Seen]) -> list[LedgerEntry | None]:
    """The runs' entries, of which a killed worker's are ended by another within a minute."""
    until = time.monotonic() + 60
    while True:
        entries = [ledger.find_run(one.run) for one in found]
        open_ = [one for one in entries if one is None or one.status != "finished"]
        if not open_ or time.monotonic() > until:
            print(*open_[:5], sep="\n", end="\n" * bool(open_))
            return entries
        await asyncio.sleep(0.5)


async def look(
    client: httpx2.AsyncClient, home: Path, parent: int, asked: argparse.Namespace
) -> None:
    began = time.perf_counter()
    killing = asyncio.create_task(kill_in_turn(home, parent, asked))
    found = await asyncio.gather(*(watch(client.base_url) for _ in range(asked.streams)))
    seconds = time.perf_counter() - began
    kills = await asyncio.wait_for(killing, 60)
    firsts, ledger = sorted(one.first for one in found), Ledger(home / "serve")
    taken, ends = sorted(one.taken for one in found), sorted(one.whole for one in found)
    own = resource.getrusage(resource.RUSAGE_SELF)
    entries = await finished_entries(ledger, found)
    unfinished = sum(entry is None or entry.status != "finished" for entry in entries)
    print(
        f"{asked.workers} workers, {len(found)} streams at once, {kills} kills: first event p50"
        f" {at(firsts, 0.5):.0f} ms, p95 {at(firsts, 0.95):.0f} ms; taken p95"
        f" {at(taken, 0.95):.0f} ms; last event p50 {at(ends, 0.5):.0f} ms, p95"
        f" {at(ends, 0.95):.0f} ms; all over after {seconds:.1f} s; processor of this client"
        f" {own.ru_utime + own.ru_stime:.1f} s;"
        f" connections that broke {sum(one.breaks for one in found)}; not whole"
        f" {sum(not one.is_whole for one in found)}; not finished in the ledger {unfinished}"
    )
    for one in [one for one in found if not one.is_whole][:5]:
        print(one)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--chunks", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.home is not None:
        serve(said.home, said.workers)
    else:
        asyncio.run(main(said))
