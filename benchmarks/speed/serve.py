"""What the server takes under load: loopback, a model that takes no time, a real search.

    python benchmarks/speed/serve.py [--chunks N] [--seconds S] [--soak S] [--uploads KIB]

The server is a process of its own over a knowledge base of `--chunks` passages (words and hashed
vectors, so that no encoder is in the figures); the client shares the machine. Rows: the first event
of 50 streams opened at once on a server as it is set by default (`run.queued`, where the run waits
for a place), three times; searches at 16 in flight; 200 runs worked on at once, each event stream
checked for its numbers; ten times too many runs, then how long until one is taken again; with
`--soak`, searches and runs for so long, and what the memory grew. With `--uploads`, that alone:
searches beside 50 streams, in turn without and while one key sends files of so many KiB of short
headings, eight at once, and the server encodes them, with probes of `/readyz` beside both: four
pairs of rounds, so that another program's load falls on either.

Wanted: first event p95 <= 200 ms; nothing lost; >= 100 searches/s; 429 and 503 only, recovery
within 10 s; growth <= 5 %; p95 of a search beside uploads <= twice that without, every probe 200.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from served import FixedModel, fill_knowledge_base, serve_osler

from osler.llm.core.base import Completion, Message, Sampling

WORDS = (
    "adrenaline thigh anaphylaxis warfarin amiodarone heart kidney insulin glucose fever cough"
    " lung artery vein nerve muscle fracture infection antibiotic dose weight child liver"
)
QUESTION = {"question": "Which drug is given first, into the outer thigh, at once?"}


def texts(chunks: int) -> dict[str, str]:
    rng = random.Random(0)
    pages = [
        f"# Page {n}\n\n{' '.join(rng.choices(WORDS.split(), k=40))} adrenaline {n}.\n"
        for n in range(chunks)
    ]
    return {"book": "\n".join(pages)}


class Forgetful(FixedModel):
    """The tests' model without its record of what it was asked, which would grow in a soak."""

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        self.seen.clear()
        return await super().complete(messages, sampling)


def serve(home: Path, chunks: int, limits: dict[str, Any]) -> None:
    """The child: says where it is, and serves until its input ends."""
    (home / "kb").parent.mkdir(exist_ok=True)
    with serve_osler(
        home,
        model=Forgetful(),
        fill=lambda at: fill_knowledge_base(at, texts(chunks)),
        serve=limits,
    ) as place:
        sys.stdout.write(f"{place.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


@asynccontextmanager
async def child(chunks: int, **limits: Any) -> AsyncIterator[tuple[httpx2.AsyncClient, int]]:
    """A client of a new server, and the server's process id."""
    wide = {"caller_minute": 1_000_000, "caller_runs": 100_000, "searches_waiting": 1_000, **limits}
    with tempfile.TemporaryDirectory() as home:
        words = [sys.executable, __file__, "--home", home, "--chunks", str(chunks)]
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(
            *words, "--limits", json.dumps(wide), stdin=pipe, stdout=pipe
        )
        assert program.stdout
        assert program.stdin
        url = (await program.stdout.readline()).decode().strip()
        bounds = httpx2.Limits(max_connections=500, max_keepalive_connections=500)
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=600, limits=bounds) as client:
                yield client, program.pid
        finally:
            program.stdin.close()
            await program.wait()


async def watched(client: httpx2.AsyncClient) -> tuple[float, list[int]]:
    """Seconds from the question to the first event, and the numbers of all events."""
    began = time.perf_counter()
    run = (await client.post("/api/v1/runs", json=QUESTION)).json()["run_id"]
    first, numbers, last = 0.0, [], ""
    async with client.stream("GET", f"/api/v1/runs/{run}/events") as reply:
        async for line in reply.aiter_lines():
            first = first or time.perf_counter() - began
            if line.startswith("id: "):
                numbers.append(int(line[4:]))
            elif line.startswith("event: "):
                last = line[7:]
    assert last == "run.finished", last
    return first, numbers


async def streams(client: httpx2.AsyncClient, at_once: int) -> list[float]:
    found = await asyncio.gather(*(watched(client) for _ in range(at_once)))
    lengths = Counter(len(numbers) for _, numbers in found)
    assert all(numbers == list(range(1, len(numbers) + 1)) for _, numbers in found)
    assert len(lengths) == 1, lengths
    return sorted(first for first, _ in found)


async def searching(client: httpx2.AsyncClient, seconds: float, at_once: int) -> list[float]:
    rng, taken = random.Random(1), []
    until = time.perf_counter() + seconds

    async def one() -> None:
        while (began := time.perf_counter()) < until:
            body = {"query": " ".join(rng.choices(WORDS.split(), k=3)), "k": 10}
            reply = await client.post("/api/v1/search", json=body)
            assert reply.status_code == 200, reply.text
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(one() for _ in range(at_once)))
    return sorted(taken)


async def overload(client: httpx2.AsyncClient, places: int) -> tuple[Counter[int], float]:
    """Statuses of ten times too many runs, and seconds until the next one is taken."""
    posts = (client.post("/api/v1/runs", json=QUESTION) for _ in range(10 * places))
    codes = Counter(reply.status_code for reply in await asyncio.gather(*posts))
    began = time.perf_counter()
    while (await client.post("/api/v1/runs", json=QUESTION)).status_code != 202:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    return codes, time.perf_counter() - began


def worked(pid: int) -> float:
    """Seconds of processor time that the process has had: what a busy machine does not change."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> float:
    """Megabytes that the process holds."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


async def soak(client: httpx2.AsyncClient, pid: int, seconds: float) -> list[float]:
    """Megabytes after each tenth."""
    held = []
    for _ in range(10):
        await _mixed(client, seconds / 10)
        held.append(resident(pid))
    return held


async def _mixed(client: httpx2.AsyncClient, seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        await asyncio.gather(*(watched(client) for _ in range(4)), searching(client, 0.5, 4))


def at(ordered: list[float], share: float) -> float:
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def streamed(client: httpx2.AsyncClient, pid: int, count: int) -> None:
    began, before = time.perf_counter(), worked(pid)
    firsts = await streams(client, count)
    spent = 1000 * (worked(pid) - before) / count
    print(
        f"{count:>4} runs at once: first event p50 {at(firsts, 0.5):.0f} ms,"
        f" p95 {at(firsts, 0.95):.0f} ms; all whole and in order after"
        f" {time.perf_counter() - began:.1f} s; {spent:.1f} ms of processor a run"
    )


def headings(kib: int, number: int) -> bytes:
    parts = (f"# Heading {part} of {number}\n\nText.\n\n".encode() for part in range(50 * kib))
    return b"".join(parts)[: kib * 1024]


async def send_files(client: httpx2.AsyncClient, kib: int, ended: asyncio.Event) -> Counter[int]:
    """Statuses of what one key sends, eight files at once, until the end."""
    files, codes = [headings(kib, number) for number in range(8)], Counter[int]()

    async def one(number: int) -> None:
        while not ended.is_set():
            sent = {"file": (f"file-{number}-{codes.total() % 8}.md", files[number])}
            reply = await client.post("/api/v1/uploads/ward", files=sent)
            codes[reply.status_code] += 1
            await asyncio.sleep(0.5 if reply.status_code == 429 else 0)

    await asyncio.gather(*(one(number) for number in range(8)))
    return codes


async def probed(client: httpx2.AsyncClient, seconds: float) -> tuple[list[float], float]:
    """Seconds of searches beside 50 streams, and of the longest probe of `/readyz` meanwhile."""
    searches = asyncio.create_task(searching(client, seconds, 4))

    async def ask() -> None:
        while not searches.done():
            await watched(client)

    asking = [asyncio.create_task(ask()) for _ in range(50)]
    longest = 0.0
    while not searches.done():
        began = time.perf_counter()
        assert (await client.get("/readyz")).status_code == 200
        longest = max(longest, time.perf_counter() - began)
        await asyncio.sleep(0.1)
    await asyncio.gather(*asking)
    return await searches, longest


async def uploading(chunks: int, seconds: float, kib: int) -> None:
    alone: list[float] = []
    beside: list[float] = []
    async with child(chunks, uploads=["ward"], upload_documents=5_000) as (client, _):
        await probed(client, 1)
        for _ in range(4):
            taken, calm = await probed(client, seconds)
            ended = asyncio.Event()
            sending = asyncio.create_task(send_files(client, kib, ended))
            hindered, busy = await probed(client, seconds)
            ended.set()
            codes = await sending
            alone, beside = sorted(alone + taken), sorted(beside + hindered)
            without, ours = at(sorted(taken), 0.95), at(sorted(hindered), 0.95)
            print(
                f"searches beside 50 streams: p95 {without:.0f} ms; and beside uploads of"
                f" {kib:,} KiB {ours:.0f} ms, {ours / without:.2f} times as long; longest /readyz"
                f" {calm:.2f} s and {busy:.2f} s; uploads by status {dict(codes)}",
                flush=True,
            )
    ratio = at(beside, 0.95) / at(alone, 0.95)
    print(f"all rounds: {ratio:.2f} times as long, of {len(alone)} and {len(beside)} searches")


async def main(chunks: int, seconds: float, soaking: float) -> None:
    async with child(chunks) as (client, pid):
        await streams(client, 8)
        for _ in range(3):
            await streamed(client, pid, 50)
        before = worked(pid)
        taken = await searching(client, seconds, 16)
        spent = 1000 * (worked(pid) - before) / len(taken)
        print(
            f"searches of {chunks:,} passages, 16 in flight: {len(taken) / seconds:.0f}/s,"
            f" p50 {1000 * statistics.median(taken):.0f} ms, p95 {at(taken, 0.95):.0f} ms,"
            f" p99 {at(taken, 0.99):.0f} ms; {spent:.1f} ms of processor a search"
        )
        if soaking:
            held = await soak(client, pid, soaking)
            grown = 100 * (held[-1] - held[0]) / held[0]
            tenths = ", ".join(f"{each:.0f}" for each in held)
            print(f"soak {soaking:.0f} s: MB after each tenth {tenths} ({grown:+.1f} %)")
    async with child(chunks, runs=200) as (client, pid):
        await streams(client, 8)
        await streamed(client, pid, 200)
    async with child(chunks, runs=4, waiting=16) as (client, _):
        codes, recovered = await overload(client, 20)
        print(f"10x too many runs: {dict(codes)}; one is taken after {recovered:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--soak", type=float, default=0.0)
    parser.add_argument("--uploads", type=int, default=0)
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--limits", type=json.loads, help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.home is not None:
        serve(said.home, said.chunks, said.limits)
    elif said.uploads:
        asyncio.run(uploading(said.chunks, said.seconds, said.uploads))
    else:
        asyncio.run(main(said.chunks, said.seconds, said.soak))
