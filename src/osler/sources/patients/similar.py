"""Who is like whom: exact nearest patients by their diagnoses, with age and sex.

**The score.** A patient is a set of places in the hierarchy of codes: each diagnosis with all
that it belongs to (`codes.lineage`). A place `f` weighs

    w(f) = level(f) * ln(1 + N / n(f))

where `N` is the number of patients with any diagnosis, `n(f)` of those in `f` (at least 1), and
`level` is 1 for a code, 0.75 for a subcategory, 0.5 for a category, 0.25 for a block and 0.1 for
a chapter. So a rare diagnosis tells more than a frequent one, and two different codes of one
category have something in common, though less than one code. The likeness of two patients is the
weighted Jaccard index of their sets, lowered where age and sex are known of both and differ:

    score = sum of w over both sets' common places / sum of w over all their places
            * (1 - 0.3 * min(1, |difference of age| / 40) - 0.2 * [sexes differ])

It is symmetric, in [0, 1], and 1 for equal patients (with a diagnosis); no common place gives 0;
a diagnosis that is added to both never lowers it, and one that is added to one alone and shares
nothing with the other never raises it.

**The vocabulary.** All codes are translated into one (the papers' ICD-9-CM by default; TC-RAG
App. 8.5) where maps are given. Codes without a map stay what they are, are compared with their
equals, and are counted.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from osler.sources.patients.codes import Code, Level, Node, System, lineage
from osler.sources.patients.crosswalk import Crosswalk, common
from osler.sources.patients.patient_document import Profile

LEVEL = {
    Level.CODE: 1.0,
    Level.SUBCATEGORY: 0.75,
    Level.CATEGORY: 0.5,
    Level.BLOCK: 0.25,
    Level.CHAPTER: 0.1,
}
AGE_LOSS, SEX_LOSS, AGE_SPAN = 0.3, 0.2, 40
"""What another age (from `AGE_SPAN` years of difference on, in full) and another sex take away."""

_DIGITS = 12
"""Of a score: what lies behind is the order of adding, not likeness."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Match:
    """Why a patient is like the one asked for: one diagnosis and its nearest counterpart."""

    asked: Code
    found: Code
    level: Level


@dataclass(frozen=True, slots=True)
class Similar:
    """A patient that is like the one asked for."""

    id: str
    score: float
    """In (0, 1]; 1 = equal."""
    matches: tuple[Match, ...]
    """In the order of the codes asked for, those with the most in common first."""


class Cohort:
    """Patients that can be compared. Built once, then read by any number of threads."""

    def __init__(
        self,
        profiles: Iterable[Profile],
        walk: Crosswalk | None = None,
        target: System = System.ICD9,
    ) -> None:
        self._walk, self._target = walk, target
        self.unmapped: Counter[System] = Counter()
        """Distinct codes of a patient that no map leads into the common vocabulary."""
        self._profiles: list[Profile] = []
        self._number: dict[Node, int] = {}
        members: list[array[int]] = []
        for profile in profiles:
            nodes, unmapped = self._nodes(profile.codes)
            if not nodes:
                continue  # without a diagnosis there is nothing to compare
            self.unmapped += unmapped
            for node in nodes:
                number = self._number.setdefault(node, len(members))
                if number == len(members):
                    members.append(array("l"))
                members[number].append(len(self._profiles))
            self._profiles.append(profile)
        self._index(members)

    def __len__(self) -> int:
        return len(self._profiles)

    def nearest(self, query: Profile, *, k: int) -> list[Similar]:
        """The `k` most similar, best first and equal ones by id; none at score 0.

        Exact: every patient with a common place is scored.
        """
        nodes, _ = self._nodes(query.codes)
        if not nodes or not self._profiles or k < 1:
            return []
        shared = np.zeros(len(self._profiles))
        for node in sorted(nodes):
            if (number := self._number.get(node)) is not None:
                start, end = self._starts[number], self._starts[number + 1]
                shared[self._members[start:end]] += self._weights[number]
        union = self._totals + math.fsum(map(self.weight, nodes)) - shared
        scores = np.round(shared / union * self._closeness(query), _DIGITS)
        return [
            Similar(self._profiles[place].id, float(scores[place]), self.why(query, place))
            for place in self._best(scores, k)
        ]

    def weight(self, node: Node) -> float:
        """How much a place tells."""
        number = self._number.get(node)
        held = 1 if number is None else int(self._starts[number + 1] - self._starts[number])
        return LEVEL[node[0]] * math.log1p(max(1, len(self._profiles)) / held)

    def likeness(self, one: Profile, other: Profile) -> float:
        """The score of any two profiles with the weights of this cohort."""
        first, second = self._nodes(one.codes)[0], self._nodes(other.codes)[0]
        every = math.fsum(map(self.weight, first | second))
        both = math.fsum(map(self.weight, first & second))
        return round(both / every * closeness(one, other), _DIGITS) if every else 0.0

    def why(self, query: Profile, place: int) -> tuple[Match, ...]:
        """For each code asked for, what the patient has nearest to it."""
        held: dict[Node, Code] = {}
        for code in sorted(self._profiles[place].codes):
            for node in self._lineages(code):
                held.setdefault(node, code)
        order = list(Level)
        matches = []
        for code in sorted(query.codes):
            nodes = [node for node in self._lineages(code) if node in held]
            if nodes:
                best = min(nodes, key=lambda node: order.index(node[0]))
                matches.append(Match(code, held[best], best[0]))
        return tuple(sorted(matches, key=lambda match: order.index(match.level)))

    def _index(self, members: Sequence[array[int]]) -> None:
        lengths = [len(each) for each in members]
        self._starts: Integers = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self._members: Integers = np.array([], np.int64)
        if members:
            self._members = np.concatenate([np.asarray(each, np.int64) for each in members])
        self._weights: Floats = np.array([self.weight(node) for node in self._number])
        every = np.repeat(self._weights, lengths)
        totals = np.bincount(self._members, weights=every, minlength=len(self._profiles))
        self._totals: Floats = totals.astype(np.float64)
        self._ages: Floats = np.array(
            [math.nan if p.age is None else float(p.age) for p in self._profiles]
        )
        self._sexes = np.array([p.sex for p in self._profiles], dtype=object)
        self._ids = np.array([p.id for p in self._profiles], dtype=object)

    def _nodes(self, codes: Iterable[Code]) -> tuple[frozenset[Node], Counter[System]]:
        kept, unmapped = common(codes, self._walk, self._target)
        return frozenset(node for code in kept for node in lineage(code)), unmapped

    def _lineages(self, code: Code) -> list[Node]:
        kept, _ = common([code], self._walk, self._target)
        return [node for each in sorted(kept) for node in lineage(each)]

    def _closeness(self, query: Profile) -> Floats:
        close: Floats = np.ones(len(self._profiles))
        if query.age is not None:
            apart = np.minimum(1.0, np.abs(self._ages - query.age) / AGE_SPAN)
            close -= AGE_LOSS * np.nan_to_num(apart, nan=0.0)
        if query.sex:
            close -= SEX_LOSS * ((self._sexes != query.sex) & (self._sexes != ""))
        return close

    def _best(self, scores: Floats, k: int) -> list[int]:
        found = np.flatnonzero(scores > 0)
        if len(found) > k:
            least = np.partition(scores[found], len(found) - k)[len(found) - k]
            found = found[scores[found] >= least]
        return sorted(found.tolist(), key=lambda at: (-scores[at], self._ids[at]))[:k]


def closeness(one: Profile, other: Profile) -> float:
    """What age and sex leave of a score, in [0.5, 1]."""
    close = 1.0
    if one.age is not None and other.age is not None:
        close -= AGE_LOSS * min(1.0, abs(one.age - other.age) / AGE_SPAN)
    if one.sex and other.sex and one.sex != other.sex:
        close -= SEX_LOSS
    return close
