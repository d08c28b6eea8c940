"""A small classifier beside the rules, for what people say in words that no list has.

A linear model over words, pairs of words, letters within words and Chinese characters, each
hashed to one of `BUCKETS` places; its weights are one byte each. It was fitted by
`benchmarks/train_danger.py` to labelled questions, and `classifier.json` is its card. It asks
no model, gives the same answer on every machine, and can be switched off
(`danger.classifier = off`). It speaks where no rule applies, adds the kind that a rule lacks, and
silences a packaged rule where it finds danger unlikely; a hospital's own rules always count.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp, inf, log, sqrt

from osler.danger.phrases import Spelling
from osler.danger.rules import packaged_rules
from osler.text import has_cjk
from osler.types import DangerKind, Language

BUCKETS = 1 << 16
LONGEST = 2_000
"""Characters of a text that are read, from its beginning."""
KINDS: tuple[DangerKind, ...] = ("emergency", "self-harm")
OVERRULED = -1.0
"""Log-odds of any danger below which a packaged rule does not count: one in four."""
AGREED = 3
"""Rules that count together whatever the log-odds: of 6,422 natural questions two are told so, both
of them emergencies."""
LIKELY = 0.5
"""Log-odds from which a kind is added to what a rule says."""
HARDLY_LESS = 1.5
"""How far below the likelier kind the other may be, and be named too."""

_WORD = re.compile(r"[a-z]+|\d+")
_HAN = re.compile(r"[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff]+")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class DangerClassifier:
    """Weights of each kind against none, in bytes, kind after kind."""

    weights: memoryview
    scale: float
    bias: tuple[float, ...]
    """Of each kind, as the weights."""
    thresholds: Mapping[Language, float]
    """Log-odds from which on a question counts, by language."""
    spelling: Spelling

    def weigh_signs(
        self, text: str, matched: Mapping[str, DangerKind], *, overrules: bool
    ) -> dict[str, DangerKind]:
        """What counts of `matched` (rules by name), and the kinds that the classifier adds.

        That is the likelier kind, and the other one as well where it is hardly less likely: from
        the threshold of either on where no rule applies, and beside a rule where the kind is likely
        by itself. With `overrules`, fewer than `AGREED` rules do not count where danger is
        unlikely.
        """
        scores = self.score(text)
        either = combine_scores(scores)
        silenced = overrules and either < OVERRULED and len(matched) < AGREED
        signs = {} if silenced else dict(matched)
        if not signs and either < self.thresholds["zh" if has_cjk(text) else "en"]:
            return signs
        least = max(max(scores) - HARDLY_LESS, LIKELY if signs else -inf)
        for kind, score in zip(KINDS, scores, strict=True):
            if score >= least:
                signs[f"classifier: {kind}"] = kind
        return signs

    def score(self, text: str) -> tuple[float, ...]:
        """Log-odds of each kind against none."""
        values = hash_features(text, self.spelling)
        return tuple(
            bias
            + self.scale
            * sum(self.weights[at * BUCKETS + place] * v for place, v in values.items())
            for at, bias in enumerate(self.bias)
        )


def combine_scores(scores: Iterable[float]) -> float:
    """Log-odds of any kind against none, from those of each."""
    return log(sum(exp(min(score, 500.0)) for score in scores))


def hash_features(text: str, spelling: Spelling) -> dict[int, float]:
    """The places of a text's features, each group of them of length 1."""
    spelled = spelling.apply(text[:LONGEST])
    values: dict[int, float] = {}
    for group, features in (
        ("w", _words(spelled)),
        ("l", _letters(spelled)),
        ("c", _characters(spelled)),
    ):
        places = {zlib.crc32(f"{group}{feature}".encode()) % BUCKETS for feature in features}
        for place in places:
            values[place] = values.get(place, 0.0) + 1 / sqrt(len(places))
    return values


def _words(said: str) -> Iterator[str]:
    """Words, and pairs of neighbours."""
    words = _WORD.findall(said)
    yield from words
    yield from map(" ".join, pairwise(words))


def _letters(said: str) -> Iterator[str]:
    """Runs of three to five letters, with the ends of words."""
    for word in _WORD.findall(said):
        yield from _runs(f" {word} ", 3, 5)


def _characters(said: str) -> Iterator[str]:
    """Runs of one to three Chinese characters; every number is the same."""
    for run in _HAN.findall(_DIGITS.sub("\u3007", said)):
        yield from _runs(run, 1, 3)


def _runs(text: str, least: int, most: int) -> Iterator[str]:
    return (
        text[at : at + length]
        for length in range(least, most + 1)
        for at in range(len(text) - length + 1)
    )


@cache
def packaged_classifier() -> DangerClassifier:
    """The classifier that comes with Osler."""
    folder = files("osler.danger")
    card = json.loads(folder.joinpath("classifier.json").read_text(encoding="utf-8"))
    weights = zlib.decompress(folder.joinpath("classifier.bin").read_bytes())
    return DangerClassifier(
        memoryview(weights).cast("b"),
        card["scale"],
        tuple(card["bias"][kind] for kind in KINDS),
        card["thresholds"],
        packaged_rules().finder.spelling,
    )
