"""Similar patients: exact nearest neighbours by diagnoses, with age and sex.

**The score.** A patient is a set of places in the hierarchy of codes: each diagnosis with all
that it belongs to (`codes.code_lineage`). A place `f` weighs

    w(f) = level(f) * ln(1 + N / n(f))

where `N` is the number of patients with any diagnosis, `n(f)` of those in `f` (at least 1), and
`level` is 1 for a code, 0.75 for a subcategory, 0.5 for a category, 0.25 for a block and 0.1 for
a chapter. So a rare diagnosis weighs more than a frequent one, and two different codes of one
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

from osler_serve.clinic.records.codes import Code, CodeLevel, CodeSystem, Node, code_lineage
from osler_serve.clinic.records.crosswalk import Crosswalk, translate_all
from osler_serve.clinic.records.patient_document import PatientProfile

LEVEL = {
    CodeLevel.CODE: 1.0,
    CodeLevel.SUBCATEGORY: 0.75,
    CodeLevel.CATEGORY: 0.5,
    CodeLevel.BLOCK: 0.25,
    CodeLevel.CHAPTER: 0.1,
}
AGE_LOSS, SEX_LOSS, AGE_SPAN = 0.3, 0.2, 40
"""Shares of the score lost by another age (in full from `AGE_SPAN` years on) and another sex."""

# Decimals of a score; those behind depend on the order of summation.
_DIGITS = 12

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DiagnosisMatch:
    """A diagnosis of the query and its nearest counterpart in a similar patient."""

    asked: Code
    found: Code
    level: CodeLevel


@dataclass(frozen=True, slots=True)
class SimilarPatient:
    """A patient that is similar to the query."""

    id: str
    score: float
    """In (0, 1]; 1 = equal."""
    matches: tuple[DiagnosisMatch, ...]
    """The most specific first, then in the order of the query's codes."""


class Cohort:
    """An index of patients. Built once, then read by any number of threads."""

    def __init__(
        self,
        profiles: Iterable[PatientProfile],
        walk: Crosswalk | None = None,
        target: CodeSystem = CodeSystem.ICD9,
    ) -> None:
        self._walk, self._target = walk, target
        self.unmapped: Counter[CodeSystem] = Counter()
        """By vocabulary, the number of codes that could not be translated into the common one."""
        self._profiles: list[PatientProfile] = []
        self._number: dict[Node, int] = {}
        members: list[array[int]] = []
        for profile in profiles:
            nodes, unmapped = self._nodes_of(profile.codes)
            if not nodes:
                continue  # without a diagnosis there is nothing to compare
            self.unmapped += unmapped
            for node in nodes:
                number = self._number.setdefault(node, len(members))
                if number == len(members):
                    members.append(array("l"))
                members[number].append(len(self._profiles))
            self._profiles.append(profile)
        self._build_index(members)

    def __len__(self) -> int:
        return len(self._profiles)

    def find_nearest(self, query: PatientProfile, *, k: int) -> list[SimilarPatient]:
        """The `k` most similar, best first and equal ones by id; none at score 0.

        Exact: every patient with a common place is scored.
        """
        nodes, _ = self._nodes_of(query.codes)
        if not nodes or not self._profiles or k < 1:
            return []
        shared = np.zeros(len(self._profiles))
        for node in sorted(nodes):
            if (number := self._number.get(node)) is not None:
                start, end = self._starts[number], self._starts[number + 1]
                shared[self._members[start:end]] += self._weights[number]
        union = self._totals + math.fsum(map(self.weight_of, nodes)) - shared
        scores = np.round(shared / union * self._closeness_to(query), _DIGITS)
        return [
            SimilarPatient(
                self._profiles[place].id, float(scores[place]), self.explain_match(query, place)
            )
            for place in self._best_places(scores, k)
        ]

    def weight_of(self, node: Node) -> float:
        """The weight w(f) of a place in the hierarchy (see the module's docstring)."""
        number = self._number.get(node)
        count = 1 if number is None else int(self._starts[number + 1] - self._starts[number])
        return LEVEL[node[0]] * math.log1p(max(1, len(self._profiles)) / count)

    def explain_match(self, query: PatientProfile, place: int) -> tuple[DiagnosisMatch, ...]:
        """For each code of the query, the patient's nearest code."""
        nearest: dict[Node, Code] = {}
        for code in sorted(self._profiles[place].codes):
            for node in self._lineages_of(code):
                nearest.setdefault(node, code)
        order = list(CodeLevel)
        matches = []
        for code in sorted(query.codes):
            nodes = [node for node in self._lineages_of(code) if node in nearest]
            if nodes:
                best = min(nodes, key=lambda node: order.index(node[0]))
                matches.append(DiagnosisMatch(code, nearest[best], best[0]))
        return tuple(sorted(matches, key=lambda match: order.index(match.level)))

    def _build_index(self, members: Sequence[array[int]]) -> None:
        lengths = [len(each) for each in members]
        self._starts: Integers = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
        self._members: Integers = np.array([], np.int64)
        if members:
            self._members = np.concatenate([np.asarray(each, np.int64) for each in members])
        self._weights: Floats = np.array([self.weight_of(node) for node in self._number])
        every = np.repeat(self._weights, lengths)
        totals = np.bincount(self._members, weights=every, minlength=len(self._profiles))
        self._totals: Floats = totals.astype(np.float64)
        self._ages: Floats = np.array(
            [math.nan if p.age is None else float(p.age) for p in self._profiles]
        )
        self._sexes = np.array([p.sex for p in self._profiles], dtype=object)
        self._ids = np.array([p.id for p in self._profiles], dtype=object)

    def _nodes_of(self, codes: Iterable[Code]) -> tuple[frozenset[Node], Counter[CodeSystem]]:
        kept, unmapped = translate_all(codes, self._walk, self._target)
        return frozenset(node for code in kept for node in code_lineage(code)), unmapped

    def _lineages_of(self, code: Code) -> list[Node]:
        kept, _ = translate_all([code], self._walk, self._target)
        return [node for each in sorted(kept) for node in code_lineage(each)]

    def _closeness_to(self, query: PatientProfile) -> Floats:
        close: Floats = np.ones(len(self._profiles))
        if query.age is not None:
            apart = np.minimum(1.0, np.abs(self._ages - query.age) / AGE_SPAN)
            close -= AGE_LOSS * np.nan_to_num(apart, nan=0.0)
        if query.sex:
            close -= SEX_LOSS * ((self._sexes != query.sex) & (self._sexes != ""))
        return close

    def _best_places(self, scores: Floats, k: int) -> list[int]:
        places = np.flatnonzero(scores > 0)
        if len(places) > k:
            # Only those that can be among the best are sorted; ties at the edge stay in.
            least = np.partition(scores[places], len(places) - k)[len(places) - k]
            places = places[scores[places] >= least]
        return sorted(places.tolist(), key=lambda at: (-scores[at], self._ids[at]))[:k]
