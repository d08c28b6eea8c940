"""Statistics of source plans and the value of each source (Omni-RAG §5.5, App. A.1, B.1, B.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from osler.kb.encoders.base import Encoder
from osler.methods.omni.plan import SourcePlan
from osler.text import is_cjk
from osler.trace import Asked, Event
from osler_lab.evaluate.metrics import several


def queries_per_source(plans: Sequence[SourcePlan], sources: Iterable[str]) -> dict[str, float]:
    """Mean number of queries (Fig. 7). Raises `ValueError` without plans."""
    if not plans:
        raise ValueError("no plans, no mean")
    return {source: fmean(len(plan.of_source(source)) for plan in plans) for source in sources}


def words_per_query(plans: Iterable[SourcePlan], sources: Iterable[str]) -> dict[str, float | None]:
    """Mean words of a query (Table 12), a graph's term with it; `None` if absent.

    A Chinese character counts as a word.
    """
    made = list(plans)
    return {
        source: _mean_or_none(
            [_count_words(query.wire) for plan in made for query in plan.of_source(source)]
        )
        for source in sources
    }


def query_diversity(texts: Sequence[str], encoder: Encoder) -> float | None:
    """Mean cosine distance of all pairs (Eq. 5), in [0, 2]; `None` for fewer than two texts.

    Raises `ValueError` for a text without direction.
    """
    if len(texts) < 2:
        return None
    return several.query_diversity(encoder.encode(list(texts), kind="query").tolist())


def diversity_per_plan(
    plans: Iterable[SourcePlan], sources: Iterable[str], encoder: Encoder
) -> dict[str, float | None]:
    """Mean over the plans with two queries or more of a source (Table 13)."""
    made = list(plans)
    means = {}
    for source in sources:
        of = [[query.wire for query in plan.of_source(source)] for plan in made]
        means[source] = _mean_diversity(of, encoder)
    return means


def diversity_by_count(
    plans: Iterable[SourcePlan], sources: Iterable[str], encoder: Encoder
) -> dict[str, dict[int, float | None]]:
    """Mean diversity of the first 2, 3, … queries of each source over the plans (Fig. 6).

    A count that no plan reaches is left out, so the last ones are over fewer plans.
    """
    made = list(plans)
    means: dict[str, dict[int, float | None]] = {}
    for source in sources:
        lists = [[query.wire for query in plan.of_source(source)] for plan in made]
        means[source] = {
            count: _mean_diversity(
                [texts[:count] for texts in lists if len(texts) >= count], encoder
            )
            for count in range(2, max(map(len, lists), default=0) + 1)
        }
    return means


def _mean_diversity(lists: Iterable[Sequence[str]], encoder: Encoder) -> float | None:
    values = [query_diversity(texts, encoder) for texts in lists]
    return _mean_or_none([value for value in values if value is not None])


def relative_drop(accuracy: float, whole: float) -> float | None:
    """(accuracy - whole) / whole (Table 6); `None` where the whole is 0."""
    return several.relative_drop(accuracy, whole) if whole else None


@dataclass(frozen=True, slots=True)
class StageCost:
    """Cost of one stage of a run."""

    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    """Seconds spent in model calls."""


def cost_per_stage(events: Iterable[Event]) -> Mapping[str, StageCost]:
    """Model calls by role: the planner's, the judge's and the reader's (Table 11)."""
    stages: dict[str, StageCost] = {}
    for event in events:
        if isinstance(event, Asked):
            so_far = stages.get(event.role, StageCost())
            stages[event.role] = StageCost(
                so_far.calls + event.usage.calls,
                so_far.tokens + event.usage.tokens,
                so_far.seconds + event.usage.seconds,
            )
    return stages


def _count_words(text: str) -> int:
    # The graph's wire form "term , query" has a comma of its own, which is no word.
    spaced = "".join(f" {char} " if is_cjk(char) else char for char in text)
    return sum(any(map(str.isalnum, word)) for word in spaced.split())


def _mean_or_none(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
