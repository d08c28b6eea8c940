"""Marks of gold statements: right ones kept, wrong ones and swapped statements confirmed.

    python benchmarks/citations.py DATA dev|test [EACH]

Prints a Markdown table: for each set (`citation_cases`) and kind the share that is confirmed by
`support`, by the rule before it (one sentence with .75 of the words), and by the simple opponent
(share of content words in the passage >= .5), with 95 % intervals. Rules and thresholds were
chosen on dev; test was looked at once. EACH bounds the cases of a set and kind.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from citation_cases import Case, make_swaps, make_wrong, read_gold

from osler.answer.read_passages import read_passage
from osler.answer.support import find_support
from osler.retrieve import content_terms
from osler.text import split_sentences
from osler_lab.evaluate.intervals import proportion

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


def main(data: Path, half: str, each: int) -> None:
    gold = read_gold(data)
    print_citations(gold, half, each)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int((sys.argv[3:] or ["1000000"])[0]))
