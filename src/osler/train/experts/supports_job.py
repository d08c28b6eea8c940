"""Making and measuring the expert `supports`: a softmax regression over cues of the evidence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from osler.errors import BadConfig
from osler.evaluate.intervals import difference
from osler.evaluate.intervals import mean as mean_of
from osler.evaluate.metrics.calibration import calibration_error
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.retrieve.experts.cards import (
    CARD,
    WEIGHTS,
    ExpertCard,
    ExpertData,
    ExpertFigure,
    render_card,
)
from osler.retrieve.experts.cues import FEATURES, measure_cues
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.experts.supporting import VERDICTS, SupportsExpert, Verdict
from osler.train.experts.claims import ClaimQuestion, read_claims
from osler.train.experts.linear import fit_linear, tensors_of, write_safetensors
from osler.train.experts.pair_evaluation import figure_of
from osler.train.experts.pair_questions import LICENCES, PUBMEDQA
from osler.train.experts.splits import PARTS, DataSplit, read_split

if TYPE_CHECKING:
    from osler.retrieve.experts.linear import Matrix

SUPPORTS = "supports"
RIDGES = (10.0, 30.0, 100.0, 300.0)
FOLDS = 10
_WEAK = (
    "it reads the wording of the evidence, not its content: a sentence about something else"
    " counts as far as it shares words with the question",
    "claims that are statements: near chance on HealthVer and CovidFact, which it never saw",
    '"maybe" is hardly ever its first choice',
    "English only",
)


@dataclass(frozen=True)
class SupportsJob:
    """Where the data, the split and the expert's folder are."""

    data: Path
    split: Path
    """As made by the expert `answers`: the same questions are held out."""
    out: Path
    seed: int = 0

    def _read_parts(self) -> tuple[DataSplit, list[ClaimQuestion]]:
        return read_split(self.split), read_claims(self.data)

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Fits on train and dev; the ridge is chosen by cross-validation within them."""
        split, claims = self._read_parts()
        learnt = [one for one in claims if split.part_of(one) in ("train", "dev")]
        if len({one.verdict for one in learnt}) < len(VERDICTS):
            raise BadConfig("the train part lacks questions of yes, no or maybe")
        rows, classes = rows_of(learnt), classes_of(learnt)
        folds = make_folds(len(learnt), self.seed)
        losses = {ridge: _fold_loss(rows, classes, folds, ridge) for ridge in RIDGES}
        ridge = min(losses, key=lambda one: losses[one])
        model = fit_linear(rows, classes, count=len(VERDICTS), ridge=ridge)
        self.out.mkdir(parents=True, exist_ok=True)
        write_safetensors(tensors_of(model), self.out / WEIGHTS)
        card = ExpertCard(
            name=SUPPORTS,
            question="Does the evidence say yes, no, or nothing definite?",
            family="linear",
            replaces="the more frequent verdict, or the overlap of words",
            languages=("en",),
            made="osler experts train supports --data FOLDER --split FILE --out FOLDER",
            seed=self.seed,
            date=datetime.now(UTC).date().isoformat(),
            split=hashlib.sha256(self.split.read_bytes()).hexdigest(),
            weights=hashlib.sha256((self.out / WEIGHTS).read_bytes()).hexdigest(),
            weak=_WEAK,
            features=FEATURES,
            parameters={"ridge": ridge},
            figures=_fold_figures(learnt, rows, classes, folds, ridge),
            data=_count_claims(split, claims),
        )
        list_questions(self.out, (one.text for one in learnt))
        return self._write_card(card)

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        split, claims = self._read_parts()
        opened = open_expert(SUPPORTS, self.out)
        expert = SupportsExpert(opened)
        learnt = [one for one in claims if split.part_of(one) in ("train", "dev")]
        test = split.choose_items(claims, "test")[:limit]
        judged = [judge_claim(expert, one) for one in test]
        errors = {}
        for source in dict.fromkeys(one.source for one in test):
            own = [(c, d) for c, d in zip(test, judged, strict=True) if c.source == source]
            sure = [max(shares.values()) for _, shares in own]
            rights = [float(_likeliest(shares) == one.verdict) for one, shares in own]
            errors[f"test_ece_{source}"] = round(calibration_error(sure, rights), 4)
        kept = [one for one in opened.card.figures if not one.on.startswith("test")]
        figures = (*kept, *_accuracy_figures(test, judged, learnt, "test"))
        update = {
            "figures": figures,
            "parameters": {**opened.card.parameters, **errors},
        }
        return self._write_card(opened.card.model_copy(update=update))

    def _write_card(self, card: ExpertCard) -> ExpertCard:
        (self.out / CARD).write_text(render_card(card), encoding="utf-8")
        return card


def judge_claim(expert: SupportsExpert, claim: ClaimQuestion) -> dict[Verdict, float]:
    """The verdicts that the claim's set offers, with their probabilities."""
    return expert.judge_evidence(claim.text, claim.sentences, maybe=offers_maybe(claim))


def offers_maybe(claim: ClaimQuestion) -> bool:
    """Whether "maybe" is an answer in the claim's set; BioASQ has yes and no."""
    return claim.source == PUBMEDQA


def _likeliest(shares: Mapping[Verdict, float]) -> Verdict:
    return max(shares, key=lambda verdict: shares[verdict])


def rows_of(claims: Sequence[ClaimQuestion]) -> Matrix:
    """Features of shape (claims, features)."""
    return np.stack([measure_cues(one.text, one.sentences) for one in claims])


def classes_of(claims: Sequence[ClaimQuestion]) -> list[int]:
    """Verdicts as classes."""
    return [VERDICTS.index(one.verdict) for one in claims]


def majority_of(claims: Iterable[ClaimQuestion]) -> Verdict:
    """The most frequent verdict. Raises `ValueError` for no claims."""
    counts = Counter(one.verdict for one in claims)
    return max(counts, key=lambda verdict: counts[verdict])


def make_folds(n: int, seed: int) -> list[list[int]]:
    """Indices of each fold."""
    order = np.random.default_rng(seed).permutation(n)
    return [[int(i) for i in fold] for fold in np.array_split(order, min(FOLDS, n))]


def _fold_shares(rows: Matrix, classes: Sequence[int], fold: Sequence[int], ridge: float) -> Matrix:
    """Probabilities of a fold by a model of the others."""
    kept = np.setdiff1d(np.arange(len(rows)), fold)
    model = fit_linear(rows[kept], [classes[i] for i in kept], count=len(VERDICTS), ridge=ridge)
    return model.predict_shares(rows[fold])


def _fold_loss(
    rows: Matrix, classes: Sequence[int], folds: Sequence[Sequence[int]], ridge: float
) -> float:
    """Mean log loss by cross-validation."""
    losses = [
        -float(np.log(share[classes[i]]))
        for fold in folds
        for i, share in zip(fold, _fold_shares(rows, classes, fold, ridge), strict=True)
    ]
    return fmean(losses)


def _fold_figures(
    claims: Sequence[ClaimQuestion],
    rows: Matrix,
    classes: Sequence[int],
    folds: Sequence[Sequence[int]],
    ridge: float,
) -> tuple[ExpertFigure, ...]:
    """Accuracy of each set by cross-validation, each question judged by a model of the others."""
    shares = {
        i: dict(zip(VERDICTS, map(float, share), strict=True))
        for fold in folds
        for i, share in zip(fold, _fold_shares(rows, classes, fold, ridge), strict=True)
    }
    judged = [_offered(one, shares[i]) for i, one in enumerate(claims)]
    return _accuracy_figures(claims, judged, claims, "cross-validated (chose the ridge)")


def _offered(claim: ClaimQuestion, shares: Mapping[Verdict, float]) -> dict[Verdict, float]:
    return {v: share for v, share in shares.items() if v != "maybe" or offers_maybe(claim)}


def _accuracy_figures(
    claims: Sequence[ClaimQuestion],
    judged: Sequence[Mapping[Verdict, float]],
    learnt: Sequence[ClaimQuestion],
    on: str,
) -> tuple[ExpertFigure, ...]:
    """Accuracy of each set, beside the more frequent verdict of what was learnt from."""
    figures = []
    for source in dict.fromkeys(one.source for one in claims):
        usual = majority_of(one for one in learnt if one.source == source)
        own = [(c, d) for c, d in zip(claims, judged, strict=True) if c.source == source]
        rights = [float(_likeliest(shares) == one.verdict) for one, shares in own]
        rule = [float(one.verdict == usual) for one, _ in own]
        figures.append(
            ExpertFigure(
                on=f"{on}: {source}, gold evidence",
                measure="accuracy",
                n=len(own),
                expert=figure_of(mean_of(rights)),
                rule=f"majority ({usual})",
                rule_figure=figure_of(mean_of(rule)),
                gain=figure_of(difference(rule, rights)),
            )
        )
    return tuple(figures)


def _count_claims(split: DataSplit, claims: Sequence[ClaimQuestion]) -> tuple[ExpertData, ...]:
    counts = Counter((one.source, split.part_of(one)) for one in claims)
    return tuple(
        ExpertData(name=name, licence=LICENCES[name], **{p: counts[name, p] for p in PARTS})
        for name in dict.fromkeys(one.source for one in claims)
    )
