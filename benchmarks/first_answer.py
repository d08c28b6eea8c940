"""A new user's journey: 40 PDF and XML files, and the first cited answer by words.

    python benchmarks/first_answer.py [--folder FOLDER] [--question QUESTION]

Wanted on two cores: under 60 s from the beginning of `osler kb add` to a cited answer, while
vectors are made. Without a folder, 20 PDF and 20 JATS files are written from the sample texts.
Every command is a fresh process, as at a terminal; `osler kb build` runs beside the question and is
stopped at the end. The machine's load is printed, since seconds depend on it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from html import escape
from importlib.resources import files
from pathlib import Path

QUESTION = "What happens to the INR when amiodarone is given with warfarin?"
_JATS = (
    "<article><front><article-meta><title-group><article-title>{title}</article-title></title-group>"
    "</article-meta></front><body><sec><title>{title}</title>{paragraphs}</sec></body></article>"
)


def sample_sections() -> list[tuple[str, list[str]]]:
    """The sections of the English sample books: a heading with its paragraphs."""
    found: list[tuple[str, list[str]]] = []
    for path in sorted((files("osler.sample") / "book").iterdir(), key=lambda one: one.name):
        if path.name.startswith("zh_"):
            continue
        for part in path.read_text(encoding="utf-8").split("\n### ")[1:]:
            title, _, body = part.partition("\n")
            texts = [one for one in body.split("\n\n") if one.strip() and not one.startswith("#")]
            found.append((title.strip(), [one.strip() for one in texts]))
    return found


def write_files(folder: Path) -> None:
    """20 PDF and 20 JATS files; what interacts with warfarin is in a PDF."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    styles, sections = getSampleStyleSheet(), sample_sections()
    wanted = next(i for i, (_, texts) in enumerate(sections) if "Amiodarone inhibits" in texts[0])
    sections.insert(0, sections.pop(wanted))
    for number in range(40):
        share = sections[number::40]
        if number < 20:
            page = [
                Paragraph(escape(one), styles["BodyText"]) for s in share for one in (s[0], *s[1])
            ]
            SimpleDocTemplate(str(folder / f"{number:02}.pdf"), title=share[0][0]).build(page)
        else:
            paragraphs = "".join(f"<p>{escape(one)}</p>" for _, texts in share for one in texts)
            text = _JATS.format(title=escape(share[0][0]), paragraphs=paragraphs)
            (folder / f"{number:02}.nxml").write_text(text, encoding="utf-8")


def run_osler(home: Path, *words: str) -> tuple[float, dict[str, object]]:
    """Seconds of one command, and its JSON."""
    began = time.perf_counter()
    done = subprocess.run(  # noqa: S603  our own words
        command(*words), env=environment(home), capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 6):
        raise SystemExit(f"osler {' '.join(words)}: {done.stderr}")
    return time.perf_counter() - began, json.loads(done.stdout)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "osler", "--json", *words]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "OSLER__HOME": str(home)}


def make_journey(folder: Path, home: Path, question: str) -> float:
    """Seconds from the beginning of `kb add` to the answer; 0 without a cited one."""
    added, told = run_osler(home, "kb", "add", str(folder), "--source", "papers")
    print(f"kb add: {added:.1f} s, {told}")
    building = subprocess.Popen(  # noqa: S603  our own words
        command("kb", "build"),
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        asked, run = run_osler(home, "ask", question)
        still = building.poll() is None
    finally:
        building.send_signal(signal.SIGINT)
        building.wait(60)
    answer = run["answer"]
    assert isinstance(answer, dict)
    print(f"ask: {asked:.1f} s, vectors still being made: {still}")
    print(f"{answer['text']}\ngrounding: {run['grounding']}")
    return added + asked if run["grounding"] == "grounded" else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--question", default=QUESTION)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place) / "files"
        if options.folder is None:
            folder.mkdir()
            write_files(folder)
        count = sum(1 for path in folder.rglob("*") if path.is_file())
        seconds = make_journey(folder, Path(place) / "home", options.question)
    said = f"{seconds:.1f} s" if seconds else "no cited answer"
    print(f"{count} files, first cited answer: {said}, load {os.getloadavg()[0]:.1f}")
    return int(not 0 < seconds < 60)


if __name__ == "__main__":
    raise SystemExit(main())
