"""Effects of 120 abstracts, read by rules beside labels that two of us gave by reading.

    python benchmarks/stated_effects.py DATA

`effects.tsv`: measure=value[low;high] of each, "none" for a measure that the text does not name
beside the number. Of the first 60 abstracts half were drawn from those that name an interval or a
ratio, half from those that do not; the other 60 by a hash. None was seen when the rules were
written. An effect is right when value and bounds are; the simple opponent takes every number that
follows "OR", "HR" or "RR".
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from pathlib import Path

from study_designs import load_abstracts

from osler.answer.evidence_table import read_effects
from osler.evaluate.intervals import proportion

LABELS = Path(__file__).parent / "authority" / "effects.tsv"
_SIMPLE = re.compile(
    r"\b(?:OR|HR|RR)\W{0,3}(\d[\d.]*)\W+(?:95 ?% ?)?(?:CI)\W{0,3}(\d[\d.]*)\W+(?:to )?(\d[\d.]*)"
)
_CLASSES = {
    "OR": ("or", "odds ratio"),
    "HR": ("hr", "hazard ratio"),
    "RR": ("rr", "relative risk", "risk ratio", "rate ratio"),
    "MD": ("md", "mean difference"),
    "share": ("incidence",),
}
Effect = tuple[str, str, str]
"""Value and bounds as written; "" for a bound that is not stated."""


def read_labels(cell: str) -> list[tuple[str, Effect]]:
    found = re.findall(r"(\w+)=([-\d.]+)(?:\[([-\d.]+);([-\d.]+)\])?", cell)
    return [(name, (value, low, high)) for name, value, low, high in found]


def class_of(measure: str) -> str:
    folded = measure.casefold().rstrip("s")
    named = (name for name, words in _CLASSES.items() if folded.endswith(words))
    return next(named, measure or "none")


def main(data: Path) -> None:
    abstracts = load_abstracts(data)
    counts: Counter[str] = Counter()
    with LABELS.open() as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            text, told = abstracts[row["pmid"]].text, read_labels(row["effects"])
            given: list[tuple[str, Effect]] = []
            for effect in read_effects(text):
                spans = (effect.measure, effect.value, effect.low, effect.high)
                measure, *parts = (text[slice(*span)] if span else "" for span in spans)
                given.append((class_of(measure), (parts[0], parts[1], parts[2])))
            ours = Counter(effect for _, effect in given)
            theirs = Counter(effect for _, effect in told)
            right = (ours & theirs).total()
            simple: Counter[Effect] = Counter(
                (match[1], match[2], match[3]) for match in _SIMPLE.finditer(text)
            )
            counts.update(
                labelled=len(told),
                given=len(given),
                right=right,
                measured=(Counter(given) & Counter(told)).total(),
                simple=(simple & theirs).total(),
                simply_given=simple.total(),
            )
            if ours != theirs:
                print(row["pmid"], "missed", dict(theirs - ours), "wrong", dict(ours - theirs))
    print("found      ", proportion(counts["right"], counts["labelled"]), counts["labelled"])
    print("right      ", proportion(counts["right"], counts["given"]), counts["given"])
    print("with measure", proportion(counts["measured"], counts["labelled"]))
    print("simple found", proportion(counts["simple"], counts["labelled"]))
    print("simple right", proportion(counts["simple"], max(1, counts["simply_given"])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
