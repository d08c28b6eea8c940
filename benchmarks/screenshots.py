"""Pictures of every page, in English and in Chinese, over the sample knowledge base.

    python benchmarks/screenshots.py [FOLDER] [--home HOME] [--quick]

A real `osler serve` with the packaged model: nothing on the pictures is made up. Runs are made with
three strategies, and a small evaluation of the sample questions; with `--home` they are kept there
and made only once. Needs the built page (`make page`), playwright and a Chromium. `--quick` takes
light pictures at one width.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

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
WARD = {
    "en": b"The ward keeps vitamin K in the second drawer. It is checked on Mondays.",
    "zh": "病房的维生素K放在第二个抽屉。每周一检查。".encode(),
}
"""What is sent into a source of its own."""
SEARCH = {"en": "warfarin amiodarone INR", "zh": "华法林 胺碘酮"}
CONCEPT = "Atrial fibrillation"
EVALUATED = 8
QUICK = [("wide", "light")]
ALL = [*QUICK, ("wide", "dark"), ("phone", "light")]
THERE = {
    "ask": ".example",
    "answer": ".answer, [role=alert]",
    "forms": ".answer, [role=alert]",
    "runs": ".runs li",
    "compare": ".pair .machinery",
    "threads": ".threads li",
    "thread": ".turn .answer",
    "danger": ".danger",
    "documents": ".files li",
    "refused": ".lines [role=alert]",
    "waiting": ".working",
    "knowledge": ".hits li",
    "passage": ".here",
    "concept": ".relations li",
    "evaluations": ".figures .cell",
}
"""What is seen once a page is there."""
WIDTHS = {"wide": (1280, 900), "phone": (360, 740)}


def osler(home: Path, *words: str) -> None:
    command = [sys.executable, "-m", "osler", *words]
    environment = {**os.environ, "OSLER__HOME": str(home)}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)  # noqa: S603


def prepared(home: Path) -> None:
    """The sample knowledge base, and an evaluation of some sample questions."""
    if not (home / "kb").exists():
        osler(home, "kb", "build", "--sample")
    if not (home / "kb" / "graph.sqlite").exists():
        with as_file(files("osler.sample").joinpath("graph")) as folder:
            osler(home, "kb", "graph", "add", *map(str, sorted(folder.glob("*.obo"))))
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


def conversation(url: str, language: str, run: str) -> str:
    """A thread of two turns that goes on from the run."""
    with httpx2.Client(base_url=url, timeout=600) as client:
        for one in client.get("/api/v1/threads").json()["threads"]:
            if one["turns"] and one["turns"][0]["question"] == QUESTIONS[language]:
                return str(one["thread_id"])
        thread = client.post("/api/v1/threads", json={"run_id": run}).json()["thread_id"]
        body = {"question": FOLLOW_UPS[language], "strategy": "rag", "limits": LIMITS}
        turn = client.post(f"/api/v1/threads/{thread}/turns", json=body).json()
        client.get(turn["events"])
        return str(thread)


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


def pages(url: str, language: str) -> dict[str, str]:
    """Name to address."""
    from urllib.parse import quote

    made = runs(url, language)
    shown = {
        "ask": "",
        "answer": f"runs/{made['tc-rag']}",
        "forms": f"runs/{made['kag-thinker']}",
        "runs": "runs",
        "compare": f"compare/{made['tc-rag']}/{made['rag']}",
        "knowledge": f"knowledge?q={quote(SEARCH[language])}",
        "passage": f"passages/{quote(passage(url, language), safe='')}",
        "evaluations": "evaluations/sample",
        "threads": "threads",
        "thread": f"threads/{conversation(url, language, made['rag'])}",
        "danger": f"runs/{asked(url, CRIES[language])}",
        "documents": "knowledge",
        "refused": "knowledge",
    }
    with httpx2.Client(base_url=url, timeout=60) as client:
        file = {"file": (f"ward-{language}.txt", WARD[language])}
        client.post("/api/v1/uploads/ward", files=file).raise_for_status()
    if found := concept(url):
        shown["concept"] = f"concepts/{quote(found, safe='')}"
    return shown


def taken(browser: Any, url: str, language: str, folder: Path, *, quick: bool) -> list[Path]:
    """The pictures of all pages in one language."""
    made = []
    shown = pages(url, language)
    for width, (across, down) in WIDTHS.items():
        for theme in ("light", "dark"):
            if (width, theme) not in (QUICK if quick else ALL):
                continue
            context = browser.new_context(
                locale={"en": "en-GB", "zh": "zh-CN"}[language],
                viewport={"width": across, "height": down},
                color_scheme=theme,
            )
            page = context.new_page()
            waits = {"waiting": f"runs/{asked(url, QUESTIONS[language], wait=False)}"}
            for name, address in {**waits, **shown}.items():
                page.goto(f"{url}/#/{address}")
                if name != "waiting":
                    page.wait_for_load_state("networkidle")
                _ready(page, name)
                made.append(folder / f"{name}-{language}-{width}-{theme}.png")
                page.screenshot(path=made[-1], full_page=True)
            context.close()
    return made


def _ready(page: Any, name: str) -> None:
    """What is one click away is shown where the picture is about it."""
    if name == "refused":
        program = {"name": "tool.exe", "mimeType": "text/plain", "buffer": b"MZ"}
        page.locator("input[type=file]").set_input_files([program])
    page.locator(THERE[name]).first.wait_for()
    if name == "forms":
        page.locator(".machinery > summary").click()
        for node in page.locator(".node").all()[:1]:
            node.click()
    page.wait_for_timeout(300)
    if name == "answer":
        page.locator(".machinery > summary").click()
        page.wait_for_timeout(100)


def main(folder: Path, home: Path, *, quick: bool) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    prepared(home)
    with served(home) as url, sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        made = [
            path
            for language in QUESTIONS
            for path in taken(browser, url, language, folder, quick=quick)
        ]
        browser.close()
    size = sum(path.stat().st_size for path in made)
    print(f"{len(made)} pictures in {folder}, {size / 1024:.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("screenshots"))
    parser.add_argument("--home", type=Path)
    parser.add_argument("--quick", action="store_true")
    said = parser.parse_args()
    if said.home is not None:
        main(said.folder, said.home, quick=said.quick)
    else:
        with tempfile.TemporaryDirectory() as made_:
            main(said.folder, Path(made_), quick=said.quick)
