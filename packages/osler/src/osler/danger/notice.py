"""Finds danger in a text, by the rules and a small classifier beside them, and words the notice.

The classifier is for what people say in words that no list has: a linear model over words, pairs
of words, letters within words and Chinese characters, each hashed to one of `BUCKETS` places; its
weights are one byte each. Where the multilingual encoder is installed, three small networks over
what its layers say of each piece are added (`meaning.npz`): they see what is meant in words that
were never seen. Both were fitted by `benchmarks/train_danger.py` to labelled questions, and
`classifier.json` is their card. They ask no language model and can be switched off
(`danger.classifier = off`). The classifier speaks where no rule applies, adds the kind that a rule
lacks, and silences a packaged rule where it finds danger unlikely; a hospital's own rules always
count.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from math import exp, log, sqrt
from typing import Any

from osler.danger.phrases import Spelling
from osler.danger.rules import DangerRules, packaged_rules
from osler.text import has_cjk, read_packaged_table, split_sentences
from osler.types import DangerKind, DangerNotice, Language

BUCKETS = 1 << 16
LONGEST = 2_000
"""Characters of a text that are read, from its beginning."""
KINDS: tuple[DangerKind, ...] = ("emergency", "self-harm")
LANGUAGES: tuple[Language, ...] = ("en", "zh")
SHARE = 0.5
"""Of the words' log-odds, beside those of the pieces."""
CALM = -4.0
"""Log-odds by words below which an English question without a rule is not read by the encoder,
which takes half a second to load: of those left out 1 % in danger are there and 75 % of plain
questions."""
LIKELY = 0.5
"""Log-odds from which a kind is named beside what a rule says, or beside the likelier kind."""
BY_RULE, BY_ITSELF = 2.0, 8.0
"""Log-odds above the threshold from which one sentence of several is danger: one to which a rule
applies, and one without. Behind three plain sentences 169 and 148 of 200 texts of danger are seen
(English, Chinese), 97 and 86 as a whole, and 1 and 1 of 200 look-alikes, 2 and 1."""
SENTENCES = 40
"""Sentences of a text that are weighed one by one, from its beginning."""
HARDLY_LESS = 4.0
"""How far below the likelier kind the other may be, and be named too."""

_TOKEN = re.compile(r"[a-z]+|\d+")
_HAN = re.compile(r"[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff]+")
_DIGITS = re.compile(r"\d+")


Meaning = Callable[[str], Sequence[float] | None]
"""Log-odds of each kind against none by what the encoder says of a text; `None` without it, and
where there is nothing to read."""


@dataclass(frozen=True)
class DangerClassifier:
    """Weights of each kind against none, in bytes, kind after kind."""

    weights: memoryview
    scale: float
    bias: tuple[float, ...]
    """Of each kind, as the weights."""
    thresholds: Mapping[Language, tuple[float, float]]
    """Log-odds of any danger from which on a question counts, and below which a packaged rule does
    not, by language, where there is no encoder."""
    spelling: Spelling
    meant: Mapping[Language, tuple[float, float]]
    """The thresholds where there is one."""

    def weigh_signs(
        self,
        text: str,
        matched: Mapping[str, DangerKind],
        *,
        overrules: bool,
        meaning: Meaning | None = None,
        above: float | None = None,
    ) -> dict[str, DangerKind]:
        """What counts of `matched` (rules by name), and the kinds that the classifier adds.

        That is the likelier kind, from the threshold of either on where no rule applies; and each
        kind that is likely by itself and not far less so, beside it or beside a rule. With
        `overrules`, rules do not count where danger is unlikely, unless the words alone would
        speak. Where `above` is given, nothing counts that lies not so far above the threshold.
        """
        language: Language = "zh" if has_cjk(text) else "en"
        scores = self.score(text)
        by_words = combine_scores(scores)
        if language == "en" and not matched and by_words < CALM:
            return {}
        meant = meaning(text[:LONGEST]) if meaning else None
        if meant is not None:
            scores = tuple(SHARE * one + other for one, other in zip(scores, meant, strict=True))
        either = combine_scores(scores)
        speaks, silences = (self.thresholds if meant is None else self.meant)[language]
        alone = by_words < self.thresholds[language][0]
        silenced = overrules and either < silences and alone
        signs = {} if silenced else dict(matched)
        if above is not None and either < speaks + above:
            return {}
        if not signs and either < speaks:
            return signs
        likely = LIKELY if signs else min(LIKELY, max(scores))
        enough = max(likely, max(scores) - HARDLY_LESS)
        for kind, score in zip(KINDS, scores, strict=True):
            if score >= enough:
                signs[f"classifier: {kind}"] = kind
        return signs

    def score(self, text: str) -> tuple[float, ...]:
        """Log-odds of each kind against none, by words alone."""
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
    for group, read in (("w", _words), ("l", _letters), ("c", _characters)):
        places = {zlib.crc32(f"{group}{one}".encode()) % BUCKETS for one in read(spelled)}
        for place in places:
            values[place] = values.get(place, 0.0) + 1 / sqrt(len(places))
    return values


def _words(said: str) -> Iterator[str]:
    """Words, and pairs of neighbours."""
    words = _TOKEN.findall(said)
    yield from words
    yield from map(" ".join, pairwise(words))


def _letters(said: str) -> Iterator[str]:
    """Runs of three to five letters, with the ends of words."""
    for word in _TOKEN.findall(said):
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
        card["thresholds with an encoder"],
    )


ANYWHERE = "any"
"""The region that names no numbers."""

# "And in pregnancy?": three words after the preposition are too few for a classifier of n-grams,
# which takes them for the end of an emergency. Rules read them as they read everything.
_ADDITION = re.compile(
    r"(?:and|but|what about|how about)\s+(?:in|for|with|during|after|before|at)\s+"
    r"(?:\w+\s+){0,2}\w+\s*\?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4}")

_Words = dict[Language, str]


@dataclass(frozen=True, slots=True)
class Contacts:
    """Emergency contacts, worded to follow "call"."""

    emergency: _Words
    crisis: _Words
    note: str = ""
    """A place's own text, which ends the notice in every language."""


def region_names() -> tuple[str, ...]:
    return tuple(_read_contacts()["regions"])


def regional_contacts(
    region: str, *, emergency: str = "", crisis: str = "", note: str = ""
) -> Contacts:
    """The numbers of a region; those given take their place. Raises `KeyError`."""
    known = _read_contacts()["regions"][region]
    return Contacts(
        {"en": emergency, "zh": emergency} if emergency else known["emergency"],
        {"en": crisis, "zh": crisis} if crisis else known["crisis"],
        note,
    )


def find_danger(
    texts: Iterable[str],
    rules: DangerRules,
    contacts: Contacts,
    language: Language,
    classifier: DangerClassifier | None = None,
    *,
    overrules: bool = False,
    meaning: Meaning | None = None,
) -> DangerNotice | None:
    """The notice for a person's texts; `None` without danger.

    What the rules find counts, and what the `classifier` makes of it and finds by itself; with
    `overrules` it may switch a rule off; with `meaning` it counts what an encoder says of them.
    """
    signs: dict[str, DangerKind] = {}
    for text in texts:
        signs |= find_signs(text, rules, classifier, overrules=overrules, meaning=meaning)
    kinds = tuple(kind for kind in KINDS if kind in signs.values())
    if not kinds:
        return None
    return DangerNotice(kinds, _write_text(kinds, contacts, language), tuple(signs), language)


def find_signs(
    text: str,
    rules: DangerRules,
    classifier: DangerClassifier | None,
    *,
    overrules: bool,
    meaning: Meaning | None = None,
) -> dict[str, DangerKind]:
    """The kind of danger by the name of each rule that applies, the classifier's included."""
    matched = {rule.name: rule.kind for rule in rules.match(text)}
    if classifier is None or _says_too_little(text):
        return matched
    signs = classifier.weigh_signs(text, matched, overrules=overrules, meaning=meaning)
    spans = [] if signs else split_sentences(text)[:SENTENCES]
    # Among plain sentences a grave one is lost on the classifier, so each is read by itself.
    for start, end in spans if len(spans) > 1 else ():
        part = text[start:end]
        own = {rule.name: rule.kind for rule in rules.match(part) if rule.name in matched}
        above = BY_RULE if own else BY_ITSELF
        signs = classifier.weigh_signs(part, own, overrules=overrules, meaning=meaning, above=above)
        if signs:
            break
    return signs


def _says_too_little(text: str) -> bool:
    """An addition, or figures without a word ("BMI of 80 kg and 1.75 m?")."""
    figures = re.search(r"\d", text) and not has_cjk(text) and not _WORD.search(text)
    return bool(figures or _ADDITION.fullmatch(text.strip()))


def _write_text(kinds: tuple[DangerKind, ...], contacts: Contacts, language: Language) -> str:
    words = _read_contacts()["words"]
    said = [words[kind][language] for kind in kinds]
    said.append(words["limits"][language])
    text = ("" if language == "zh" else " ").join(said)
    text = text.format(emergency=contacts.emergency[language], crisis=contacts.crisis[language])
    return f"{text} {contacts.note}".strip()


@cache
def _read_contacts() -> dict[str, Any]:
    return read_packaged_table(__package__, "contacts.toml")
