"""Making and measuring the expert `supports`: a softmax regression over cues of the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from osler.errors import BadConfig
from osler.evaluate.intervals import difference
from osler.evaluate.intervals import mean as mean_of
from osler.evaluate.metrics.calibration import calibration_error
from osler.evaluate.trained_on import list_questions
from osler.jobs.runner import Progress
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.cards import (
    WEIGHTS,
    ExpertCard,
    ExpertData,
    ExpertFigure,
)
from osler.retrieve.experts.cues import FEATURES, CuedSentence
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.experts.supporting import (
    EITHER,
    MAYBE,
    MODELS,
    SUPPORTS,
    VERDICTS,
    SupportsExpert,
    Verdict,
    join_shares,
    raise_shares,
    slope_name,
)
from osler.train.experts.claims import (
    ClaimQuestion,
    FoundClaim,
    find_claims,
    open_claim_base,
    read_claims,
)
from osler.train.experts.folder import ExpertFolderJob
from osler.train.experts.linear import (
    figure_of,
    fit_linear,
    tensors_of,
    write_safetensors,
)
from osler.train.experts.pair_questions import LICENCES
from osler.train.experts.splits import PARTS, DataSplit, Part, read_split

if TYPE_CHECKING:
    from osler.retrieve.experts.linear import Matrix

UNCONCLUDED = 0.3
"""Weight of evidence without the conclusions; 1 with them."""
DOUBTS = [
    at
    for at, name in enumerate(FEATURES)
    if name.startswith(
        (
            *("hedge", "doubt", "more to study", "contrast", "little", "negation", "no effect"),
            *("denial", "significant", "not significant", "finding", "result", "reads like"),
        )
    )
]
"""Features from which "maybe" is learnt."""
RIDGES = (30.0, 60.0, 125.0, 250.0, 500.0)
FOLDS = 10
SLOPES = tuple(0.5 + 0.1 * step for step in range(26))
_WEAK = (
    "it reads the wording of the evidence, not its content: a sentence about something else counts"
    " as far as it is near the question",
    "where the abstract's conclusion is not among the passages it is no better than the more"
    " frequent verdict on PubMedQA",
    "claims that are statements: on HealthVer and CovidFact no better than always one word",
    '"maybe" is hardly ever said: to 2 of 35 unseen questions that want it',
    "guidelines and books: it takes their prohibitions for a no, so only research is read",
    "English only",
)


@dataclass(frozen=True)
class SupportsJob(ExpertFolderJob):
    """Trains and measures the expert `supports`."""

    seed: int = 0
    threads: int = 1

    def _find_parts(
        self, *parts: Part, limit: int | None = None, progress: Progress | None = None
    ) -> tuple[DataSplit, list[ClaimQuestion], list[FoundClaim]]:
        """The split, all claims, and those of some parts with their evidence."""
        split, claims = read_split(self.split), read_claims(self.data)
        encoder = MiniLMEncoder(threads=self.threads)
        chosen = [one for one in claims if split.part_of(one) in parts][:limit]
        with open_claim_base(self.data, self.work, encoder, progress) as kb:
            return split, claims, find_claims(kb, encoder, chosen, progress)

    def train(self, progress: Progress | None = None) -> ExpertCard:
        """Fits on train and dev; cross-validation within them chooses and calibrates."""
        split, claims, learnt = self._find_parts("train", "dev", progress=progress)
        if len({one.claim.verdict for one in learnt}) < len(VERDICTS):
            raise BadConfig("the train part lacks questions of yes, no or maybe")
        fitted = FittedModels.choose(learnt, self.seed)
        self.out.mkdir(parents=True, exist_ok=True)
        tensors = {
            f"{kind}.{name}": tensor
            for kind, ridge in fitted.ridges.items()
            for name, tensor in tensors_of(fit_model(learnt, kind, ridge)).items()
        }
        write_safetensors(tensors, self.out / WEIGHTS)
        card = self.start_card(
            SUPPORTS,
            question="Does the evidence say yes, no, or nothing definite?",
            family="linear",
            replaces="the more frequent verdict, or the likelihood of yes and no",
            seed=self.seed,
            weak=_WEAK,
            features=FEATURES,
            parameters=fitted.parameters,
            data=_count_claims(split, claims),
        )
        self.write_card(card)
        list_questions(self.out, (one.claim.text for one in learnt))
        expert = SupportsExpert(open_expert(SUPPORTS, self.out))
        judged = [
            JudgedClaim.of_shares(expert, one.claim, shares)
            for one, shares in zip(learnt, fitted.held, strict=True)
        ]
        figures = _figures_of(judged, judged, "cross-validated (chose the ridge)")
        return self.write_card(card.model_copy(update={"figures": figures}))

    def evaluate(self, progress: Progress | None = None, *, limit: int | None = None) -> ExpertCard:
        """Measures on the test part; the card of the folder gets the figures."""
        opened = open_expert(SUPPORTS, self.out)
        expert = SupportsExpert(opened)
        split, claims, test = self._find_parts("test", limit=limit, progress=progress)
        learnt = [one for one in claims if split.part_of(one) in ("train", "dev")]
        whole = [JudgedClaim.of_evidence(expert, one.claim, one.whole) for one in test]
        bare = [
            JudgedClaim.of_evidence(expert, one.claim, one.unconcluded)
            for one in test
            if one.unconcluded != one.whole
        ]
        figures = [one for one in opened.card.figures if not one.on.startswith("test")]
        figures += _figures_of(whole, learnt, "test")
        figures += _figures_of(bare, learnt, "test, conclusions taken out of the base")
        errors = {f"test_ece_{name}": value for name, value in calibration_of(whole).items()}
        update = {
            "figures": tuple(figures),
            "parameters": {**opened.card.parameters, **errors},
        }
        return self.write_card(opened.card.model_copy(update=update))


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A question with what the expert chose and how sure it was."""

    source: str
    verdict: Verdict
    chosen: Verdict
    sureness: float

    @classmethod
    def of_evidence(
        cls, expert: SupportsExpert, claim: ClaimQuestion, evidence: Sequence[CuedSentence]
    ) -> JudgedClaim:
        shares = expert.judge_evidence(claim.text, evidence, maybe=claim.offers_maybe)
        return cls.of_shares(expert, claim, shares)

    @classmethod
    def of_shares(
        cls, expert: SupportsExpert, claim: ClaimQuestion, shares: Mapping[Verdict, float]
    ) -> JudgedClaim:
        """`shares` may be those of models that did not learn from the question."""
        chosen = expert.choose_verdict(shares)
        return cls(claim.source, claim.verdict, chosen, shares[chosen])

    @property
    def is_right(self) -> float:
        return float(self.chosen == self.verdict)


def fit_model(found: Sequence[FoundClaim], kind: str, ridge: float) -> LinearModel:
    """A logistic regression of "no" against "yes", or of "maybe" against both.

    Questions that offer "maybe" learn from their like alone, the others from both. Each is learnt
    from with the conclusions in its evidence and, at less weight, without; "maybe" from `DOUBTS`
    of whole evidence alone, for it is rare.
    """
    kept = [one for one in found if _teaches(one, kind)]
    classes = [int(one.claim.verdict == ("maybe" if kind == MAYBE else "no")) for one in kept]
    rows = rows_of(kept)
    if kind == MAYBE:
        part = fit_linear(rows[:, DOUBTS], classes, count=1, ridge=ridge)
        return _widen(part, rows.shape[1])
    both = np.vstack([rows, rows_of(kept, whole=False)])
    weights = np.repeat([1.0, UNCONCLUDED], len(kept))
    return fit_linear(both, classes * 2, count=1, ridge=ridge, weights=weights)


def _teaches(found: FoundClaim, kind: str) -> bool:
    definite = found.claim.verdict != "maybe"
    return (kind == EITHER or found.claim.offers_maybe) and (kind == MAYBE or definite)


def _widen(part: LinearModel, width: int) -> LinearModel:
    """The same model over all features; those that it has not learnt from weigh nothing."""
    mean, scale, weights = np.zeros(width), np.ones(width), np.zeros((1, width))
    mean[DOUBTS], scale[DOUBTS], weights[:, DOUBTS] = part.mean, part.scale, part.weights
    return LinearModel(mean, scale, weights, part.bias)


def rows_of(found: Sequence[FoundClaim], *, whole: bool = True) -> Matrix:
    """Features of shape (claims, features)."""
    return np.stack([one.row if whole else one.unconcluded_row for one in found])


def majority_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The most frequent verdict. Raises `IndexError` for none."""
    return Counter(verdicts).most_common(1)[0][0]


def make_folds(n: int, seed: int) -> list[list[int]]:
    """Indices of each fold."""
    order = np.random.default_rng(seed).permutation(n)
    return [[int(i) for i in fold] for fold in np.array_split(order, min(FOLDS, n))]


def predict_folds(
    found: Sequence[FoundClaim], folds: Sequence[Sequence[int]], kind: str, ridge: float
) -> Matrix:
    """Probabilities of shape (claims,), each by a model of the other folds."""
    shares = np.zeros(len(found))
    for fold in folds:
        kept = [one for i, one in enumerate(found) if i not in set(fold)]
        rows = rows_of([found[i] for i in fold])
        shares[fold] = fit_model(kept, kind, ridge).predict_shares(rows)[:, 0]
    return shares


@dataclass(frozen=True)
class FittedModels:
    """What cross-validation within train and dev chose."""

    ridges: Mapping[str, float]
    parameters: Mapping[str, float]
    """For the card."""
    held: Sequence[Mapping[Verdict, float]]
    """Of each question, calibrated probabilities by models that did not learn from it."""

    @classmethod
    def choose(cls, found: Sequence[FoundClaim], seed: int) -> FittedModels:
        """Ridges and exponents that leave held-out verdicts least surprising."""
        folds = make_folds(len(found), seed)
        ridges, firsts = {}, {}
        for kind in MODELS:
            held = {ridge: predict_folds(found, folds, kind, ridge) for ridge in RIDGES}
            ridges[kind] = min(RIDGES, key=lambda one: _binary_loss(found, kind, held[one]))
            firsts[kind] = held[ridges[kind]]
        parameters = {f"ridge_of_{kind.replace(' ', '_')}": ridge for kind, ridge in ridges.items()}
        judged: list[Mapping[Verdict, float]] = [{} for _ in found]
        for maybe in (False, True):
            own = [i for i, one in enumerate(found) if one.claim.offers_maybe == maybe]
            gold = [VERDICTS.index(found[i].claim.verdict) for i in own]
            shares = join_shares(firsts, maybe=maybe)[own]
            slope = min(SLOPES, key=lambda one: _surprise(shares, gold, one))
            raised = raise_shares(shares, slope)
            parameters[slope_name(maybe)] = slope
            for i, row in zip(own, raised, strict=True):
                judged[i] = dict(zip(VERDICTS, map(float, row), strict=False))
        return cls(ridges, parameters, judged)


def _binary_loss(found: Sequence[FoundClaim], kind: str, shares: Matrix) -> float:
    """Mean log loss over the questions that a model is asked about."""
    offers = [one.claim.offers_maybe == (kind != EITHER) for one in found]
    own = [i for i, one in enumerate(found) if offers[i] and _teaches(one, kind)]
    gold = [int(found[i].claim.verdict == ("maybe" if kind == MAYBE else "no")) for i in own]
    return _surprise(np.stack([1 - shares, shares], 1)[own], gold, 1.0)


def _surprise(shares: Matrix, gold: Sequence[int], slope: float) -> float:
    """Mean negative logarithm of the right verdict's probability; 0 for no questions."""
    if not gold:
        return 0.0
    raised = raise_shares(shares, slope)
    return -float(np.log(raised[np.arange(len(gold)), list(gold)]).mean())


def calibration_of(judged: Sequence[JudgedClaim]) -> dict[str, float]:
    """Expected calibration error of each set."""
    return {
        source: round(
            calibration_error(
                [one.sureness for one in judged if one.source == source],
                [one.is_right for one in judged if one.source == source],
            ),
            4,
        )
        for source in dict.fromkeys(one.source for one in judged)
    }


def _figures_of(
    judged: Sequence[JudgedClaim], learnt: Sequence[JudgedClaim | ClaimQuestion], on: str
) -> tuple[ExpertFigure, ...]:
    """Each set's accuracy beside the verdict most frequent in what was learnt, and the recall of
    "maybe"."""
    figures = []
    for source in dict.fromkeys(one.source for one in judged):
        usual = majority_of(one.verdict for one in learnt if one.source == source)
        own = [one for one in judged if one.source == source]
        figures.append(_compare(f"{on}: {source}", "accuracy", usual, own))
        maybes = [one for one in own if one.verdict == "maybe"]
        if maybes:
            figures.append(_compare(f"{on}: {source}", 'recall of "maybe"', usual, maybes))
    return tuple(figures)


def _compare(on: str, measure: str, usual: Verdict, own: Sequence[JudgedClaim]) -> ExpertFigure:
    rights = [one.is_right for one in own]
    rule = [float(one.verdict == usual) for one in own]
    return ExpertFigure(
        on=on,
        measure=measure,
        n=len(own),
        expert=figure_of(mean_of(rights)),
        rule=f"majority ({usual})",
        rule_figure=figure_of(mean_of(rule)),
        gain=figure_of(difference(rule, rights)),
    )


def _count_claims(split: DataSplit, claims: Sequence[ClaimQuestion]) -> tuple[ExpertData, ...]:
    counts = Counter((one.source, split.part_of(one)) for one in claims)
    return tuple(
        ExpertData(name=name, licence=LICENCES[name], **{p: counts[name, p] for p in PARTS})
        for name in dict.fromkeys(one.source for one in claims)
    )
