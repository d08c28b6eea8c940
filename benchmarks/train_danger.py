"""Fits the classifier that stands beside the rules for people in danger.

    python benchmarks/train_danger.py [--data FOLDER]

writes packages/osler/src/osler/danger/classifier.*

It is fitted to the labelled questions that were looked at before (`tests/fixtures/danger`) and
to questions of open data sets in FOLDER, which count as no danger unless a rule applies. The
threshold of each language is the one that lets `FALSE_ALARMS` of the look-alikes of `PLAIN` pass in
cross-validation: the newest parts, in the words of people who ask.
Only weights are kept of the data sets. scikit-learn is needed; the same
versions give the same file.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from danger import NONE, TRAINED_ON, LabelledText, read_cases, seen_by_rules
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from osler.danger import notice
from osler.danger.notice import BUCKETS, KINDS, combine_scores, hash_features
from osler.danger.rules import packaged_rules

TARGET = Path(notice.__file__).parent
LABELS = Path(__file__).parents[1] / "research" / "experts" / "judge_labels.jsonl"
FALSE_ALARMS = 0.02
NATURAL = "natural"
PLAIN = ("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", NATURAL)
LEAST = 1.5
"""Least threshold: below it a tenth to a fifth of plain questions (dev half) had the notice."""
FOLDS = 5
FITTED = {"C": 30.0, "max_iter": 1_000, "tol": 1e-4}
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


def featurize(texts: Questions) -> csr_matrix:
    """One row a text, of `BUCKETS` columns."""
    spelling = packaged_rules().finder.spelling
    rows = [hash_features(text, spelling) for text in texts]
    values = [value for row in rows for value in row.values()]
    columns = [place for row in rows for place in row]
    starts = np.cumsum([0, *map(len, rows)])
    return csr_matrix((values, columns, starts), shape=(len(rows), BUCKETS))


def fit_weights(rows: csr_matrix, labels: Sequence[str], calm: csr_matrix) -> tuple[Any, Any]:
    """Weights (kinds, `BUCKETS`) and bias of each kind against none."""
    every = [*labels, *[NONE] * calm.shape[0]]
    counts = [1.0] * len(labels) + [WEIGHT] * calm.shape[0]
    model = LogisticRegression(**FITTED).fit(vstack([rows, calm]), every, sample_weight=counts)
    at = {label: place for place, label in enumerate(model.classes_)}
    none = at[NONE]
    weights = np.stack([model.coef_[at[kind]] - model.coef_[none] for kind in KINDS])
    return weights, np.array([model.intercept_[at[k]] - model.intercept_[none] for k in KINDS])


def choose_thresholds(
    cases: Sequence[LabelledText], rows: csr_matrix, calm: csr_matrix
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """By language: the threshold, and what cross-validation sees above it."""
    folds = np.random.default_rng(0).integers(0, FOLDS, len(cases))
    labels = np.array([case.label for case in cases])
    odds = np.zeros(len(cases))
    for fold in range(FOLDS):
        kept = folds != fold
        weights, bias = fit_weights(rows[kept], labels[kept], calm)
        scores = rows[~kept] @ weights.T + bias
        odds[~kept] = [combine_scores(map(float, row)) for row in scores]
    thresholds, figures = {}, {}
    for language in ("en", "zh"):
        own = np.array([case.language == language and case.part in PLAIN for case in cases])
        danger = labels != NONE
        least = float(np.quantile(odds[own & ~danger], 1 - FALSE_ALARMS))
        least = max(least, LEAST)
        thresholds[language] = round(least, 3)
        figures[language] = {
            "false alarms": round(float((odds[own & ~danger] >= least).mean()), 3),
            "recall": round(float((odds[own & danger] >= least).mean()), 3),
        }
    return thresholds, figures


def fit_classifier(folder: Path | None) -> tuple[bytes, dict[str, Any]]:
    """The file of weights, and the card."""
    cases = [*read_cases(TRAINED_ON), *(read_natural(folder) if folder else ())]
    others, counts = sample_open_sets(folder) if folder else ([], {})
    rows, calm = featurize([case.text for case in cases]), featurize(others)
    thresholds, figures = choose_thresholds(cases, rows, calm)
    weights, bias = fit_weights(rows, [case.label for case in cases], calm)
    scale = float(np.abs(weights).max()) / 127
    packed = zlib.compress(np.rint(weights / scale).astype(np.int8).tobytes(), 9)
    card = {
        "made by": "python benchmarks/train_danger.py --data FOLDER",
        "scale": scale,
        "bias": dict(zip(KINDS, map(float, bias), strict=True)),
        "thresholds": thresholds,
        "cross-validation": figures,
        "fitted to": dict(Counter(f"{case.part}: {case.label}, {case.language}" for case in cases)),
        "open data sets, as no danger": counts,
        "weights": hashlib.sha256(packed).hexdigest(),
        "limits": [
            "no clinician has read the questions",
            "it sees words, not people: what it misses, and what it takes for danger, is in"
            " research/log/safety.md",
        ],
    }
    return packed, card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    packed, card = fit_classifier(parser.parse_args().data)
    (TARGET / "classifier.bin").write_bytes(packed)
    text = json.dumps(card, ensure_ascii=False, indent=1)
    (TARGET / "classifier.json").write_text(f"{text}\n", encoding="utf-8")
    print(text, f"\n{len(packed):,} bytes")


if __name__ == "__main__":
    main()
