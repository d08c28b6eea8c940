"""A judge of data against people: the paper's Tables 12 and 13, with agreement and kappa.

A dimension that a judge does not decide is neither good nor bad, and so no right verdict; how
often that happened stands beside. A filter keeps it, since nobody condemns it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from osler.errors import BadRun
from osler_lab.evaluate.agreement import weighted_kappa
from osler_lab.evaluate.metrics.choice import Agreement, agreement
from osler_lab.train.thinker.quality import DIMENSIONS, Inspection, QualityItem

ALL = "all"
Pair = tuple[QualityItem, Inspection]


@dataclass(frozen=True, slots=True)
class AccuracyLine:
    """A dimension of one domain, over samples that people call good, or bad."""

    domain: str
    dimension: str
    right: int
    """Judged as people did; a verdict that was not decided is not right."""
    wrong: int

    @property
    def accuracy(self) -> float | None:
        n = self.right + self.wrong
        return self.right / n if n else None


@dataclass(frozen=True, slots=True)
class BadVerdictAgreement:
    """A judge's "bad" against people's, in one dimension, over good and bad samples."""

    dimension: str
    agreement: Agreement
    """Positive is "bad": precision is of what is thrown away."""
    kappa: float | None
    undecided: int


@dataclass(frozen=True, slots=True)
class Validation:
    judge: str
    good: tuple[AccuracyLine, ...]
    """Table 12."""
    bad: tuple[AccuracyLine, ...]
    """Table 13."""
    held: tuple[BadVerdictAgreement, ...]


def validate_judge(items: Sequence[QualityItem], inspections: Sequence[Inspection]) -> Validation:
    """Raises `BadRun` where no sample is labelled."""
    pairs = [pair for pair in zip(items, inspections, strict=True) if pair[0].labels]
    if not pairs:
        raise BadRun(
            "no sample is labelled",
            fix='give lines "labels": "good", or the list of the bad dimensions',
        )
    domains = sorted({item.domain for item, _ in pairs})
    names = (*DIMENSIONS, ALL)
    return Validation(
        pairs[0][1].judge,
        tuple(_accuracy_line(pairs, domain, name, True) for domain in domains for name in names),
        tuple(_accuracy_line(pairs, domain, name, False) for domain in domains for name in names),
        tuple(line for name in names for line in _bad_agreements(pairs, name)),
    )


def _accuracy_line(pairs: Sequence[Pair], domain: str, dimension: str, good: bool) -> AccuracyLine:
    counted = [
        machine_label(found, dimension) is good
        for item, found in pairs
        if item.domain == domain and human_label(item, dimension) is good
    ]
    return AccuracyLine(domain, dimension, sum(counted), len(counted) - sum(counted))


def human_label(item: QualityItem, dimension: str) -> bool | None:
    """People's label; over all dimensions, bad as soon as one is. `None` = not labelled."""
    if dimension != ALL:
        return item.labels.get(dimension)
    if False in item.labels.values():
        return False
    return True if len(item.labels) == len(DIMENSIONS) else None


def machine_label(inspection: Inspection, dimension: str) -> bool | None:
    """The judge's label; `None` = not decided."""
    return inspection.good if dimension == ALL else inspection.dimension_verdict(dimension)


def _bad_agreements(pairs: Sequence[Pair], dimension: str) -> Iterator[BadVerdictAgreement]:
    known = [
        (label, machine_label(inspection, dimension))
        for item, inspection in pairs
        if (label := human_label(item, dimension)) is not None
    ]
    if not known:
        return
    # "Bad" against the rest: what a filter throws away against what it keeps.
    machine = [said is False for _, said in known]
    people = [not label for label, _ in known]
    undecided = sum(said is None for _, said in known)
    # With two classes quadratic weights are Cohen's plain kappa.
    kappa = weighted_kappa([(int(m), int(p)) for m, p in zip(machine, people, strict=True)])
    yield BadVerdictAgreement(dimension, agreement(machine, people), kappa, undecided)


@dataclass(frozen=True, slots=True)
class VerdictShares:
    """Shares of a judge's verdicts on samples that nobody has labelled."""

    judge: str
    n: int
    good: int
    """Samples that are good in every dimension."""
    bad: Mapping[str, int]
    """Bad samples by dimension."""
    undecided: Mapping[str, int]
    reasons: Mapping[str, int]
    """Aspect → samples."""


def verdict_shares(inspections: Sequence[Inspection]) -> VerdictShares:
    """Raises `ValueError` for no samples."""
    if not inspections:
        raise ValueError("no samples, no shares")
    aspects = Counter(
        f"{dimension}.{aspect}"
        for one in inspections
        for dimension, verdicts in one.aspects.items()
        for aspect, verdict in verdicts.items()
        if verdict is False
    )
    return VerdictShares(
        inspections[0].judge,
        len(inspections),
        sum(one.good is True for one in inspections),
        _count_verdicts(inspections, False),
        _count_verdicts(inspections, None),
        dict(sorted(aspects.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def _count_verdicts(inspections: Sequence[Inspection], verdict: bool | None) -> dict[str, int]:
    return {
        name: sum(machine_label(one, name) is verdict for one in inspections)
        for name in (*DIMENSIONS, ALL)
    }


def validation_document(made: Validation) -> dict[str, Any]:
    """The validation as plain data, with the accuracy of each line of Tables 12 and 13."""
    lines = {"good": made.good, "bad": made.bad}
    told = {k: [{**asdict(one), "accuracy": one.accuracy} for one in v] for k, v in lines.items()}
    return {**asdict(made), **told}
