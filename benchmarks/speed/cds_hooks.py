"""How long the CDS Hooks services take over synthetic patients, through the server's own door.

    python benchmarks/speed/cds_hooks.py [--patients 50] [--seed 26] [--client PYTHON]

Wanted: at most 500 ms at the 95th percentile. One client sends one request at a time, every patient
to each service for each hook, and the labelled cases; the machine's load is printed, since seconds
depend on it. `--client`: HealthChain's sandbox sends them (see `cds_hooks_client.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from served import serve_osler
from synthetic_patients import make_patients, read_labelled_cases

from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

Sent = list[tuple[str, float, list[dict[str, Any]], str]]
"""File, milliseconds, cards, and what was wrong with them."""


def write_requests(folder: Path, url: str, patients: int, seed: int) -> dict[str, list[str]]:
    """A file for each request, SERVICE@NAME.json; the right warnings of those that are labelled."""
    services = httpx2.get(f"{url}/cds-services").json()["services"]
    for person in make_patients(patients, seed):
        for service in services:
            asked = json.dumps(person.request(service["hook"]))
            (folder / f"{service['id']}@{person.id}.json").write_text(asked, encoding="utf-8")
    right = {}
    for n, (check, person, warnings) in enumerate(read_labelled_cases()):
        name = f"{check}-order-sign@case-{n}.json"
        (folder / name).write_text(json.dumps(person.request("order-sign")), encoding="utf-8")
        right[name] = warnings
    return right


def send_requests(url: str, folder: Path) -> Sent:
    sent: Sent = []
    with httpx2.Client(base_url=url, timeout=30) as client:
        for file in sorted(folder.glob("*.json")):
            asked = json.loads(file.read_text(encoding="utf-8"))
            began = time.perf_counter()
            reply = client.post(f"/cds-services/{file.name.partition('@')[0]}", json=asked)
            spent = 1000 * (time.perf_counter() - began)
            problem = "" if reply.is_success else reply.text
            sent.append((file.name, spent, reply.json().get("cards", []), problem))
    return sent


def send_with(python: str, url: str, folder: Path) -> Sent:
    script = Path(__file__).with_name("cds_hooks_client.py")
    command = [python, str(script), url, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)  # noqa: S603
    return [tuple(row) for row in json.loads(done.stdout)]


def fill_base(home: Path) -> None:
    """With the texts that the rules quote, so that cards have links."""
    kb = KnowledgeBase.create(home / "kb")
    with kb:
        for source in ("book", "guideline"):
            for text in (files("osler.sample") / source).iterdir():
                (home / text.name).write_text(text.read_text(encoding="utf-8"), encoding="utf-8")
                kb.add([home / text.name], source=source, licence="Apache-2.0")
        kb.build(HashingEncoder())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patients", type=int, default=50)
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--client", metavar="PYTHON", help="that HealthChain is installed for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as given:
        home, folder = Path(given, "home"), Path(given, "requests")
        home.mkdir()
        folder.mkdir()
        with serve_osler(home, fill=fill_base) as running:
            right = write_requests(folder, running.url, options.patients, options.seed)
            if options.client:
                sent = send_with(options.client, running.url, folder)
            else:
                sent = send_requests(running.url, folder)
    return report(sent, right)


def report(sent: Sent, right: dict[str, list[str]]) -> int:
    cards = {name: found for name, _, found, _ in sent}
    wrong = [f"{name}: {problem}" for name, _, _, problem in sent if problem]
    missed = [
        name
        for name, warnings in right.items()
        if [one["summary"] for one in cards[name] if one["indicator"] == "warning"] != warnings
    ]
    cuts = statistics.quantiles([spent for _, spent, _, _ in sent], n=100)
    linked = sum(bool(one.get("links")) for found in cards.values() for one in found)
    print(f"{len(sent)} requests, load {os.getloadavg()[0]:.1f}; refused or invalid: {len(wrong)}")
    print(f"{sum(map(len, cards.values()))} cards, {linked} with a link to their passage")
    print(f"labelled cases: {len(right) - len(missed)} of {len(right)} right")
    most = max(spent for _, spent, _, _ in sent)
    print(f"median {cuts[49]:.1f} ms, p95 {cuts[94]:.1f} ms, most {most:.1f} ms")
    for problem in [*wrong, *missed][:5]:
        print(problem)
    return int(bool(wrong or missed or cuts[94] > 500))


if __name__ == "__main__":
    raise SystemExit(main())
