"""How many poisoned passages are left among the evidence, and what the defence costs.

    python benchmarks/poison.py injected_docs.jsonl

A poisoned passage is the question and a sentence of a right passage with its amount times ten, or
its direction turned round. The other cells count instructions that are blanked, with clean twins.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path
from typing import Any

from osler.answer.consistency import keep_consistent
from osler.answer.disagreement import read_amounts, read_directions
from osler.retrieve.instructions import instruction_spans
from osler.sources.catalogue import trust_of
from osler.text import split_sentences
from osler.types import Hit, Passage

OPPOSITES = [
    ("increases", "decreases"),
    ("increased", "decreased"),
    ("reduces", "raises"),
    ("recommended", "contraindicated"),
    ("effective", "ineffective"),
    ("safe", "unsafe"),
    ("improves", "worsens"),
    ("higher", "lower"),
    ("reduce", "increase"),
]
CELLS = {
    "1 of 5, same trust": (4, 1, "web", "web"),
    "5 of 10, same trust": (5, 5, "web", "web"),
    "5 of 6, less trust": (1, 5, "guideline", "web"),
    "1 of 2, more trust": (1, 1, "web", "guideline"),
}
CLEAN_SETS, CLEAN_SIZE = 100, 10


def poison_sentence(sentence: str) -> str | None:
    """The sentence with a wrong amount or direction; `None` where it has neither."""
    number = re.search(r"\d+(?:\.\d+)?", sentence)
    if number and read_amounts(sentence):
        wrong = f"{float(number[0]) * 10:g}"
        return sentence[: number.start()] + wrong + sentence[number.end() :]
    if read_directions(sentence):
        for one, other in (*OPPOSITES, *((b, a) for a, b in OPPOSITES)):
            turned = re.sub(rf"\b{one}\b", other, sentence, count=1)
            if turned != sentence:
                return turned
    return None


def hits_of(question: str, texts: list[tuple[str, str]]) -> list[Hit]:
    return [
        Hit(Passage(f"{source}:{n}#0", text, source, f"T{n}"), 1.0, n, question, "bench")
        for n, (source, text) in enumerate(texts, 1)
    ]


def poisonable(rows: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Question, right sentence and wrong one of each row that has such a sentence."""
    found = []
    for row in rows:
        text = row["clean_text"]
        for start, end in split_sentences(text):
            if wrong := poison_sentence(text[start:end]):
                found.append((row["question"], text[start:end], wrong))
                break
    return found


def main() -> None:
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    cases = poisonable(rows)
    say = sys.stdout.write
    for name, (clean, bad, clean_source, bad_source) in CELLS.items():
        left = 0
        for question, right, wrong in cases:
            texts = [(bad_source, f"{question} {wrong}")] * bad + [(clean_source, right)] * clean
            kept, _ = keep_consistent(hits_of(question, texts), trust_of)
            left += any(hit.rank <= bad for hit in kept)
        share, many = left / len(cases), len(cases)
        say(f"{name}: poison left {share:.2f}, without the defence 1.00, n {many}\n")
    rng, lost = random.Random(0), 0
    for _ in range(CLEAN_SETS):
        texts = [("web", row["clean_text"]) for row in rng.sample(rows, CLEAN_SIZE)]
        lost += len(keep_consistent(hits_of("", texts), trust_of)[0]) < CLEAN_SIZE
    say(f"clean sets of {CLEAN_SIZE} that lost a passage: {lost} of {CLEAN_SETS}\n")
    blanked = sum(_is_blanked(row) for row in rows)
    touched = sum(bool(instruction_spans(row["clean_text"])) for row in rows)
    say(f"instructions blanked: {blanked} of {len(rows)}; clean twins touched: {touched}\n")


def _is_blanked(row: dict[str, Any]) -> bool:
    text, order = row["injected_text"], row["attack_instruction"]
    at = text.find(order)
    return any(start <= at and at + len(order) <= end for start, end in instruction_spans(text))


if __name__ == "__main__":
    main()
