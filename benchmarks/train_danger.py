"""Fits the classifier that stands beside the rules for people in danger.

    python benchmarks/train_danger.py [--data FOLDER]

writes packages/osler/src/osler/danger/classifier.* and meanings.bin

It is fitted to the labelled questions that were looked at before (`tests/fixtures/danger`), to the
questions of `benchmarks/plain` that are no emergency (`danger_in_plain.txt` names those that may
be) and to questions of open data sets in FOLDER, which count as no danger unless a rule applies.
Each fold of the cross-validation leaves out whole sets, each by another hand (`FOLDS`); a
language's thresholds are those with which rules and classifier together see most, while they give
the notice to no more than `FALSE_ALARMS` of the look-alikes left out (`FALSE_ALARMS_OF_WORDS`
without vectors).
Only weights are kept of the data sets. scikit-learn and the packaged encoders are needed; the same
versions give the same file.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from danger import NONE, TRAINED_ON, LabelledText, read_cases, seen_by_rules
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from osler.build.hub import open_e5, open_minilm
from osler.danger import notice
from osler.danger.notice import AGREED, BUCKETS, KINDS, MEANT, combine_scores, hash_features
from osler.danger.rules import packaged_rules
from osler.kb.encoders.minilm import DIMENSION
from osler.llm.core.cache import cache_dir
from osler.text import has_cjk
from osler.types import Language

TARGET = Path(notice.__file__).parent
HERE = Path(__file__).parent
LABELS = HERE.parent / "research" / "experts" / "judge_labels.jsonl"
FALSE_ALARMS = 0.03
FALSE_ALARMS_OF_WORDS = 0.04
"""Without an encoder: what is missed weighs more."""
SILENCES = (-1.0, 0.0, 0.5, 1.0)
"""Log-odds below which rules do not count, tried in this order."""
NATURAL = "natural"
PLAIN = "plain "
FOLDS = (
    ("seventh", "twelfth", "seventeenth", "training_ninth"),
    ("eighth", "thirteenth", "training_third", "training_seventh"),
    ("ninth", "fourteenth", "sixth", "eighteenth", "training_tenth"),
    ("tenth", "fifteenth", "fifth", "training_eighth"),
    ("eleventh", "sixteenth", "training_fourth", "training_sixth", "training_eleventh"),
)
"""Sets that are left out together; the writer of `training_sixth` had read the sixteenth. Natural
and plain questions are spread over all folds, the other parts always trained on."""
FITTED = {"C": 30.0, "max_iter": 300, "tol": 1e-3}
UNITS = 32
LENGTH = 2.0
"""Of a vector, while it is fitted."""
SHARE = 0.8
"""Of the vectors' log-odds, beside those of words. A linear model over vectors, .5 of it, sees .024
less in English and .003 less in Chinese of the sets left out, at as many false alarms."""
EACH_SET = 800
"""Questions of one data set, so that none outweighs the others."""
LONGEST = 300
WEIGHT = 0.3
"""Of such a question, beside one that was labelled."""

Questions = Sequence[str]


def read_open_sets(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The questions of each open data set, none of a test split: name and licence, and texts."""
    asked = folder / "A_questions"
    pubmed = json.loads((asked / "pubmedqa" / "ori_pqal_rest.json").read_text("utf-8"))
    yield "PubMedQA, not its test questions (MIT)", [one["QUESTION"] for one in pubmed.values()]
    long = json.loads((asked / "omnirag_long" / "train_long.json").read_text("utf-8"))
    yield "Omni-RAG long-form, train (Apache-2.0)", [one["question"] for one in long]
    dialogues = folder / "B_corpora" / "zh" / "样例_内科.csv"
    with dialogues.open(encoding="gb18030") as file:
        rows = list(csv.DictReader(file))
    name = "Chinese medical dialogues (MIT)"
    yield f"{name}, titles", [row["title"] for row in rows]
    yield f"{name}, questions", [row["ask"] for row in rows]


def read_natural(folder: Path) -> list[LabelledText]:
    """Questions as people type them, which tell of no danger: those that were written for the
    judge, of K-QA (MIT) and MeQSum (CC BY 4.0), and of Chinese consumers (MIT)."""
    asked = folder / "A_questions"
    lines = LABELS.read_text("utf-8").splitlines()
    written = [json.loads(line).get("question", "") for line in lines]
    for name, key in (("kqa/questions.jsonl", "Question"), ("meqsum/meqsum.jsonl", "question")):
        rows = (asked / name).read_text("utf-8").splitlines()
        written += [json.loads(row).get(key) or "" for row in rows]
    consumers = (asked / "zh_consumer" / "zh_consumer.jsonl").read_text("utf-8").splitlines()
    chinese = [json.loads(row)["ask"] for row in consumers]
    random.Random(1).shuffle(chinese)
    return [
        LabelledText(NATURAL, NONE, language, text[:LONGEST])
        for language, texts in (("en", written), ("zh", chinese[:EACH_SET]))
        for text in sorted({one for one in texts if one and not seen_by_rules(one)})
    ]


def read_plain() -> list[LabelledText]:
    """The natural questions of the plain benchmark, without those that ask for first aid."""
    left_out = set((HERE / "danger_in_plain.txt").read_text("utf-8").split())
    return [
        LabelledText(PLAIN + path.stem, NONE, row["language"], row["text"])
        for path in sorted((HERE / "plain").glob("*.jsonl"))
        for row in map(json.loads, path.read_text("utf-8").splitlines())
        if row["id"] not in left_out and row["kind"] != "first-aid"
    ]


def sample_open_sets(folder: Path) -> tuple[list[str], dict[str, int]]:
    """Questions without danger, and how many of each set."""
    texts: list[str] = []
    counts = {}
    for name, asked in read_open_sets(folder):
        calm = sorted({text[:LONGEST] for text in asked if not seen_by_rules(text)})
        random.Random(0).shuffle(calm)
        counts[name] = len(calm[:EACH_SET])
        texts += calm[:EACH_SET]
    return texts, counts


def language_of(text: str) -> str:
    return "zh" if has_cjk(text) else "en"


def featurize(texts: Questions) -> csr_matrix:
    """One row a text, of `BUCKETS` columns."""
    spelling = packaged_rules().finder.spelling
    rows = [hash_features(text, spelling) for text in texts]
    values = [value for row in rows for value in row.values()]
    columns = [place for row in rows for place in row]
    starts = np.cumsum([0, *map(len, rows)])
    return csr_matrix((values, columns, starts), shape=(len(rows), BUCKETS))


def encode(texts: Questions) -> tuple[Any, dict[str, Any]]:
    """Vectors (texts, dimension) of length `LENGTH`, and the usual one of each language."""
    vectors, usual = np.zeros((len(texts), DIMENSION)), {}
    for language, load in (("en", open_minilm), ("zh", open_e5)):
        rows = [at for at, text in enumerate(texts) if language_of(text) == language]
        own = load(cache_dir()).encode([texts[at][: notice.LONGEST] for at in rows], kind="query")
        usual[language] = own.mean(axis=0).astype("<f4")
        moved = own - usual[language]
        vectors[rows] = LENGTH * moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return vectors, usual


def fit_weights(
    rows: Any, labels: Sequence[str], counts: Sequence[float], fitted: dict[str, float]
) -> tuple[Any, Any]:
    """Weights (kinds, columns) and bias of each kind against none."""
    model = LogisticRegression(**fitted).fit(rows, labels, sample_weight=counts)
    at = {label: place for place, label in enumerate(model.classes_)}
    none = at[NONE]
    weights = np.stack([model.coef_[at[kind]] - model.coef_[none] for kind in KINDS])
    return weights, np.array([model.intercept_[at[k]] - model.intercept_[none] for k in KINDS])


@dataclass
class Table:
    """What is fitted to: texts, labels, weights of texts, languages and features."""

    cases: list[LabelledText]
    counts: Any
    words: csr_matrix
    vectors: Any
    folds: Any
    """Of each text; -1: always trained on."""

    def __post_init__(self) -> None:
        self.labels = np.array([case.label for case in self.cases])
        self.languages = np.array([language_of(case.text) for case in self.cases])

    def fit_words(self, kept: Any) -> tuple[Any, Any]:
        return fit_weights(self.words[kept], self.labels[kept], self.counts[kept], FITTED)

    def fit_vectors(self, kept: Any, language: str) -> list[Any]:
        """Weights over vectors (units, dimension) with their biases, and over units (kinds, units)
        with theirs; texts of open sets count as others do."""
        own = kept & (self.languages == language)
        network = MLPClassifier((UNITS,), alpha=0.1, max_iter=60, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            network.fit(self.vectors[own], self.labels[own])
        at = {label: place for place, label in enumerate(network.classes_)}
        (units, out), (bias, last) = network.coefs_, network.intercepts_
        kinds = np.stack([out[:, at[kind]] - out[:, at[NONE]] for kind in KINDS])
        ends = np.array([last[at[kind]] - last[at[NONE]] for kind in KINDS])
        return [units.T, bias, SHARE * kinds, SHARE * ends]

    def score_folds(self) -> tuple[Any, Any]:
        """Log-odds (texts, kinds) by words alone, and with vectors, of what is left out."""
        words = np.full((len(self.cases), len(KINDS)), np.nan)
        both = words.copy()
        for fold in range(len(FOLDS)):
            kept = self.folds != fold
            weights, bias = self.fit_words(kept)
            words[~kept] = self.words[~kept] @ weights.T + bias
            for language in MEANT:
                own = ~kept & (self.languages == language)
                units, bias, kinds, ends = self.fit_vectors(kept, language)
                shown = np.maximum(self.vectors[own] @ units.T + bias, 0)
                both[own] = words[own] + shown @ kinds.T + ends
        return words, both


def place_folds(cases: Sequence[LabelledText]) -> Any:
    chance = np.random.default_rng(1).integers(0, len(FOLDS), len(cases))
    files = sorted({case.part for case in cases if case.part.startswith(PLAIN)})
    held = {part: fold for fold, parts in enumerate(FOLDS) for part in parts}
    held |= {part: at % len(FOLDS) for at, part in enumerate(files)}
    return np.array(
        [
            int(some) if case.part == NATURAL else held.get(case.part, -1)
            for case, some in zip(cases, chance, strict=True)
        ]
    )


def choose_thresholds(
    table: Table, scores: Any, most: float
) -> tuple[dict[Language, tuple[float, float]], dict[Language, dict[str, float]]]:
    """By language: from where on the classifier speaks and below what it silences rules, and what
    rules and classifier see then of what was left out."""
    odds = np.array([combine_scores(map(float, row)) for row in scores])
    matched = np.array([len(packaged_rules().match(case.text)) for case in table.cases])
    parts = {part for parts in FOLDS for part in parts if part != "training_sixth"}
    sets = np.array([case.part in parts for case in table.cases])
    plain = np.array([case.part.startswith(PLAIN) for case in table.cases])
    danger = table.labels != NONE
    thresholds: dict[Language, tuple[float, float]] = {}
    figures: dict[Language, dict[str, float]] = {}
    for language in MEANT:
        own = table.languages == language
        best = -1.0
        for silences in SILENCES:
            ruled = (matched > 0) & ~((odds < silences) & (matched < AGREED))
            for least in np.arange(0, 3, 0.05):
                seen = ruled | (odds >= least)
                recall = float(seen[own & sets & danger].mean())
                alarms = float(seen[own & sets & ~danger].mean())
                if alarms <= most and recall > best:
                    best = recall
                    thresholds[language] = (round(float(least), 2), silences)
                    figures[language] = {
                        "recall": round(recall, 3),
                        "false alarms": round(alarms, 3),
                        "false alarms, plain questions": round(float(seen[own & plain].mean()), 3),
                    }
    return thresholds, figures


def fit_classifier(folder: Path | None) -> tuple[bytes, bytes, dict[str, Any]]:
    """The files of weights of words and of vectors, and the card."""
    cases = [*read_cases(TRAINED_ON), *(read_natural(folder) if folder else ()), *read_plain()]
    others, counts = sample_open_sets(folder) if folder else ([], {})
    every = [*cases, *(LabelledText("open", NONE, language_of(text), text) for text in others)]
    texts = [case.text for case in every]
    vectors, usual = encode(texts)
    weighed = np.array([WEIGHT if case.part == "open" else 1.0 for case in every])
    table = Table(every, weighed, featurize(texts), vectors, place_folds(every))
    words, both = table.score_folds()
    thresholds, figures = choose_thresholds(table, words, FALSE_ALARMS_OF_WORDS)
    meant, meant_figures = choose_thresholds(table, both, FALSE_ALARMS)
    kept = np.ones(len(every), bool)
    weights, bias = table.fit_words(kept)
    scale = float(np.abs(weights).max()) / 127
    packed = zlib.compress(np.rint(weights / scale).astype(np.int8).tobytes(), 9)
    rows: list[Any] = []
    for language in MEANT:
        units, ends, kinds, last = table.fit_vectors(kept, language)
        rows += [usual[language], np.column_stack([LENGTH * units, ends])]
        rows.append(np.column_stack([kinds, last]))
    meanings = np.concatenate([one.ravel() for one in rows]).astype("<f4").tobytes()
    card = {
        "made by": "python benchmarks/train_danger.py --data FOLDER",
        "scale": scale,
        "bias": dict(zip(KINDS, map(float, bias), strict=True)),
        "thresholds": thresholds,
        "thresholds with vectors": meant,
        "units": UNITS,
        "sets left out, by words": figures,
        "sets left out, with vectors": meant_figures,
        "fitted to": dict(Counter(f"{case.part}: {case.label}, {case.language}" for case in cases)),
        "open data sets, as no danger": counts,
        "weights": hashlib.sha256(packed).hexdigest(),
        "weights of vectors": hashlib.sha256(meanings).hexdigest(),
        "limits": [
            "no clinician has read the questions",
            "it sees words, not people: what it misses, and what it takes for danger, is in"
            " research/log/safety.md",
        ],
    }
    return packed, meanings, card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    packed, meanings, card = fit_classifier(parser.parse_args().data)
    (TARGET / "classifier.bin").write_bytes(packed)
    (TARGET / "meanings.bin").write_bytes(meanings)
    text = json.dumps(card, ensure_ascii=False, indent=1)
    (TARGET / "classifier.json").write_text(f"{text}\n", encoding="utf-8")
    print(text, f"\n{len(packed):,} bytes")


if __name__ == "__main__":
    main()
