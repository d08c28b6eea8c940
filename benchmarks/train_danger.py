"""Fits the classifier that stands beside the rules for people in danger.

    python benchmarks/train_danger.py [--data FOLDER]

writes packages/osler/src/osler/danger/classifier.* and meaning.npz

It is fitted to the labelled questions that were looked at before (`tests/fixtures/danger`), to the
questions of `benchmarks/plain` that are no emergency (`danger_in_plain.txt` names those that may
be) and to questions of open data sets in FOLDER, which count as no danger unless a rule applies.
Each fold of the cross-validation leaves out whole sets, each by another hand (`FOLDS`); a
language's thresholds are those with which rules and classifier together see most of them, while
they give the notice to no more than `FALSE_ALARMS_OF_WORDS` of the look-alikes left out; with an
encoder of the sets in `LOOKED_AT`.
Only weights are kept of the data sets. scikit-learn, torch and the packaged encoders are needed;
the same versions give the same files, in half an hour of one core.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import random
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from danger import LOOKED_AT, NONE, TRAINED_ON, LabelledText, read_cases, seen_by_rules
from piece_network import FittedNetwork, Fitting, fit_network
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from osler.build.hub import load_e5
from osler.danger import notice
from osler.danger.notice import (
    BUCKETS,
    KINDS,
    LANGUAGES,
    SHARE,
    combine_scores,
    hash_features,
)
from osler.danger.rules import packaged_rules
from osler.llm.core.cache import cache_dir
from osler.text import has_cjk
from osler.types import Language

TARGET = Path(notice.__file__).parent
HERE = Path(__file__).parent
LABELS = HERE.parent / "research" / "experts" / "judge_labels.jsonl"
NETWORKS = 3
"""Networks that are fitted from other beginnings and heard together: of sets left out they see one
in a hundred more than one alone."""
FALSE_ALARMS = 0.03
FALSE_ALARMS_ALLOWED = 0.02
"""Of the sets that settle the thresholds with an encoder: the next hand's are to stay below .03."""
FALSE_ALARMS_OF_WORDS = 0.04
"""Without an encoder: the look-alikes of training were written to be hard."""
SILENCES = (-2.0, -1.0, 0.0, 0.5, 1.0, 99.0)
"""Log-odds below which rules do not count, tried in this order; at the last none does."""
NATURAL = "natural"
PLAIN = "plain "
FOLDS = tuple(
    tuple(line.split())
    for line in (
        "seventh twelfth seventeenth training_ninth training_twelfth training_seventeenth"
        " training_twenty_first training_twenty_sixth",
        "eighth thirteenth training_third training_seventh training_thirteenth training_eighteenth"
        " training_twenty_fifth",
        "ninth fourteenth sixth eighteenth training_tenth training_fourteenth"
        " training_nineteenth training_twenty_second training_twenty_seventh twenty_second",
        "tenth fifteenth fifth nineteenth twentieth training_eighth training_fifteenth"
        " training_twentieth training_twenty_third training_twenty_eighth",
        "eleventh sixteenth twenty_first training_fourth training_sixth training_eleventh"
        " training_sixteenth training_twenty_fourth twenty_third",
    )
)
"""Sets that are left out together; the writer of `training_sixth` had read the sixteenth. Natural
and plain questions are spread over all folds, the other parts always trained on."""
FITTED = {"C": 30.0, "max_iter": 300, "tol": 1e-3}
MOST_PIECES = 128
"""Of a text, that the network learns from."""
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


def read_pieces(texts: Questions) -> list[Any]:
    """What the encoder says of each piece of each text."""
    encoder = load_e5(cache_dir())
    read = (encoder.read_tokens(text)[1] for text in texts)
    return [pieces[:MOST_PIECES].astype(np.float16) for pieces in read]


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
    pieces: list[Any]
    folds: Any
    """Of each text; -1: always trained on."""

    def __post_init__(self) -> None:
        self.labels = np.array([case.label for case in self.cases])
        self.languages = np.array([language_of(case.text) for case in self.cases])

    def fit_words(self, kept: Any) -> tuple[Any, Any]:
        return fit_weights(self.words[kept], self.labels[kept], self.counts[kept], FITTED)

    def fit_pieces(self, kept: Any) -> list[FittedNetwork]:
        """The networks, each of both languages."""
        kinds = [[NONE, *KINDS].index(label) for label in self.labels[kept]]
        texts = [self.pieces[at] for at in np.flatnonzero(kept)]
        counts = self.counts[kept]
        return [
            fit_network(texts, kinds, counts, Fitting(seed=seed)).less_first()
            for seed in range(NETWORKS)
        ]

    def score_folds(self) -> tuple[Any, Any]:
        """Log-odds (texts, kinds) by words alone, and with the network, of what is left out."""
        words = np.full((len(self.cases), len(KINDS)), np.nan)
        both = words.copy()
        for fold in range(len(FOLDS)):
            kept = self.folds != fold
            weights, bias = self.fit_words(kept)
            words[~kept] = self.words[~kept] @ weights.T + bias
            networks = self.fit_pieces(kept)
            meant = judge_all(networks, [self.pieces[at] for at in np.flatnonzero(~kept)])
            both[~kept] = SHARE * words[~kept] + meant
            print(f"fold {fold + 1} of {len(FOLDS)}", flush=True)
        return words, both


def judge_all(networks: Sequence[FittedNetwork], texts: Sequence[Any]) -> Any:
    """(texts, kinds): log-odds, on average over the networks."""
    packed = [one.pack() for one in networks]
    return np.array([np.mean([one.judge(text) for one in packed], axis=0) for text in texts])


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
    cases: Sequence[LabelledText], scores: Any, parts: Collection[str], most: float
) -> tuple[dict[Language, tuple[float, float]], dict[Language, dict[str, float]]]:
    """By language: from where on the classifier speaks and below what it silences rules, and what
    rules and classifier see then of some parts; that a rule with the words on its side is never
    silenced is left out of account."""
    odds = np.array([combine_scores(map(float, row)) for row in scores])
    matched = np.array([len(packaged_rules().match(case.text)) for case in cases])
    sets = np.array([case.part in parts for case in cases])
    plain = np.array([case.part.startswith(PLAIN) for case in cases])
    danger = np.array([case.label != NONE for case in cases])
    languages = np.array([language_of(case.text) for case in cases])
    thresholds: dict[Language, tuple[float, float]] = {}
    figures: dict[Language, dict[str, float]] = {}
    for language in LANGUAGES:
        own = languages == language
        tried: list[tuple[float, float, float, dict[str, float]]] = []
        for silences in SILENCES:
            ruled = (matched > 0) & ~(odds < silences)
            for least in np.arange(-2, 3, 0.05):
                seen = ruled | (odds >= least)
                recall = float(seen[own & sets & danger].mean())
                told = {"recall": recall, "false alarms": float(seen[own & sets & ~danger].mean())}
                if (own & plain).any():
                    told["false alarms, plain questions"] = float(seen[own & plain].mean())
                if told["false alarms"] <= most:
                    tried.append((recall, silences, float(least), told))
        best, first, *_ = max(tried, key=lambda one: one[0])
        # As many are seen from anywhere between the lowest and the highest: the middle is safest.
        equal = [one for one in tried if one[:2] == (best, first)]
        _, _, least, told = equal[len(equal) // 2]
        thresholds[language] = (round(least, 2), first)
        figures[language] = {name: round(share, 3) for name, share in told.items()}
    return thresholds, figures


def fit_classifier(folder: Path | None) -> tuple[bytes, dict[str, Any], dict[str, Any]]:
    """The file of weights of words, the networks' arrays, and the card."""
    cases = [*read_cases(TRAINED_ON), *(read_natural(folder) if folder else ()), *read_plain()]
    others, counts = sample_open_sets(folder) if folder else ([], {})
    # A text without a letter or a sign has no piece.
    cases = [case for case in cases if case.text.strip()]
    every = [*cases, *(LabelledText("open", NONE, language_of(text), text) for text in others)]
    texts = [case.text for case in every]
    weighed = np.array([WEIGHT if case.part == "open" else 1.0 for case in every])
    table = Table(every, weighed, featurize(texts), read_pieces(texts), place_folds(every))
    left_out = {part for parts in FOLDS for part in parts if part != "training_sixth"}
    words, both = table.score_folds()
    thresholds, figures = choose_thresholds(every, words, left_out, FALSE_ALARMS_OF_WORDS)
    _, meant_figures = choose_thresholds(every, both, left_out, FALSE_ALARMS)
    kept = np.ones(len(every), bool)
    weights, bias = table.fit_words(kept)
    scale = float(np.abs(weights).max()) / 127
    packed = zlib.compress(np.rint(weights / scale).astype(np.int8).tobytes(), 9)
    networks = table.fit_pieces(kept)
    judged = list(read_cases(LOOKED_AT))
    own = featurize([case.text for case in judged]) @ weights.T + bias
    read = judge_all(networks, read_pieces([case.text for case in judged]))
    meant, seen = choose_thresholds(judged, SHARE * own + read, LOOKED_AT, FALSE_ALARMS_ALLOWED)
    card = {
        "made by": "python benchmarks/train_danger.py --data FOLDER",
        "scale": scale,
        "bias": dict(zip(KINDS, map(float, bias), strict=True)),
        "thresholds": thresholds,
        "thresholds with an encoder": meant,
        "sets left out, by words": figures,
        "sets left out, with an encoder": meant_figures,
        "sets that settled the thresholds": seen,
        "fitted to": dict(Counter(f"{case.part}: {case.label}, {case.language}" for case in cases)),
        "open data sets, as no danger": counts,
        "weights": hashlib.sha256(packed).hexdigest(),
        "limits": [
            "no clinician has read the questions",
            "it sees words, not people: what it misses, and what it takes for danger, is in"
            " research/log/safety.md",
        ],
    }
    arrays = [one.name_arrays(f"meaning{n}") for n, one in enumerate(networks)]
    return packed, {name: array for one in arrays for name, array in one.items()}, card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    packed, networks, card = fit_classifier(parser.parse_args().data)
    (TARGET / "classifier.bin").write_bytes(packed)
    np.savez_compressed(TARGET / "meaning.npz", **networks)
    card["weights of pieces"] = hashlib.sha256((TARGET / "meaning.npz").read_bytes()).hexdigest()
    text = json.dumps(card, ensure_ascii=False, indent=1)
    (TARGET / "classifier.json").write_text(f"{text}\n", encoding="utf-8")
    print(text, f"\n{len(packed):,} bytes")


if __name__ == "__main__":
    main()
