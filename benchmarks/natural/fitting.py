"""The numbers of the gate that are fitted: a probability for the first quote, on dev and seen.

A logistic regression over the best sentence's cosine, logit and failed checks; right is a first
quote that answers, of questions with and without an answer alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from natural.asking import AskedRow
from osler.answer.checks import weigh_failures
from osler.answer.gate import READ, AnswerFit
from osler.errors import BadConfig
from osler.retrieve.experts.cards import CARD, read_card, render_card

ORDERS = (0.0, 0.015, 0.03, 0.045, 0.06, 0.09, 0.12, 0.16)
"""Weights of the logit beside relevance that are tried."""
CHECKS = (0.15, 0.25, 0.35, 0.5)
"""What a failed check takes in the order, of those that are tried."""
QUOTED = 3
"""Sentences of an answer."""
LEAST_GAIN = 0.002
"""Shares closer than this, about one question of those that are asked, are alike."""
LEAST_FAILED = 0.3
"""Least that a failed check takes: what is right fails one now and then, but a check is no gain."""
_RIDGE = 0.5


def fit_card(folder: Path, rows: Sequence[AskedRow]) -> AnswerFit:
    """Fits on the rows of the default way, and writes the numbers onto the card in the folder.

    Raises `BadConfig` where the rows have no scores.
    """
    kept = [row for row in rows if row.way == "default" and row.weighed]
    if not kept:
        raise BadConfig(
            "the log has no scores",
            fix="ask the dev half first: benchmarks/natural_questions.py --half dev",
        )
    fit = fit_answers(kept)
    card = read_card(folder)
    numbers = {
        name: round(getattr(fit, name), 4)
        for name in ("ordered", "bias", "relevance", "judged", "failed", "margin", "check")
    }
    changed = card.model_copy(update={"parameters": {**card.parameters, **numbers}})
    (folder / CARD).write_text(render_card(changed), encoding="utf-8")
    return fit


def fit_answers(rows: Sequence[AskedRow]) -> AnswerFit:
    """The weights of the logit and of failed checks that put most right sentences first, those that
    are quoted counting half, and the probability of being right of what stands first."""
    tried = [AnswerFit(ordered, 0, 0, 0, 0, 0, check) for ordered in ORDERS for check in CHECKS]

    def worth(fit: AnswerFit) -> tuple[float, float, float]:
        among = share_right(rows, fit) + share_right(rows, fit, most=QUOTED) / 2
        return round(among / LEAST_GAIN), -fit.ordered, -fit.check

    best = max(tried, key=worth)
    firsts = [(row, order_of(row, best)[0]) for row in rows]
    features = np.array(
        [
            [
                1.0,
                one["relevance"],
                one["judged"],
                -weigh_failures(one["failed"]),
                margin_of(row, one),
            ]
            for row, one in firsts
        ]
    )
    right = np.array([bool(one["right"]) and row.answerable is not False for row, one in firsts])
    bias, relevance, judged, failed, margin = fit_logistic(features, right.astype(float))
    least = max(failed, LEAST_FAILED)
    return AnswerFit(best.ordered, bias, relevance, judged, least, margin, best.check)


def share_right(rows: Sequence[AskedRow], fit: AnswerFit, most: int = 1) -> float:
    """The share of answerable questions with a right sentence among the first in this order."""
    asked = [row for row in rows if row.answerable]
    return float(np.mean([any(one["right"] for one in order_of(row, fit)[:most]) for row in asked]))


def order_of(row: AskedRow, fit: AnswerFit) -> list[Mapping[str, Any]]:
    """The sentences that were read, in this order."""

    def find_place(one: Mapping[str, Any]) -> float:
        return fit.find_place(one["relevance"], one["judged"], weigh_failures(one["failed"]))

    return sorted(row.weighed[:READ], key=find_place, reverse=True)


def margin_of(row: AskedRow, first: Mapping[str, Any]) -> float:
    """How far a sentence's relevance lies above the mean of those that were read."""
    read = [one["relevance"] for one in row.weighed[:READ]]
    return float(first["relevance"] - np.mean(read))


def fit_logistic(rows: np.ndarray, right: np.ndarray) -> list[float]:
    """Weights of a ridge logistic regression by Newton's method; the first is not shrunk."""
    shrink = np.full(rows.shape[1], _RIDGE)
    shrink[0] = 0.0
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        shares = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (right - shares) - shrink * weights
        curve = (rows * (shares * (1 - shares))[:, None]).T @ rows + np.diag(shrink)
        weights = weights + np.linalg.solve(curve, slope)
    return [float(one) for one in weights]
