"""Pictures of every state of the page: English and Chinese, desktop and phone, light and dark.

    python benchmarks/screenshots.py [FOLDER] [--home HOME] [--only PART ...] [--quick]

A real `osler serve` with the packaged model over the sample knowledge base: nothing on the pictures
is made up. Runs are made with three strategies, and a small evaluation of the sample questions;
with `--home` they are kept there and made only once. Needs the built page (`make page`), playwright
and a Chromium. `--only` takes pictures whose names have these parts ("zh", "phone", "dark",
"thread"), so that the whole can be made in pieces; `--quick` is light pictures of a desktop.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars"]
QUESTIONS = {
    "en": "A patient who takes warfarin is started on amiodarone. What happens to the INR?",
    "zh": "长期服用华法林的患者加用胺碘酮后，INR会怎样变化？",
}
STRATEGIES = ("tc-rag", "rag", "kag-thinker")
LIMITS = {"seconds": 90.0}
"""A run that takes longer ends with what it has."""
FOLLOW_UPS = {"en": "And in liver disease?", "zh": "肝病患者呢？"}
CRIES = {"en": "I have crushing chest pain and cannot breathe", "zh": "我胸口剧痛，喘不上气"}
UNKNOWN = {"en": "What does zorblaxine do in gout?", "zh": "佐布拉辛对痛风有什么作用？"}
"""Nothing in the base answers it."""
WARD = {
    "en": b"The ward keeps vitamin K in the second drawer. It is checked on Mondays.",
    "zh": "病房的维生素K放在第二个抽屉。每周一检查。".encode(),
}
"""What is sent into a source of its own."""
SEARCH = {"en": "warfarin amiodarone INR", "zh": "华法林 胺碘酮"}
CONCEPT = "Atrial fibrillation"
EVALUATED = 8
PATIENCE = 300_000
"""Milliseconds for a plan by the packaged model on a busy machine."""
WIDTHS = {"desktop": (1440, 900), "phone": (390, 844)}
THEMES = ("light", "dark")


def osler(home: Path, *words: str) -> None:
    command = [sys.executable, "-m", "osler", *words]
    environment = {**os.environ, "OSLER__HOME": str(home)}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603


def build_texts(home: Path) -> None:
    """The sample knowledge base and its graph, where they are not there."""
    if not (home / "kb").exists():
        osler(home, "kb", "build", "--sample")
    if not (home / "kb" / "graph.sqlite").exists():
        with as_file(files("osler.sample").joinpath("graph")) as folder:
            osler(home, "kb", "graph", "add", *map(str, sorted(folder.glob("*.obo"))))


def prepared(home: Path) -> None:
    """The sample texts, and an evaluation of some sample questions."""
    build_texts(home)
    if (home / "eval" / "sample").exists():
        return
    rows = []
    text = files("osler.sample").joinpath("questions_en.jsonl").read_text(encoding="utf-8")
    for one in map(json.loads, text.splitlines()):
        if one["kind"] == "choice":
            told = {"question": one["question"], "options": one["options"]}
            answer = one["options"][one["answer"]]
            rows.append({**told, "answer": answer, "answer_idx": one["answer"]})
    data = home / "sample.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    tried = ["--tasks", f"medqa-us={data}", "--strategies", "direct,rag", "--limit", str(EVALUATED)]
    osler(home, "eval", "run", *tried, "--log-dir", str(home / "eval" / "sample"))


@contextmanager
def served(home: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "osler", "serve", "--port", "0", "--json", "--quiet"]
    environment = {**os.environ, "OSLER__HOME": str(home), "OSLER__SERVE__UPLOADS": "ward"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as server:  # noqa: S603
        assert server.stdout
        try:
            yield str(json.loads(server.stdout.readline())["url"])
        finally:
            server.terminate()


def runs(url: str, language: str) -> dict[str, str]:
    """A finished run of each strategy, by strategy."""
    with httpx2.Client(base_url=url, timeout=600) as client:
        known = {}
        for one in client.get("/api/v1/runs", params={"limit": 100}).json()["runs"]:
            if one["question"] == QUESTIONS[language] and one["status"] == "finished":
                known[one["strategy"]] = one["run_id"]
        for strategy in STRATEGIES:
            if strategy not in known:
                body = {"question": QUESTIONS[language], "strategy": strategy, "limits": LIMITS}
                started = client.post("/api/v1/runs", json=body).json()
                client.get(started["events"])  # to its end
                known[strategy] = started["run_id"]
        return known


def thread(url: str, language: str, run: str) -> str:
    """A thread of two turns that goes on from the run."""
    with httpx2.Client(base_url=url, timeout=600) as client:
        for one in client.get("/api/v1/threads").json()["threads"]:
            if one["turns"] and one["turns"][0]["question"] == QUESTIONS[language]:
                return str(one["thread_id"])
        made = client.post("/api/v1/threads", json={"run_id": run}).json()["thread_id"]
        body = {"question": FOLLOW_UPS[language], "strategy": "rag", "limits": LIMITS}
        turn = client.post(f"/api/v1/threads/{made}/turns", json=body).json()
        client.get(turn["events"])
        return str(made)


def asked(url: str, question: str, *, wait: bool = True) -> str:
    """A run; with `wait`, one that is over."""
    with httpx2.Client(base_url=url, timeout=600) as client:
        body = {"question": question, "strategy": "rag" if wait else "tc-rag", "limits": LIMITS}
        started = client.post("/api/v1/runs", json=body).json()
        if wait:
            client.get(started["events"])
        return str(started["run_id"])


def passage(url: str, language: str) -> str:
    with httpx2.Client(base_url=url, timeout=60) as client:
        hits = client.post("/api/v1/search", json={"query": SEARCH[language], "k": 1}).json()
        return str(hits["hits"][0]["passage"]["id"])


def concept(url: str) -> str:
    with httpx2.Client(base_url=url, timeout=60) as client:
        found = client.get("/api/v1/graph/concepts", params={"term": CONCEPT}).json()["concepts"]
        return str(found[0]["id"]) if found else ""


@dataclass(frozen=True)
class PageState:
    """A state of the page: where it is, what is seen once it is there, what is done there first."""

    name: str
    address: str
    there: str
    act: Callable[[Any], None] = lambda page: None


def open_machinery(page: Any) -> None:
    page.locator(".machinery > summary").click()
    for node in page.locator(".node").all()[:1]:
        node.click()


def open_citation(page: Any) -> None:
    page.locator(".cite").first.click()
    page.get_by_role("dialog").wait_for()


def open_details(page: Any) -> None:
    """A verdict with its note, the studies' table, and a follow-up with what is searched for."""
    page.locator(".studies > summary").click()
    page.locator(".actions button[aria-expanded]").click()
    page.locator(".feedback button").nth(2).click()
    page.locator(".followup textarea").fill(
        FOLLOW_UPS[page.evaluate("document.documentElement.lang")]
    )
    page.locator(".followup button").last.click()
    page.locator(".followup textarea").nth(1).wait_for()


def plan_first(page: Any) -> None:
    page.locator(".choices > summary").click()
    page.locator("textarea").first.fill(QUESTIONS[page.evaluate("document.documentElement.lang")])
    page.locator("form.ask .row button").nth(1).click()
    page.locator(".plan select").first.wait_for()


def send_program(page: Any) -> None:
    program = {"name": "tool.exe", "mimeType": "text/plain", "buffer": b"MZ"}
    page.locator("input[type=file]").set_input_files([program])
    page.locator(".lines [role=alert]").wait_for()


def states(url: str, language: str) -> Iterator[PageState]:
    made = runs(url, language)
    send_document(url, language)
    fast, steps, film = (f"runs/{made[one]}" for one in ("rag", "kag-thinker", "tc-rag"))
    old, found = thread(url, language, made["rag"]), quote(passage(url, language), safe="")
    waiting = asked(url, QUESTIONS[language], wait=False)
    yield PageState("waiting", f"runs/{waiting}", ".working")
    httpx2.post(f"{url}/api/v1/runs/{waiting}/cancel", json={}, timeout=600)
    yield PageState("ask", "", ".example")
    yield PageState("plan", "", ".example", plan_first)
    yield PageState("answer", fast, ".answer")
    yield PageState("answer-details", fast, ".answer", open_details)
    yield PageState("passage-opened", fast, ".answer", open_citation)
    yield PageState("film", film, ".answer, [role=alert]", open_machinery)
    yield PageState("steps", steps, ".answer, [role=alert]", open_machinery)
    yield PageState("danger", f"runs/{asked(url, CRIES[language])}", ".danger")
    yield PageState("silent", f"runs/{asked(url, UNKNOWN[language])}", ".answer")
    yield PageState("runs", "runs", ".runs li")
    both = f"compare/{made['tc-rag']}/{made['rag']}"
    yield PageState("compare", both, ".pair article + article .answer")
    yield PageState("thread", f"threads/{old}", ".turn .answer")
    yield PageState("knowledge", f"knowledge?q={quote(SEARCH[language])}", ".hits li")
    yield PageState("documents", "knowledge", ".files li", send_program)
    yield PageState("passage", f"passages/{found}", ".here")
    yield PageState("concept", f"concepts/{quote(concept(url), safe='')}", ".relations li")
    yield PageState("evaluations", "evaluations/sample", ".figures .cell")
    yield PageState("scoreboard", "scoreboard", ".scoreboard img")
    yield PageState("unknown", "runs/20260101-000000-ffffffffffff", "[role=alert]")


def send_document(url: str, language: str) -> None:
    with httpx2.Client(base_url=url, timeout=60) as client:
        file = {"file": (f"ward-{language}.txt", WARD[language])}
        client.post("/api/v1/uploads/ward", files=file).raise_for_status()


def taken(
    browser: Any, url: str, language: str, folder: Path, only: Sequence[str]
) -> Iterator[Path]:
    """The pictures of all states in one language whose names have all the parts `only`."""
    looks = [(width, theme) for width in WIDTHS for theme in THEMES]
    for state in states(url, language):
        for width, theme in looks:
            path = folder / f"{state.name}-{language}-{width}-{theme}.png"
            if all(part in path.stem.split("-") for part in only):
                photograph(browser, url, state, path)
                yield path


def photograph(browser: Any, url: str, state: PageState, path: Path) -> None:
    _, language, width, theme = path.stem.rsplit("-", 3)
    across, down = WIDTHS[width]
    context = browser.new_context(
        locale={"en": "en-GB", "zh": "zh-CN"}[language],
        viewport={"width": across, "height": down},
        color_scheme=theme,
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{url}/#/{state.address}")
    page.locator(state.there).first.wait_for()
    state.act(page)
    if state.name != "waiting":
        page.wait_for_load_state("networkidle")
    page.wait_for_timeout(200)
    # A dialog covers what is seen, not the whole page.
    page.screenshot(path=path, full_page=state.name != "passage-opened")
    context.close()


def main(folder: Path, home: Path, only: Sequence[str]) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    prepared(home)
    languages = [one for one in QUESTIONS if one in only or not set(only) & set(QUESTIONS)]
    with served(home) as url, sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        made = [
            path for language in languages for path in taken(browser, url, language, folder, only)
        ]
        browser.close()
    size = sum(path.stat().st_size for path in made)
    print(f"{len(made)} pictures in {folder}, {size / 1024:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--home", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--quick", action="store_true")
    said = parser.parse_args()
    parts = ["desktop", "light"] if said.quick else said.only
    if said.home is not None:
        main(said.folder, said.home, parts)
    else:
        with tempfile.TemporaryDirectory() as made_:
            main(said.folder, Path(made_), parts)
