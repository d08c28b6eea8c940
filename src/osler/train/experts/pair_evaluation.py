"""The pair model's figures on questions that it never saw, beside the cosine's.

| Task | Texts of a question |
|---|---|
| `page` | MedQuAD: the answer to the question and the other answers of its page |
| `near` | each set: a right text and its hard negatives (`hard_negatives`) |

Each is asked of passages and of single sentences. One text of a question is right; the measure is
how often it is first, and over all texts the area under the curve and the calibration error.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from osler.evaluate.intervals import difference, mean
from osler.evaluate.metrics.calibration import calibration_error
from osler.jobs.runner import Progress
from osler.kb.encoders.base import Encoder
from osler.retrieve.experts.answering import LEAD, TextPair
from osler.retrieve.experts.cards import ExpertFigure, MeasuredFigure
from osler.retrieve.experts.pair_input import titled_text
from osler.train.experts.pair_batches import Form, cut_text
from osler.train.experts.pair_questions import MEDQUAD, PairQuestion

Score = Callable[[str, Sequence[TextPair]], Sequence[float]]
TEXTS = 10
"""Most texts of a question."""


@dataclass(frozen=True, slots=True)
class PairCase:
    """A question with texts of which the first is right."""

    id: str
    question: str
    texts: tuple[TextPair, ...]
    task: str
    """As in "page, passage" or "near bioasq, sentence"."""


def page_cases(questions: Iterable[PairQuestion], form: Form, seed: int = 0) -> list[PairCase]:
    """Cases of the task `page`; a page with one answer makes none."""
    return [
        _make_case(replace(one, wrong=own), form, f"page, {form}", seed)
        for one in questions
        if one.source == MEDQUAD
        and (own := tuple(text for text in one.wrong if text.why == "same page"))
    ]


def near_cases(questions: Iterable[PairQuestion], form: Form, seed: int = 0) -> list[PairCase]:
    """Cases of the task `near`, by set; questions with hard negatives only."""
    return [
        _make_case(replace(one, wrong=near), form, f"near {one.source}, {form}", seed)
        for one in questions
        if (near := tuple(text for text in one.wrong if text.why != "same page"))
    ]


def _make_case(one: PairQuestion, form: Form, task: str, seed: int) -> PairCase:
    chance = random.Random(f"{seed}:{one.id}")
    texts = (chance.choice(one.right), *one.wrong[: TEXTS - 1])
    cut = [cut_text(text, form, chance, lead=n == 0) for n, text in enumerate(texts)]
    leads = ["" if form == "passage" else text.text[:LEAD] for text in texts]
    first, *others = [
        TextPair(text.text, text.title, lead) for text, lead in zip(cut, leads, strict=True)
    ]
    # A wrong text with the words of the right one would be right as well.
    others = [text for text in dict.fromkeys(others) if text.text != first.text]
    return PairCase(one.id, one.text, (first, *others), task)


@dataclass(frozen=True)
class ScoredCases:
    """Scores of a list of cases, in its order."""

    cases: Sequence[PairCase]
    scores: Sequence[Sequence[float]]

    def of_task(self, task: str) -> ScoredCases:
        kept = [(c, s) for c, s in zip(self.cases, self.scores, strict=True) if c.task == task]
        return ScoredCases([c for c, _ in kept], [s for _, s in kept])

    @property
    def firsts(self) -> list[float]:
        """1 for each case whose right text has the highest score; ties share."""
        return [
            1.0 / ties if (ties := _rank_of_first(scores)) > 0 else 0.0
            for scores in self.scores
            if len(scores) > 1
        ]

    @property
    def flat(self) -> list[tuple[float, float]]:
        """Score of each text, and 1 for a right one."""
        return [
            (score, float(at == 0)) for scores in self.scores for at, score in enumerate(scores)
        ]


def _rank_of_first(scores: Sequence[float]) -> int:
    """Number of texts that share the highest score with the first; 0 where it has not that."""
    best = max(scores)
    return sum(score == best for score in scores) if scores[0] == best else 0


def score_cases(
    cases: Sequence[PairCase], score: Score, progress: Progress | None = None
) -> ScoredCases:
    """Scores every text of every case."""
    found = []
    for number, case in enumerate(cases, 1):
        found.append(tuple(score(case.question, case.texts)))
        if progress is not None:
            progress("scoring", number, len(cases))
    return ScoredCases(cases, found)


def cosine_score(encoder: Encoder) -> Score:
    """The rule: the cosine of question and text, the title before it."""
    known: dict[str, np.ndarray] = {}

    def score(question: str, texts: Sequence[TextPair]) -> list[float]:
        asked = encoder.encode([question], kind="query")[0]
        read = [titled_text(one.text, one.title) for one in texts]
        new = [text for text in dict.fromkeys(read) if text not in known]
        if new:
            known.update(zip(new, encoder.encode(new, kind="passage"), strict=True))
        return [float(known[text] @ asked) for text in read]

    return score


def compare_scores(
    expert: ScoredCases, rule: ScoredCases, *, on: str, rule_name: str = "cosine"
) -> list[ExpertFigure]:
    """How often the right text is first, for each task, expert and rule beside each other."""
    found = []
    for task in dict.fromkeys(case.task for case in expert.cases):
        ours, theirs = expert.of_task(task).firsts, rule.of_task(task).firsts
        if not ours:
            continue
        found.append(
            ExpertFigure(
                on=f"{on}: {task}",
                measure="right text first",
                n=len(ours),
                expert=_figure(ours),
                rule=rule_name,
                rule_figure=_figure(theirs),
                gain=figure_of(difference(theirs, ours)),
            )
        )
    return found


def _figure(values: Sequence[float]) -> MeasuredFigure:
    return figure_of(mean(values))


def figure_of(estimate: object) -> MeasuredFigure:
    """An estimate for a card, to four digits."""
    value, low, high = (round(float(getattr(estimate, key)), 4) for key in ("value", "low", "high"))
    return MeasuredFigure(value=value, low=low, high=high)


def area_under_curve(flat: Sequence[tuple[float, float]]) -> float:
    """Chance that a right text has a higher score than a wrong one; ties count half.

    Raises `ValueError` where all are right or all wrong.
    """
    scores = np.array([score for score, _ in flat])
    right = np.array([gold for _, gold in flat]) > 0
    if right.all() or not right.any():
        raise ValueError("an area needs right and wrong texts")
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    # The mean rank of equal scores (Mann–Whitney).
    ranks = (np.bincount(inverse, ranks, len(values)) / counts)[inverse]
    wins = ranks[right].sum() - right.sum() * (right.sum() + 1) / 2
    return float(wins / (right.sum() * (~right).sum()))


def fit_platt(flat: Sequence[tuple[float, float]], rounds: int = 100) -> tuple[float, float]:
    """Slope and intercept of the logistic that makes probabilities of logits (Platt 1999).

    Targets are smoothed as he has it, so that a perfect score does not make them infinite.
    """
    x = np.array([logit for logit, _ in flat])
    gold = np.array([right for _, right in flat])
    rights, wrongs = gold.sum(), len(gold) - gold.sum()
    target = np.where(gold > 0, (rights + 1) / (rights + 2), 1 / (wrongs + 2))
    design = np.stack([x, np.ones_like(x)], 1)

    def loss_of(weights: np.ndarray) -> float:
        logits = design @ weights
        return float((np.logaddexp(0, logits) - target * logits).sum())

    weights = np.zeros(2)
    for _ in range(rounds):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (p - target)
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        # Far from the minimum a whole step of Newton's leads away from it.
        while loss_of(weights - step) > loss_of(weights) and np.abs(step).max() > 1e-9:
            step = step / 2
        weights = weights - step
        if np.abs(step).max() < 1e-9:
            break
    return float(weights[0]), float(weights[1])


def calibration_facts(scored: ScoredCases) -> Mapping[str, float]:
    """Calibration error, area under the curve and the share of right texts, of probabilities."""
    flat = scored.flat
    rights = [gold for _, gold in flat]
    return {
        "ece": round(calibration_error([share for share, _ in flat], rights), 4),
        "auc": round(area_under_curve(flat), 4),
        "share_right": round(fmean(rights), 4),
    }
