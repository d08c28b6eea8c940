"""How long the CDS Hooks services take over synthetic patients, through the server's own door.

    python benchmarks/speed/cds_hooks.py [--patients 50] [--seed 26]

Wanted: at most 500 ms at the 95th percentile. One client sends one request at a time, every patient
to each service for each hook; the machine's load is printed, since seconds depend on it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx2

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from synthetic_patients import make_patients

from osler.testing.served import serve_osler


def time_requests(url: str, patients: int, seed: int) -> tuple[list[float], int]:
    """Seconds of each request, and how many cards came."""
    times, cards = [], 0
    with httpx2.Client(base_url=url, timeout=30) as client:
        services = client.get("/cds-services").json()["services"]
        for person in make_patients(patients, seed):
            for service in services:
                asked = person.request(service["hook"])
                began = time.perf_counter()
                reply = client.post(f"/cds-services/{service['id']}", json=asked)
                times.append(time.perf_counter() - began)
                cards += len(reply.raise_for_status().json()["cards"])
    return times, cards


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, default=50)
    parser.add_argument("--seed", type=int, default=26)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, serve_osler(Path(home)) as running:
        times, cards = time_requests(running.url, options.patients, options.seed)
    cuts = statistics.quantiles(times, n=100)
    print(f"{len(times)} requests, {cards} cards, load {os.getloadavg()[0]:.1f}")
    median, p95, most = (1000 * seconds for seconds in (cuts[49], cuts[94], max(times)))
    print(f"median {median:.1f} ms, p95 {p95:.1f} ms, most {most:.1f} ms")
    return int(cuts[94] > 0.5)


if __name__ == "__main__":
    raise SystemExit(main())
