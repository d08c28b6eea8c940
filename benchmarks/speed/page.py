"""What a reader waits for: `osler serve` ready, the page's first paint, and an answer with its
evidence after Enter, on loopback.

    python benchmarks/speed/page.py [--home HOME] [--times N]

The server is the real one over the sample knowledge base (built first, in a folder of its own or in
`--home`); ready means that `/readyz` says so. The page is opened in a new window of a Chromium that
runs already, each time with an empty cache; the first question, which loads models, is not counted.
Wanted: ready within 3 s, first paint within .3 s, the first evidence within .8 s, the answer within
1.5 s.
Needs the built page (`make page`), playwright and a Chromium.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from browsing import launch_browser, wait_for_script

from osler_serve import page

QUESTIONS = itertools.cycle(
    f"How is {one} treated?" for one in ("gout", "croup", "malaria", "asthma", "anaphylaxis")
)
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@contextmanager
def ready(home: Path) -> Iterator[tuple[str, float, float]]:
    """A server of its own process: its address, the seconds until it was ready, and how many of
    them it had the processor, which a busy machine does not change."""
    command = [sys.executable, "-m", "osler", "serve", "--port", "0", "--json", "--quiet"]
    environment = {**os.environ, "OSLER__HOME": str(home)}
    began = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as server:  # noqa: S603
        assert server.stdout
        try:
            url = str(json.loads(server.stdout.readline())["url"])
            answered(url)
            yield url, time.perf_counter() - began, worked(server.pid)
        finally:
            server.terminate()


def worked(pid: int) -> float:
    """Seconds of processor time that the process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def answered(url: str) -> None:
    while True:
        try:
            if httpx2.get(f"{url}/readyz", timeout=5).status_code == 200:
                return
        except httpx2.TransportError:
            time.sleep(0.01)


def painted(launched: Any, url: str) -> float:
    """Milliseconds from the request for the page to its first content."""
    context = launched.new_context()
    page = context.new_page()
    page.goto(url)
    wait_for_script(page, f"{PAINT} !== undefined")
    found = float(page.evaluate(PAINT))
    context.close()
    return found


def asked(launched: Any, url: str, question: str) -> tuple[float, float]:
    """Seconds from Enter to the first passage on the screen, and to the answer."""
    context = launched.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(url)
    page.get_by_label("A medical question").fill(question)
    began = time.perf_counter()
    page.keyboard.press("Enter")
    page.locator(".first article, .card").first.wait_for()
    first = time.perf_counter() - began
    page.locator(".card").first.wait_for()
    seconds = time.perf_counter() - began
    context.close()
    return first, seconds


def main(home: Path, times: int) -> None:
    if not (home / "kb").exists():
        environment = {**os.environ, "OSLER__HOME": str(home)}
        command = [sys.executable, "-m", "osler", "kb", "build", "--sample"]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603
    starts, spent = [], []
    for _ in range(times):
        with ready(home) as (_, seconds, processor):
            starts.append(seconds)
            spent.append(processor)
    with ready(home) as (url, _, _), launch_browser() as launched:
        paints = sorted(painted(launched, url) for _ in range(times))
        waits = [asked(launched, url, one) for one in itertools.islice(QUESTIONS, times + 1)][1:]
    firsts, answers = zip(*waits, strict=True)
    scripts = [data for name, data in page.read_files().items() if name.endswith(".js")]
    zipped = sum(len(gzip.compress(data)) for data in scripts)
    print(
        f"ready: median {statistics.median(starts):.2f} s, worst {max(starts):.2f} s;"
        f" {statistics.median(spent):.2f} s of processor"
    )
    print(f"first paint: median {statistics.median(paints):.0f} ms, worst {paints[-1]:.0f} ms")
    for name, took in ("first evidence", firsts), ("answer", answers):
        print(
            f"{name} after Enter: median {statistics.median(took):.2f} s, worst {max(took):.2f} s"
        )
    print(f"JavaScript: {zipped / 1000:.1f} kB gzip, {sum(map(len, scripts)) / 1000:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--times", type=int, default=5)
    said = parser.parse_args()
    if said.home is not None:
        main(said.home, said.times)
    else:
        with tempfile.TemporaryDirectory() as made:
            main(Path(made), said.times)
