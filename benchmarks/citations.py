"""Marks of gold statements: right ones kept, wrong ones and swapped statements confirmed.

    python benchmarks/citations.py DATA dev|test [EACH]

Prints a Markdown table: for each set (`citation_cases`) and kind the share that is confirmed by
`support`, by the rule before it (one sentence with .75 of the words), and by the simple opponent
(share of content words in the passage >= .5), with 95 % intervals. Below it the claims that
`verify` supports. Rules and thresholds were chosen on dev; test was looked at once. EACH bounds the
cases of a set and kind.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from citation_cases import Case, draw, make_hit, make_swaps, make_wrong, read_gold

from osler.answer.read_passages import read_passage
from osler.answer.support import find_support
from osler.answer.verify import Verdict, weigh_claim
from osler.evaluate.intervals import proportion
from osler.retrieve.words import content_terms
from osler.text import split_sentences

_BEFORE, _SIMPLE = 0.75, 0.5
Rule = Callable[[Case], bool]


def _share(wanted: set[str], text: str) -> float:
    return len(wanted & {*content_terms(text)}) / max(1, len(wanted))


def one_sentence(case: Case) -> bool:
    wanted = {*content_terms(case.text)}
    return any(
        _share(wanted, hit.passage.text[start:end]) >= _BEFORE
        for hit in case.hits
        for start, end in split_sentences(hit.passage.text)
    )


def share_of_words(case: Case) -> bool:
    wanted = {*content_terms(case.text)}
    texts = [f"{hit.passage.heading} {hit.passage.text}" for hit in case.hits]
    return any(_share(wanted, text) >= _SIMPLE for text in [*texts, " ".join(texts)])


def borne_out(case: Case) -> bool:
    """By a passage that is marked, or all of them together, where those say nothing else."""
    passages = [read_passage(hit.passage.heading, hit.passage.text) for hit in case.hits]
    found = [find_support(case.text, one, case.asked) for one in passages]
    if len(passages) > 1:
        whole = read_passage("", "\n".join(one.whole for one in passages))
        found.append(find_support(case.text, whole, case.asked))
        if found[-1].lacks:
            return False
    return any(one.is_enough for one in found)


RULES: dict[str, Rule] = {
    "support": borne_out,
    "before": one_sentence,
    "words": share_of_words,
}


def citation_rows(
    gold: Sequence[Case], half: str, each: int
) -> Iterator[tuple[str, str, Sequence[Case]]]:
    """Set, kind and cases."""
    for set_ in dict.fromkeys(case.set for case in gold):
        cases = [case for case in gold if case.set == set_]
        kinds = {"right": cases, "wrong": make_wrong(cases), **make_swaps(cases)}
        for kind, found in kinds.items():
            yield set_, kind, [case for case in found if case.half == half][:each]


def print_citations(gold: Sequence[Case], half: str, each: int) -> None:
    print("| Set | Kind | n |", " | ".join(RULES), "|\n|---|---|--:|" + "---|" * len(RULES))
    swapped: dict[str, list[bool]] = defaultdict(list)
    for set_, kind, cases in citation_rows(gold, half, each):
        if not cases:
            continue
        found = {name: [rule(case) for case in cases] for name, rule in RULES.items()}
        cells = [str(proportion(sum(hits), len(hits))) for hits in found.values()]
        print(f"| {set_} | {kind} | {len(cases)} |", " | ".join(cells), "|", flush=True)
        if kind not in ("right", "wrong", "any word"):
            for name, hits in found.items():
                swapped[name] += hits
    cells = [str(proportion(sum(hits), len(hits))) for hits in swapped.values()]
    print(f"| all | number, name, direction or negation | {len(swapped['support'])} |", end=" ")
    print(" | ".join(cells), "|")


Labelled = tuple[str, str, str, str]
"""Set, label, claim and evidence."""


def read_claims(data: Path, half: str) -> Iterator[Labelled]:
    def is_of(key: str) -> bool:
        return (draw(key, 2) == 0) == (half == "dev")

    folder = data / "A_questions"
    with (folder / "healthver/healthver_dev.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if is_of(row["question"]):
                yield "HealthVer", row["label"], row["claim"], row["evidence"]
    lines = (folder / "covidfact/covidfact_first3000.jsonl").read_text(encoding="utf-8")
    for row in map(json.loads, lines.splitlines()):
        if is_of(row["gold_source"]):
            yield "CovidFact", row["label"], row["claim"], "\n".join(row["evidence"])
    with (folder / "kqa/nli_medical_annotator.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if is_of(row["Question"]):
                yield "K-QA pairs", row["majority_label"], row["claim"], row["answer"]


_TRUE = ("Supports", "SUPPORTED", "Entailment")
_FALSE = ("Refutes", "REFUTED", "Contradiction")


def verdict_of(claim: str, evidence: str) -> Verdict:
    return weigh_claim(claim, [make_hit("x", "", evidence)], "en").verdict


def right_of(label: str, verdict: Verdict) -> bool:
    if label in _TRUE:
        return verdict == "supported"
    return verdict == "contradicted" if label in _FALSE else verdict in ("not stated", "disputed")


def print_verdicts(claims: Iterable[Labelled], swaps: dict[str, list[Case]], each: int) -> None:
    told: dict[tuple[str, str], list[tuple[str, Verdict]]] = defaultdict(list)
    for set_, label, claim, evidence in claims:
        if len(told[set_, label]) < each:
            told[set_, label].append((label, verdict_of(claim, evidence)))
    print(
        "\n| Claims | label | n | called supported | called contradicted |\n|---|---|--:|---|---|"
    )
    for (set_, label), found in told.items():
        cells = [
            str(proportion(sum(verdict == one for _, verdict in found), len(found)))
            for one in ("supported", "contradicted")
        ]
        print(f"| {set_} | {label} | {len(found)} |", " | ".join(cells), "|")
    for set_ in dict.fromkeys(set_ for set_, _ in told):
        rows = [one for (of, _), found in told.items() if of == set_ for one in found]
        right = proportion(sum(right_of(*one) for one in rows), len(rows))
        labels = [label for label, _ in rows]
        most = max(map(labels.count, {*labels}))
        print(f"| {set_} | right class | {len(rows)} | {right} | majority {most / len(rows):.3f} |")
    for kind, cases in swaps.items():
        if cases:
            hits = [
                any(weigh_claim(c.text, c.hits, "en").verdict == "supported" for _ in (0,))
                for c in cases
            ]
            print(f"| own swaps | {kind} | {len(hits)} | {proportion(sum(hits), len(hits))} | |")


def main(data: Path, half: str, each: int) -> None:
    gold = read_gold(data)
    print_citations(gold, half, each)
    own = [case for case in gold if case.half == half]
    print_verdicts(
        read_claims(data, half),
        {kind: found[:each] for kind, found in make_swaps(own).items()},
        each,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["1000000"])[0]))
