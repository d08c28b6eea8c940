"""A reader's way through the page in Chinese: no English word stands on it but names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from browsing import expect_count, expect_text
from served import ServedOsler, serve_osler

from osler.graph.items import Definition, Name, Relation
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler_lab.testing.scripted import HashingEncoder

Window = Callable[..., Any]
QUESTION = "长期服用华法林的患者加用胺碘酮后，INR会怎样变化？"
NAMES = {
    *("Osler", "English", "API", "INR", "BMI", "Apache", "MiB", "kB", "kg", "cm", "Esc", "Shift"),
    *("HTML", "Markdown", "PDF", "Word", "RIS", "BibTeX", "CSV", "FHIR", "SHA", "URL", "Holm"),
    *("ward", "rct", "guideline", "tool", "eval", "rag", "hashing"),
}
"""Of programs, formats, units, keys, sources of the reader's own, and words to be typed as they
are."""
WORD = re.compile(r"(?<![.A-Za-z-])[A-Za-z]+[A-Za-z]")
HASH = re.compile(r"[0-9a-f]{16,}")
# What is seen, and what a screen reader says. Texts, names of methods and records of a run are
# left out: they are as they were written.
SEEN = """() => {
  const own = "[dir=auto], mark, pre, code, .timeline, .ids, dd, .said, .example,"
    + " .actions option, .choices option";
  const said = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT);
  while (walk.nextNode()) {
    const one = walk.currentNode;
    if (one.closest(own) || !one.checkVisibility()) continue;
    for (const name of ["aria-label", "placeholder", "title", "alt"])
      if (one.hasAttribute(name)) said.push(one.getAttribute(name));
    for (const node of one.childNodes)
      if (node.nodeType === Node.TEXT_NODE && node.data.trim()) said.push(node.data.trim());
    if (one.matches("input[type=file]:not(.unseen)")) said.push("Choose File");
  }
  return said;
}"""


def fill(home: Path) -> None:
    """The Chinese sample texts, and a graph of one relation."""
    sample = Path(str(files("osler.sample")))
    with KnowledgeBase.create(home / "kb") as kb:
        for source in ("book", "guideline"):
            texts = sorted((sample / source).glob("*zh*"))
            kb.add(texts, source=source, licence="Apache-2.0", illustrative=True)
        kb.build(HashingEncoder())
    with Graph.create(home / "kb") as graph:
        graph.add(
            [
                Name("T:1", "过敏性休克"),
                Name("T:2", "肾上腺素"),
                Definition("T:1", "严重的全身反应。", "为此测试而写"),
                Relation("T:1", "treated_by", "T:2"),
            ]
        )
        graph.load_arrays()


@pytest.fixture
def quoting(home: Path) -> Iterator[ServedOsler]:
    mute = {role: {"writes": "no"} for role in ("planner", "reader")}
    with serve_osler(home, roles=mute, fill=fill, serve={"uploads": ["ward"]}) as place:
        yield place


class Reader:
    """Goes through the page and notes each English word on it."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.english: dict[str, set[str]] = {}

    def look(self, where: str) -> None:
        lines = self.page.evaluate(SEEN)
        found = {f"{word}: {one}" for one in lines for word in WORD.findall(HASH.sub("", one))}
        if wrong := {one for one in found if one.partition(":")[0] not in NAMES}:
            self.english[where] = wrong

    def go(self, address: str, there: str) -> None:
        self.page.evaluate("where => { location.hash = where }", f"#/{address}")
        self.page.locator(there).first.wait_for()

    def ask(self, question: str) -> None:
        self.page.get_by_role("link", name="新问题").click()
        self.page.get_by_label("医学问题").fill(question)
        self.page.keyboard.press("Enter")
        self.page.get_by_role("heading", name="回答", exact=True).wait_for()
        self.page.wait_for_load_state("networkidle")


def test_a_chinese_reader_meets_no_english_word_but_names(
    window: Window, quoting: ServedOsler
) -> None:
    known = ["422", "404", "ERR_FAILED"]
    with window(quoting, locale="zh-CN", expected=known) as page:
        reader = Reader(page)
        ask_and_open(reader)
        for name, question in {
            "unknown": "佐布拉辛对痛风有什么作用？",
            "danger": "我胸口剧痛，喘不上气",
            "formula": "体重80公斤、身高1.80米的男性，BMI是多少？",
        }.items():
            reader.ask(question)
            reader.look(name)
        read_the_knowledge(reader)
        compare_and_fail(reader)
    assert not reader.english


def ask_and_open(reader: Reader) -> None:
    """An answer with all that can be opened, and a follow-up."""
    page = reader.page
    page.locator(".choices > summary").first.click()
    page.locator(".filter > summary").click()
    reader.look("ask")
    reader.ask(QUESTION)
    reader.look("answer")
    for summary in page.locator(".machinery > summary, .studies > summary, .menu > summary").all():
        summary.click()
    page.get_by_role("button", name="反馈").click()
    reader.look("opened")
    page.locator(".card").first.click()
    page.get_by_role("dialog").wait_for()
    reader.look("citation")
    page.keyboard.press("Escape")
    page.get_by_label("继续提问").fill("肝病患者呢？")
    page.keyboard.press("Enter")
    expect_count(page.locator(".turn"), 2)
    page.locator(".turn .answer").last.wait_for()
    reader.look("conversation")


def read_the_knowledge(reader: Reader) -> None:
    page = reader.page
    reader.go("knowledge?q=华法林", ".hits li")
    for name, content in {"记录.txt": "霍加狓在八号房。".encode(), "tool.exe": b"MZ"}.items():
        file = {"name": name, "mimeType": "text/plain", "buffer": content}
        page.get_by_label("上传文档").set_input_files([file])
        page.locator(".lines p", has_text=name).wait_for()
    expect_text(page.locator(".lines [role=alert]"), "无法收下此文件")
    reader.look("knowledge")
    page.locator(".hits a").first.click()
    page.locator(".here").wait_for()
    reader.look("passage")
    reader.go("concepts/T%3A1", ".relations li")
    reader.look("concept")


def compare_and_fail(reader: Reader) -> None:
    page = reader.page
    reader.go("runs", ".runs li")
    reader.look("runs")
    for box in page.locator(".runs input[type=checkbox]").all()[:2]:
        box.check()
    page.get_by_role("link", name="并排比较").click()
    page.locator(".pair .answer").nth(1).wait_for()
    reader.look("compare")
    reader.go("evaluations", "main pre")
    reader.look("evaluations")
    reader.go("runs/20260101-000000-ffffffffffff", "[role=alert]")
    reader.look("missing")
    page.get_by_role("link", name="新问题").click()
    for text, stop in (("长" * 9_000, False), (QUESTION, True)):
        if stop:
            page.route("**/api/v1/runs", lambda route: route.abort())
        page.get_by_label("医学问题").fill(text)
        page.keyboard.press("Enter")
        page.get_by_role("alert").wait_for()
        reader.look("refused")
