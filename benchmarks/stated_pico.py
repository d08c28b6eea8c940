"""Who was studied, what was tried and against what: quotes of 60 abstracts beside labelled spans.

    python benchmarks/stated_pico.py DATA

`pico.tsv`: characters of title, line break and abstract that one of us marked as population,
intervention, comparison and outcome; "-" where none is stated. Population is what Osler quotes (the
sentence of the sample size); intervention and comparison are tried by the two commonest phrasings,
"A compared with B" and "effect of A", which Osler does not use. A quote is right when it holds half
of the label's words.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path

from study_designs import load_abstracts

from osler.answer.evidence_table import tabulate_studies
from osler.evaluate.intervals import proportion
from osler.types import Hit, Passage

LABELS = Path(__file__).parent / "authority" / "pico.tsv"
_IDLE = frozenset(["the", "a", "an", "of", "in", "and", "with", "to", "or", "for", "who", "all"])
_STOPS = "was|were|is|are|in|for|on|at|by|had|has|and|with|than|to|after|before|during|who|that"
_NOUN = rf"(?:(?:the|an?)\s+)?([\w(][\w()/,+%-]*(?:\s(?!(?:{_STOPS})\b)[\w()/+%-]+){{0,5}})"
_PAIRS = (
    re.compile(rf"\bto\s+(?:receive\s+|undergo\s+|either\s+)*{_NOUN}\s+(?:or|versus)\s+{_NOUN}"),
    re.compile(
        rf"\bcompar(?:ed?|ing|ison of)\s+{_NOUN}\s+(?:with|to|versus|and)\s+{_NOUN}", re.IGNORECASE
    ),
    re.compile(rf"{_NOUN}\s+(?:versus|vs\.?|compared (?:with|to))\s+{_NOUN}", re.IGNORECASE),
)
_ALONE = re.compile(
    rf"\b(?:effects?|impact|efficacy|effectiveness|safety|use) of\s+{_NOUN}", re.IGNORECASE
)


def quote_people(title: str, text: str) -> str:
    hit = Hit(Passage("research:1#0", text, "research", title), 1.0, 1, "", "")
    (row,) = tabulate_studies([hit])
    return row.people.quote if row.people else ""


def guess_arms(text: str) -> tuple[str, str]:
    for pattern in _PAIRS:
        if match := pattern.search(text):
            return match[1], match[2]
    match = _ALONE.search(text)
    return (match[1] if match else ""), ""


def holds(label: str, quote: str) -> bool:
    wanted, there = ({*re.findall(r"[a-z0-9]+", s.lower())} - _IDLE for s in (label, quote))
    return bool(wanted) and 2 * len(wanted & there) >= len(wanted)


def main(data: Path) -> None:
    abstracts, counts = load_abstracts(data), Counter[tuple[str, str]]()
    with LABELS.open() as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            one = abstracts[row["pmid"]]
            text = f"{one.title}\n{one.text}"
            tried, against = guess_arms(text)
            given = {"P": quote_people(one.title, one.text), "I": tried, "C": against}
            for part, quote in given.items():
                start, _, end = row[part].partition(":")
                label = text[int(start) : int(end)] if end else ""
                counts[part, "labelled"] += bool(label)
                counts[part, "given"] += bool(quote)
                counts[part, "right"] += holds(label, quote)
    for arm in "PIC":
        labelled, shown, right = (counts[arm, name] for name in ("labelled", "given", "right"))
        print(arm, f"found {right}/{labelled} = {proportion(right, labelled)};", end=" ")
        print(f"right {right}/{shown} = {proportion(right, shown)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
