"""Positive and negative plans (Omni-RAG §4.2.3).

Of each source up to three queries that were judged one way, chosen at random; a source without
any is left empty; a case without any in all sources has no such plan. A case makes an SFT sample
when it has a positive plan, and a DPO triple when it has both.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from osler.methods.omni.plan import MOST, Query, SourcePlan
from osler_lab.train.spo.judge import JudgedCase, QueryVerdict

Choice = Literal["random", "best"]
CHOICES: tuple[Choice, ...] = get_args(Choice)
"""Choice among the queries of a source where there are more: at random as in the paper, or
those of the best score (for negatives: of the worst), which is ours."""


@dataclass(frozen=True, slots=True)
class PlanPair:
    """Plans P⁺ and P⁻ of one case; either may be empty, and is then no plan."""

    positive: SourcePlan
    negative: SourcePlan

    @property
    def whole(self) -> bool:
        """Whether it trains DPO: "we only retain samples where both are available"."""
        return bool(self.positive.queries and self.negative.queries)


def plan_pair(
    judged: JudgedCase,
    rng: random.Random,
    *,
    sources: Sequence[str],
    at_most: int = MOST,
    choice: Choice = "random",
) -> PlanPair:
    """The plans of one case over these sources; what was judged of others is left out.

    Same verdicts and same chance, same pair.
    """
    # Positives are drawn before negatives, so P⁺ does not depend on whether P⁻ is wanted.
    verdicts = [verdict for verdict in judged.verdicts if verdict.source in sources]
    return PlanPair(*(_sample_plan(verdicts, way, rng, at_most, choice) for way in (True, False)))


def _sample_plan(
    verdicts: Sequence[QueryVerdict], way: bool, rng: random.Random, at_most: int, choice: Choice
) -> SourcePlan:
    by_source: dict[str, list[QueryVerdict]] = {}
    for verdict in verdicts:
        if verdict.positive is way:
            by_source.setdefault(verdict.source, []).append(verdict)
    chosen = [
        v for group in by_source.values() for v in _sample_queries(group, way, rng, at_most, choice)
    ]
    return SourcePlan.of(Query.read_wire(verdict.source, verdict.wire) for verdict in chosen)


def _sample_queries(
    verdicts: list[QueryVerdict], way: bool, rng: random.Random, at_most: int, choice: Choice
) -> list[QueryVerdict]:
    if choice == "random":
        return rng.sample(verdicts, min(at_most, len(verdicts)))
    # Highest scores for positives, lowest for negatives; `sorted` keeps ties in order.
    sign = -1 if way else 1
    return sorted(verdicts, key=lambda verdict: sign * (verdict.score or 0.0))[:at_most]


def case_random(seed: int, key: str) -> random.Random:
    """A case's own chance: it does not depend on which other cases there are."""
    # Seeded by text: hash-based seeding would differ from process to process.
    return random.Random(f"{seed}:{key}")
