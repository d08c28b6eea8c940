"""Whether the time of a 404 tells a run that is hidden from one that is not there.

    python benchmarks/hidden_runs.py [ROUNDS]

Twice: the look-up alone, in processor time, which a busy machine does not blur; and whole requests.
A server on loopback, kept-alive connections, ids drawn in turn and shuffled: absent ones, runs of
another workspace, runs over a private source, and one that the command line made. AUC is the chance
that a hidden run's reply takes longer than an absent one's: .5 tells nothing.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from scoped_server import Keyed, serve_scoped

from osler_serve.run_views import _find_visible

RUNS = 20


def hidden_ids(keyed: Keyed) -> dict[str, list[str]]:
    """Ids of each kind, all of one form."""
    found: dict[str, list[str]] = defaultdict(list)
    for kind, key, source in (("foreign", "elsewhere", "guideline"), ("private", "all", "own")):
        with keyed.client(key) as client:
            for n in range(RUNS):
                asked = {"question": f"Is adrenaline given first, {n}?", "sources": [source]}
                run = client.post("/api/v1/runs", json=asked).json()["run_id"]
                client.get(f"/api/v1/runs/{run}/events")
                found[kind].append(run)
    keyed.place.wait_for_runs()
    keyed.place.site.desk._ended.clear()  # as after a restart: from the disk
    runs = keyed.place.site.settings.runs.path
    for run in found["private"]:
        copy = f"20250102-030405-{random.randbytes(6).hex()}"
        shutil.copytree(runs / run, runs / copy)
        found["command line"].append(copy)
    chance = random.Random(0)
    found["absent"] = [run[:16] + chance.randbytes(6).hex() for run in found["foreign"]]
    return found


def measure(
    look: Callable[[str], object],
    ids: dict[str, list[str]],
    rounds: int,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    """Milliseconds of each look, by kind."""
    taken: dict[str, list[float]] = defaultdict(list)
    asked = [(kind, run) for kind, runs in ids.items() for run in runs]
    chance = random.Random(1)
    for _ in range(rounds):
        chance.shuffle(asked)
        for kind, run in asked:
            began = clock()
            seen = look(run)
            taken[kind].append((clock() - began) * 1000)
            assert seen == 404, (kind, run)
    return taken


def auc(low: list[float], high: list[float]) -> float:
    """The chance that one of `high` is greater than one of `low`."""
    ranks = np.argsort(np.argsort([*low, *high]))
    above = ranks[len(low) :].sum() - len(high) * (len(high) - 1) / 2
    return float(above / (len(low) * len(high)))


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 25
    with tempfile.TemporaryDirectory() as folder, serve_scoped(Path(folder)) as keyed:
        keyed.add_key("watcher", sources=("public",))
        ids = hidden_ids(keyed)
        caller = keyed.place.site.gate.authenticate_request(f"Bearer {keyed.keys['watcher']}")

        def find(run: str) -> int:
            _, is_open = _find_visible(keyed.place.site.desk, caller, run)
            return 200 if is_open else 404

        print("the look-up, processor time")
        report(measure(find, ids, 10 * rounds, time.thread_time))
        with keyed.client("watcher") as client:
            print("a request")
            report(
                measure(
                    lambda run: client.get(f"/api/v1/runs/{run}").status_code,
                    ids,
                    rounds,
                    time.perf_counter,
                )
            )


def report(taken: dict[str, list[float]]) -> None:
    absent = taken["absent"]
    print(f"absent, odd against even: AUC {auc(absent[::2], absent[1::2]):.3f}")
    for kind, times in taken.items():
        shown = f"median {median(times):.4f} ms, p95 {np.percentile(times, 95):.4f} ms"
        print(f"{kind:<13} n {len(times)}, {shown}, AUC {auc(absent, times):.3f}")


if __name__ == "__main__":
    main()
