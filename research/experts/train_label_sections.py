"""Trains the expert `label-sections`: which section of a drug's label answers a question.

    PYTHONPATH=benchmarks python research/experts/train_label_sections.py --out FOLDER

`label_questions.tsv` has questions of two hands; one is learnt from and the other measures, beside
the most frequent kind, and what ships has learnt from both.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from expert_folders import compare_rights, write_expert
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.retrieve.experts.cards import BASE, ExpertCard, ExpertData
from osler.retrieve.experts.label_sections import LABEL_SECTIONS

QUESTIONS = Path(__file__).with_name("label_questions.tsv")
STRENGTH = 8.0
"""Inverse of the ridge."""


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    hand: str
    kind: str
    text: str


def read_labelled() -> list[LabelledQuestion]:
    lines = QUESTIONS.read_text(encoding="utf-8").splitlines()
    return [LabelledQuestion(*line.split("\t")) for line in lines if not line.startswith("#")]


def train_label_sections(out: Path, encoder: Encoder | None = None, seed: int = 0) -> ExpertCard:
    """Writes the expert into `out`. Every kind counts as much as another."""
    encoder = encoder or MiniLMEncoder()
    asked = read_labelled()
    vectors = np.asarray(encoder.encode([one.text for one in asked], kind="query"))
    figures = []
    for hand in sorted({one.hand for one in asked}):
        learnt = [at for at, one in enumerate(asked) if one.hand != hand]
        test = [at for at, one in enumerate(asked) if one.hand == hand]
        model = _fit(vectors, asked, learnt)
        usual = Counter(asked[at].kind for at in learnt).most_common(1)[0][0]
        guessed = model.predict(vectors[test])
        ours = [float(kind == asked[at].kind) for kind, at in zip(guessed, test, strict=True)]
        rule = [float(asked[at].kind == usual) for at in test]
        figures.append(compare_rights(f"hand {hand}", "the kind is right", ours, usual, rule))
    model = _fit(vectors, asked, range(len(asked)))
    return write_expert(
        out,
        {
            "weights": model.coef_.astype(np.float32),
            "bias": model.intercept_.astype(np.float32),
        },
        name=LABEL_SECTIONS,
        question="Which section of a drug's label answers this question?",
        family="linear",
        replaces="nearness of the question to the section's heading",
        made="research/experts/train_label_sections.py --out FOLDER",
        seed=seed,
        base=BASE,
        default=True,
        weak=("English only", "what several sections may answer: how to stop, use in the elderly"),
        features=tuple(model.classes_),
        data=(
            ExpertData(
                name="label_questions.tsv", licence="Apache-2.0", train=len(asked), dev=0, test=0
            ),
        ),
        figures=tuple(figures),
    )


def _fit(
    vectors: NDArray[np.float32], asked: Sequence[LabelledQuestion], learnt: Sequence[int]
) -> LogisticRegression:
    model = LogisticRegression(C=STRENGTH, max_iter=800, class_weight="balanced")
    return model.fit(vectors[list(learnt)], [asked[at].kind for at in learnt])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the expert")
    card = train_label_sections(parser.parse_args().out)
    for one in card.figures:
        print(f"{card.identity}: {one.on}: {one.expert}, {one.rule} {one.rule_figure}")


if __name__ == "__main__":
    main()
