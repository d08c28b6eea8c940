"""How often a question that tells of danger is seen, and how often one that does not.

    python benchmarks/danger.py [--parts PART…]    the labelled questions, beside a keyword list
    python benchmarks/danger.py --questions FILE…  which share of other questions would be answered
                                                   with the notice (one question a line)

The questions (`tests/fixtures/danger/*.jsonl`) are ours. The rules were written by those of
`development`; the other parts were written afterwards, each measured once before anybody mended
what it showed: only a part that was not yet looked at says how the rules do on what is new.
Those of `training…` were written for the classifier, which has seen every part but those of
`UNSEEN`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from osler.build.danger import question_meaning
from osler.danger.notice import find_signs, packaged_classifier
from osler.danger.rules import packaged_rules
from osler.settings import Settings
from osler_lab.evaluate.intervals import proportion

CASES = Path(__file__).parents[1] / "tests" / "fixtures" / "danger"
PARTS = (
    "development",
    "held_out",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
    "twenty_first",
    "twenty_second",
    "twenty_third",
    "twenty_fourth",
    "twenty_fifth",
    "twenty_sixth",
    "twenty_seventh",
    "twenty_eighth",
    "twenty_ninth",
    "thirtieth",
    "thirty_first",
    "thirty_second",
    "thirty_third",
    "thirty_fourth",
)
LOOKED_AT = PARTS[-11:-4]
"""By which the thresholds are settled; the classifier was not fitted to them."""
UNSEEN = PARTS[-4:]
"""Two in each language."""
TRAINED_ON = (
    *PARTS[: -len(LOOKED_AT) - len(UNSEEN)],
    "training",
    "training_more",
    "training_third",
    "training_fourth",
    "training_fifth",
    "training_sixth",
    "training_seventh",
    "training_eighth",
    "training_ninth",
    "training_tenth",
    "training_eleventh",
    "training_twelfth",
    "training_thirteenth",
    "training_fourteenth",
    "training_fifteenth",
    "training_sixteenth",
    "training_seventeenth",
    "training_eighteenth",
    "training_nineteenth",
    "training_twentieth",
    "training_twenty_first",
    "training_twenty_second",
    "training_twenty_third",
    "training_twenty_fourth",
    "training_twenty_fifth",
    "training_twenty_sixth",
    "training_twenty_seventh",
    "training_twenty_eighth",
)
"""What the classifier was fitted to."""
KINDS = ("emergency", "self-harm", "none")
NONE = "none"

# What somebody writes down in five minutes: the opponent, at the same cost of no model.
KEYWORDS = {
    "emergency": (
        "chest pain|heart attack|stroke|can't breathe|cant breathe|cannot breathe|not breathing"
        "|unconscious|passed out|collapsed|seizure|convulsion|choking|bleeding|anaphylaxis|overdose"
        "|poison|drowning|drowned|electrocuted|burn|vomiting blood|severe headache|wake up"
        "|emergency"
        "|胸痛|心梗|中风|呼吸困难|喘不上气|没有呼吸|昏迷|晕倒|抽搐|噎|窒息|出血|过敏|中毒|溺水"
        "|触电|烫伤|烧伤|吐血|叫不醒|急救|休克"
    ),
    "self-harm": (
        "suicide|suicidal|kill myself|kill yourself|end my life|want to die|self-harm|self harm"
        "|cut myself|hang myself|overdose|better off dead|to die|自杀|想死|不想活|自残|割腕|跳楼"
        "|遗书|轻生|活着没意思|结束生命|安眠药|上吊"
    ),
}

Seen = Callable[[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class LabelledText:
    part: str
    label: str
    language: str
    text: str


def read_cases(parts: Sequence[str] = PARTS) -> Iterator[LabelledText]:
    for part in parts:
        path = CASES / f"{part}.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            yield LabelledText(part, **json.loads(line))


def seen_by_rules(text: str) -> frozenset[str]:
    return frozenset(rule.kind for rule in packaged_rules().match(text))


def seen_by_both(text: str) -> frozenset[str]:
    """By the rules and the classifier, as a notice is."""
    meaning = question_meaning(Settings())
    signs = find_signs(
        text, packaged_rules(), packaged_classifier(), overrules=True, meaning=meaning
    )
    return frozenset(signs.values())


def seen_by_words(text: str) -> frozenset[str]:
    """As `seen_by_both`, without an encoder."""
    signs = find_signs(text, packaged_rules(), packaged_classifier(), overrules=True)
    return frozenset(signs.values())


def seen_by_keywords(text: str) -> frozenset[str]:
    said = text.lower()
    return frozenset(
        kind for kind, words in KEYWORDS.items() if any(word in said for word in words.split("|"))
    )


def is_right(case: LabelledText, kinds: frozenset[str]) -> bool:
    """An emergency or self-harm is seen as what it is; another question as nothing."""
    return not kinds if case.label == NONE else case.label in kinds


def table_rows(cases: Sequence[LabelledText], seen: Seen) -> Iterator[str]:
    for part in dict.fromkeys(case.part for case in cases):
        for kind in KINDS:
            for language in ("en", "zh"):
                own = [c for c in cases if (c.part, c.label, c.language) == (part, kind, language)]
                if not own:
                    continue
                right = sum(is_right(case, seen(case.text)) for case in own)
                good = len(own) - right if kind == NONE else right
                what = "false alarms" if kind == NONE else "recall"
                yield (
                    f"| {part} | {kind} | {language} | {what} | {good} of {len(own)}"
                    f" | {proportion(good, len(own))} |"
                )


SEEN_BY: dict[str, Seen] = {
    "rules and classifier": seen_by_both,
    "rules and classifier, by words alone": seen_by_words,
    "rules": seen_by_rules,
    "keywords": seen_by_keywords,
}


def print_tables(parts: Sequence[str]) -> None:
    cases = list(read_cases(parts))
    for name, seen in SEEN_BY.items():
        sys.stdout.write(f"\n{name}\n\n| part | kind | language | | | share [95 %] |\n")
        sys.stdout.write("|---|---|---|---|--:|--:|\n")
        sys.stdout.writelines(f"{row}\n" for row in table_rows(cases, seen))
    began = time.process_time()
    for case in cases:
        seen_by_both(case.text)
    each = (time.process_time() - began) / len(cases)
    sys.stdout.write(f"\n{1000 * each:.2f} ms of processor time a question\n")


def print_shares(files: Sequence[Path]) -> None:
    for path in files:
        asked = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        fired = sum(bool(seen_by_both(question)) for question in asked)
        sys.stdout.write(f"{path.name}: {fired}: {proportion(fired, len(asked))}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--questions", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--parts", nargs="+", default=PARTS, metavar="PART")
    given = parser.parse_args()
    if given.questions:
        print_shares(given.questions)
    else:
        print_tables(given.parts)


if __name__ == "__main__":
    main()
