"""Figures of the expert `answerable` beside the rules that it replaces, and of its guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from osler.errors import BadConfig
from osler.evaluate.guarantee import fit_threshold
from osler.evaluate.intervals import difference, mean
from osler.evaluate.metrics.calibration import calibration_error
from osler.retrieve.experts.answerable import AnswerableExpert
from osler.retrieve.experts.cards import ExpertFigure
from osler.train.experts.measured_cases import QUOTED, RULES, MeasuredCase
from osler.train.experts.pair_evaluation import figure_of

EXPERT = "answerable"
_NEVER = 2.0
RISK, CONFIDENCE, RESAMPLINGS = 0.1, 0.95, 100


@dataclass(frozen=True)
class GateResult:
    """What each gate did with a case."""

    source: str
    absent: bool
    has_gold: bool
    quoted: Mapping[str, bool]
    """Whether anything was quoted, by gate."""
    other: Mapping[str, bool]
    """Whether a passage was quoted that neither is gold nor names the subject (MedQuAD)."""
    sureness: float
    """0 where nothing was quoted."""
    right: bool
    """Whether a gold document is among the first quotes that the expert lets through."""

    @classmethod
    def of_case(cls, expert: AnswerableExpert, case: MeasuredCase) -> GateResult:
        """What the expert lets through, the likeliest passages first, beside the rules."""
        logits = expert.weigh_passages(case.text, case.signs)
        passing = sorted(
            (at for at, one in enumerate(logits) if expert.is_evidence(case.text, one)),
            key=lambda at: -logits[at],
        )[:QUOTED]
        return cls(
            case.source,
            case.absent,
            case.has_gold,
            {EXPERT: bool(passing), **case.quoted},
            {EXPERT: any(case.others[at] for at in passing), **case.other},
            expert.judge_evidence(logits) if passing else 0.0,
            any(case.golds[at] for at in passing),
        )


def measure_gates(
    results: Sequence[GateResult],
) -> tuple[tuple[ExpertFigure, ...], dict[str, float]]:
    """The figures beside each rule; calibration error and what the guarantee kept."""
    figures = []
    for rule in RULES:
        for source in ("all", *dict.fromkeys(one.source for one in results)):
            own = [one for one in results if source in ("all", one.source)]
            absent = [one for one in own if one.absent]
            there = [one for one in own if not one.absent and one.has_gold]
            figures.append(_compare(f"test: {source}, absent", "refused", absent, rule))
            figures.append(_compare(f"test: {source}, answerable", "answered", there, rule))
        own = [one for one in results if one.source == "medquad"]
        figures.append(_compare("test: medquad", "cites another subject", own, rule))
    facts = {
        "test_ece": calibration_error(
            [one.sureness for one in results if one.sureness],
            [float(one.right) for one in results if one.sureness],
        ),
        "test_right": fmean(one.right for one in results if one.sureness),
        **resample_guarantee(results),
    }
    return tuple(one for one in figures if one is not None), {
        name: round(value, 4) for name, value in facts.items()
    }


def _compare(
    on: str, measure: str, results: Sequence[GateResult], rule: str
) -> ExpertFigure | None:
    if not results:
        return None

    def values_of(name: str) -> list[float]:
        if measure == "cites another subject":
            return [float(one.other[name]) for one in results]
        return [float(one.quoted[name] == (measure == "answered")) for one in results]

    ours, theirs = values_of(EXPERT), values_of(rule)
    return ExpertFigure(
        on=on,
        measure=measure,
        n=len(results),
        expert=figure_of(mean(ours)),
        rule=rule,
        rule_figure=figure_of(mean(theirs)),
        gain=figure_of(difference(theirs, ours)),
    )


def resample_guarantee(results: Sequence[GateResult], *, seed: int = 0) -> dict[str, float]:
    """Fits the threshold on half of the questions and looks at the other half, many times.

    Questions that were answerable and those whose subject is absent, alike; a case is wrong where
    no gold document is quoted. Where no threshold passes, everything is refused, nothing wrongly.
    """
    chance, kept, coverages, wrongs = Random(seed), 0, [], []
    for _ in range(RESAMPLINGS):
        mixed = chance.sample(list(results), len(results))
        fitted, fresh = mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]
        try:
            threshold = fit_threshold(
                [one.sureness for one in fitted],
                [one.right for one in fitted],
                risk=RISK,
                confidence=CONFIDENCE,
            ).threshold
        except BadConfig:
            threshold = _NEVER
        answered = [one for one in fresh if one.sureness >= threshold]
        wrong = fmean(not one.right for one in answered) if answered else 0.0
        kept += wrong <= RISK
        wrongs.append(wrong)
        coverages.append(len(answered) / len(fresh))
    return {
        "guarantee_kept": kept / RESAMPLINGS,
        "guarantee_wrong": fmean(wrongs),
        "guarantee_coverage": fmean(coverages),
    }
