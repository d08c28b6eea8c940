"""What finding identifiers is worth on marked sentences (`benchmarks/identifiers/README.md`).

    python benchmarks/identifier_sentences.py identifiers/en-dev.txt [--errors] [--by simple]
        [--found SPANS.jsonl]

Found is an identifier all of whose letters and digits (of an age: digits) are covered, by
whatever kind. `--found` reads what another program found: one line `[[start, end], …]` for each
sentence. `--errors` prints the missed and the falsely found ones: never of a test half.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from osler_lab.evaluate.intervals import proportion
from osler_serve.clinic.identifiers.removal import find_identifiers

MARK = re.compile(r"\[\[([A-Z]+):(.*?)\]\]")
Span = tuple[int, int]
Marked = tuple[str, int, int]


def read_sentence(line: str) -> tuple[str, list[Marked]]:
    """The text without marks, and what they mark: kind, start, end."""
    text, marked, at = "", [], 0
    for mark in MARK.finditer(line):
        text += line[at : mark.start()]
        marked.append((mark[1], len(text), len(text) + len(mark[2])))
        text, at = text + mark[2], mark.end()
    return text + line[at:], marked


def find_all(text: str) -> list[Span]:
    return [(one.start, one.end) for one in find_identifiers(text)]


def find_simply(text: str) -> list[Span]:
    """The simple rule: long numbers, and each word with a capital that begins no sentence; in
    Chinese each of the commonest surnames with the two signs behind it."""
    return [match.span() for match in SIMPLE.finditer(text)]


SIMPLE = re.compile(
    r"(?<=[^.!?:\s] )[A-Z][\w'’-]+|[A-Z][\w'’-]+(?= [A-Z])|\d[\d /-]{4,}\d"
    r"|[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹][\u4e00-\u9fff]{2}"
)


@dataclass
class Score:
    """Counts over sentences: identifiers found of all, by kind; what was found that is right."""

    found: Counter[str] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    right: int = 0
    exact: int = 0
    spans: int = 0
    alarmed: int = 0
    clean: int = 0

    def count(self, text: str, marked: list[Marked], spans: list[Span]) -> list[str]:
        """Adds a sentence; tells what is missed (-) and what is falsely found (+)."""
        errors, covered = [], {at for start, end in spans for at in range(start, end)}
        for kind, start, end in marked:
            if kind != "MAYBE":
                counts = str.isdigit if kind == "AGE" else str.isalnum
                whole = all(at in covered for at in range(start, end) if counts(text[at]))
                self.found[kind] += whole
                self.marked[kind] += 1
                errors += [] if whole else [f"-{text[start:end]}"]
        unsure = [(start, end) for kind, start, end in marked if kind == "MAYBE"]
        for start, end in spans:
            right = any(a < end and start < b for _, a, b in marked)
            if right and any(a < end and start < b for a, b in unsure):
                continue
            self.spans += 1
            self.right += right
            self.exact += any((a, b) == (start, end) for _, a, b in marked)
            errors += [] if right else [f"+{text[start:end]}"]
        if not marked:
            self.clean += 1
            self.alarmed += bool(spans)
        return errors

    def tell(self) -> str:
        """The figures with Wilson intervals."""
        kinds = ", ".join(f"{kind} {self.found[kind]}/{n}" for kind, n in self.marked.items())
        rows = (
            ("recall", self.found.total(), self.marked.total()),
            ("precision", self.right, self.spans),
            ("exact", self.exact, self.spans),
            ("alarms on clean", self.alarmed, self.clean),
        )
        told = (f"{name} {a}/{n} {show(a, n)}" for name, a, n in rows)
        return "; ".join(told) + f"\n  {kinds}"


def show(hits: int, n: int) -> str:
    part = proportion(hits, max(n, 1))
    return f"{part.value:.3f} [{part.low:.3f}, {part.high:.3f}]"


FINDERS: dict[str, Callable[[str], list[Span]]] = {
    "osler": find_all,
    "simple": find_simply,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--by", choices=FINDERS, default="osler")
    parser.add_argument("--found", type=Path)
    given = parser.parse_args()
    path = given.file if given.file.exists() else Path(__file__).parent / given.file
    sentences = list(map(read_sentence, path.read_text(encoding="utf-8").splitlines()))
    if given.found:
        spans = [json.loads(row) for row in given.found.read_text(encoding="utf-8").splitlines()]
    else:
        spans = [FINDERS[given.by](text) for text, _ in sentences]
    score = Score()
    for (text, marked), found in zip(sentences, spans, strict=True):
        if (errors := score.count(text, marked, found)) and given.errors:
            print(f"{text}\n      {' | '.join(errors)}")
    print(f"{path.name}: {len(sentences)} sentences; {score.tell()}")


if __name__ == "__main__":
    main()
