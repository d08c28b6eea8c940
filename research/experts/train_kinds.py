"""Trains the expert `kinds`: what a sentence of a medical text tells.

    PYTHONPATH=benchmarks python research/experts/train_kinds.py --data FOLDER --out FOLDER

MedQuAD's answers stand under questions of a stated type. Their first sentences, without question
and heading, and an encoder's vectors of them make a multinomial logistic regression: one over the
packaged encoder, and one over the multilingual encoder, for Chinese sentences. The pages of the
test part measure, beside the most frequent kind.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from expert_folders import compare_rights, write_expert
from expert_sets import LICENCES, SPLIT, judged_pages
from natural.published import MEDQUAD, Part, hash_of, read_medquad_pages, read_split
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from osler.kb.encoders.base import Encoder, MiniLMEncoder
from osler.kb.encoders.e5 import E5Encoder
from osler.retrieve.experts.cards import BASE, ExpertCard, ExpertData
from osler.retrieve.experts.kinds import KINDS
from osler.text import split_sentences
from osler.types import Language

_TYPES: Mapping[str, str] = {
    "treatment": "treatment",
    "symptoms": "symptoms",
    "causes": "causes",
    "susceptibility": "causes",
    "exams and tests": "diagnosis",
    "stages": "diagnosis",
    "prevention": "prevention",
    "complications": "outlook",
    "outlook": "outlook",
    "information": "definition",
    "inheritance": "inheritance",
    "genetic changes": "inheritance",
    "frequency": "frequency",
    "considerations": "other",
    "research": "other",
}
"""Kinds by MedQuAD's types of questions; further types are few, and about drugs."""
_FIRST, _MOST = 8, 2_600
"""Sentences of an answer that are read, and of a kind that are learnt from."""
_SHORTEST, _LONGEST = 25, 320
STRENGTH = 4.0
"""Inverse of the ridge."""


@dataclass(frozen=True, slots=True)
class KindSentence:
    text: str
    kind: str


def read_kind_sentences(data: Path, part: Part, seed: int = 0) -> list[KindSentence]:
    """Sentences of one part of MedQuAD's pages, at most `_MOST` of a kind, drawn by `seed`."""
    found = list(_read_sentences(data, part))
    random.Random(seed).shuffle(found)
    counts = Counter[str]()
    kept = []
    for one in found:
        if counts[one.kind] < _MOST:
            counts[one.kind] += 1
            kept.append(one)
    return kept


def _read_sentences(data: Path, part: Part) -> Iterator[KindSentence]:
    split, judged = read_split(SPLIT), judged_pages(data)
    for page in read_medquad_pages(data):
        if split.parts.get(hash_of(f"{MEDQUAD}:{page.id}")) != part or page.id in judged:
            continue
        for _, type_, _, answer in page.pairs:
            if kind := _TYPES.get(type_.casefold()):
                spans = split_sentences(answer)
                texts = [answer[start:end] for start, end in spans]
                fit = [text for text in texts if _SHORTEST < len(text) < _LONGEST]
                yield from (KindSentence(text, kind) for text in fit[:_FIRST])


def train_kinds(
    data: Path, out: Path, encoders: Mapping[Language, Encoder] | None = None, seed: int = 0
) -> ExpertCard:
    """Writes the expert into `out`. Every kind counts as much as another."""
    encoders = encoders or {"en": MiniLMEncoder(), "zh": E5Encoder()}
    learnt, test = (read_kind_sentences(data, part, seed) for part in ("train", "test"))
    usual = Counter(one.kind for one in learnt).most_common(1)[0][0]
    rule = [float(one.kind == usual) for one in test]
    tensors, figures = {}, []
    for language, encoder in encoders.items():
        model = LogisticRegression(C=STRENGTH, max_iter=500, class_weight="balanced")
        vectors = encode(encoder, learnt)
        middle = vectors.mean(axis=0)
        model.fit(vectors - middle, [one.kind for one in learnt])
        guessed = model.predict(encode(encoder, test) - middle)
        ours = [float(kind == one.kind) for kind, one in zip(guessed, test, strict=True)]
        tensors[f"weights_{language}"] = model.coef_.astype(np.float32)
        tensors[f"bias_{language}"] = (model.intercept_ - model.coef_ @ middle).astype(np.float32)
        on = f"medquad, test: sentences, the encoder of {language}"
        figures.append(compare_rights(on, "the kind is right", ours, usual, rule))
    return write_expert(
        out,
        tensors,
        name=KINDS,
        question="What does this sentence tell: a treatment, symptoms, causes, ...?",
        family="linear",
        replaces="the order by nearness among sentences of one section",
        made="research/experts/train_kinds.py --data FOLDER --out FOLDER",
        seed=seed,
        base=BASE,
        default=True,
        languages=tuple(encoders),
        weak=(
            "Chinese by what the multilingual encoder makes of English sentences",
            "kinds of questions that MedQuAD asks, of consumers' pages: a guideline's wording lies"
            " further away, and a drug's pages are not in it",
            "advice on tests and on prevention reads like treatment",
        ),
        features=tuple(model.classes_),
        data=(
            ExpertData(
                name=MEDQUAD, licence=LICENCES[MEDQUAD], train=len(learnt), dev=0, test=len(test)
            ),
        ),
        figures=tuple(figures),
    )


def encode(encoder: Encoder, sentences: Sequence[KindSentence]) -> NDArray[np.float32]:
    return np.asarray(encoder.encode([one.text for one in sentences], kind="passage"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with MedQuAD in it")
    parser.add_argument("--out", type=Path, required=True, help="folder for the expert")
    given = parser.parse_args()
    card = train_kinds(given.data, given.out)
    for one in card.figures:
        print(f"{card.identity}: {one.on}: {one.expert}, {one.rule} {one.rule_figure}")


if __name__ == "__main__":
    main()
