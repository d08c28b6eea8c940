"""Which of the found passages to believe where they contradict each other.

Two passages contradict each other where a sentence of one is one of the other but for a number, a
negation or a word that points the other way. The looser rules of `disagreement` are not enough for
it: they took "160 mmHg" and "90 mmHg" of two chapters for a contradiction, and left both out (of
194 right first quotes of dev and seen questions 3 were lost so, 1 with twins alone). Copies of one
text count once, however many documents have it, and what holds against one holds against all of
them. Of all sets without a contradiction the heaviest is kept (ReliabilityRAG, arXiv 2509.23519,
§4: a maximum independent set, found exactly for up to `MOST` passages). A passage weighs by the
trust of its source, its type and its year, and by how many independent documents agree with it;
half as much where it repeats the question, as a text does that was made to be found by it
(PoisonedRAG, arXiv 2402.07867, §4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from osler.answer.cautions import (
    Review,
    ReviewingComposer,
    add_cautions,
    document_id,
    passage_name,
)
from osler.answer.disagreement import (
    LEAST_SHARED,
    LEAST_WORDS,
    Claim,
    Difference,
    are_twins,
    find_difference,
    find_twin_difference,
    is_checkable,
    read_claim,
    shared_content,
)
from osler.errors import SourceUnavailable
from osler.sources.catalogue import TABLE
from osler.text import split_sentences
from osler.types import Caution, Hit, Language, Question, Retriever

MOST = 20
"""Passages that are compared; what stands behind them is left as it is."""
_STEP = 3.0
"""Times that a passage weighs more with each step of trust: a few untrusted ones cannot outweigh
a guideline by their number."""
_AGREEMENT = 0.25
"""Share by which each document that agrees adds to a passage's weight."""
_TIE = 0.9
"""Share of the heavier side's weight from which the lighter one is as good: neither is believed."""
_ECHO, _ECHOED = 0.5, 0.9
"""Factor of a passage with a sentence that has this share of the question's words."""
_COPY = 1e-3
"""Factor of each further copy of a text."""
_STRONG = ("guideline", "meta-analysis", "systematic review", "randomized controlled trial")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two passages that say different things, the first of which is believed more."""

    kept: Hit
    dropped: Hit
    difference: Difference
    is_tie: bool = False
    """Whether both were left out, since neither side outweighs the other."""


def heaviest_consistent_set(
    weights: Sequence[float], conflicts: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    """Places of the independent set with the greatest sum of positive weights; of equal ones
    that with the earliest places. Exact: branch and bound over at most `MOST` places.

    Raises `ValueError` for more.
    """
    n = len(weights)
    if n > MOST:
        raise ValueError(f"{n} passages are too many for an exact answer")
    against = [0] * n
    for one, other in conflicts:
        against[one] |= 1 << other
        against[other] |= 1 << one
    best: tuple[float, int] = (-1.0, 0)

    def search(place: int, taken: int, barred: int, sum_: float, left: float) -> None:
        nonlocal best
        if sum_ + left <= best[0] + 1e-12:
            return
        if place == n:
            best = (sum_, taken)
            return
        rest = left - weights[place]
        if not barred >> place & 1:
            search(
                place + 1, taken | 1 << place, barred | against[place], sum_ + weights[place], rest
            )
        if against[place]:  # without a conflict there is no reason to leave it out
            search(place + 1, taken, barred, sum_, rest)

    search(0, 0, 0, 0.0, float(sum(weights)))
    return tuple(place for place in range(n) if best[1] >> place & 1)


@dataclass(frozen=True)
class ConsistentComposer(ReviewingComposer):
    """Composes from a consistent set of passages, and lists the passages left out.

    What was found is compared, too, with what else the `search` finds for the question and says the
    same but for a number, a negation or a direction: a text that was made to be found takes the
    place of the one that it was made from.
    """

    trust: Callable[[str], int]
    """Of a source, 1 to 5."""
    search: Retriever | None = None
    """`None` = what was found is compared with itself alone."""

    async def read_hits(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[Sequence[Hit], Review]:
        beside = await self._search_deeper(question.text) if hits else []
        read = {hit.passage.id for hit in hits}
        claims = [claim for hit in hits for claim in _checkable_claims(hit)]
        more = [
            hit for hit in beside if hit.passage.id not in read and _has_twin_against(hit, claims)
        ]
        kept, every = keep_consistent([*hits, *more], self.trust, question.text)
        found = [one for one in every if one.dropped.passage.id in read]
        # What a passage that was read is left out for is read in its place.
        read |= {one.kept.passage.id for one in found}
        chosen = [hit for hit in kept if hit.passage.id in read]
        return chosen, lambda answer: add_cautions(
            answer, (_word_caution(one, answer.language) for one in found)
        )

    async def _search_deeper(self, asked: str) -> Sequence[Hit]:
        """What else is found; nothing where no source can be searched, which the run tells."""
        if self.search is not None:
            with suppress(SourceUnavailable):
                return await self.search.search(asked, k=MOST)
        return []


def keep_consistent(
    hits: Sequence[Hit], trust: Callable[[str], int], question: str = ""
) -> tuple[list[Hit], list[Contradiction]]:
    """The hits without those that the believed ones contradict, and each such contradiction."""
    looked = list(hits[:MOST])
    compared = _compare_all(looked)
    different = compared.different
    if not different:
        return list(hits), []
    weights = [
        _weigh(hit, trust(hit.passage.source), compared.agreeing[place])
        * (_ECHO if _echoes(hit, question) else 1.0)
        * (_COPY if compared.first[place] != place else 1.0)
        for place, hit in enumerate(looked)
    ]
    best = {*heaviest_consistent_set(weights, list(different))}
    kept = best - _undecided(weights, list(different), best)
    said = [
        Contradiction(
            *((looked[a], looked[b]) if a in best else (looked[b], looked[a])),
            found,
            is_tie=not {a, b} & kept,
        )
        for (a, b), found in different.items()
        if (a in best) != (b in best)
    ]
    left = [hit for place, hit in enumerate(hits) if place in kept or place >= len(looked)]
    return left, said


@dataclass(frozen=True, slots=True)
class _Comparison:
    """What the passages say of each other, by their places."""

    different: dict[tuple[int, int], Difference]
    agreeing: list[int]
    """Documents that say the same in other words."""
    first: list[int]
    """Of each, the first of which it is a copy; its own place where it is none."""


def _compare_all(hits: Sequence[Hit]) -> _Comparison:
    claims = [_checkable_claims(hit) for hit in hits]
    comparison = _Comparison({}, [0] * len(hits), [*range(len(hits))])
    for one, other in combinations(range(len(hits)), 2):
        mine = hits[one].passage
        if document_id(mine) == document_id(hits[other].passage):
            continue
        found, agree, copied = _compare_claims(claims[one], claims[other], mine.language)
        if found is not None:
            comparison.different[one, other] = found
        elif copied:
            comparison.first[other] = comparison.first[one]
        elif agree:
            comparison.agreeing[one] += 1
            comparison.agreeing[other] += 1
    for (one, other), found in list(comparison.different.items()):
        for a, of in enumerate(comparison.first):
            for b, to in enumerate(comparison.first):
                if (of, to) == (comparison.first[one], comparison.first[other]) and a != b:
                    comparison.different.setdefault((min(a, b), max(a, b)), found)
    return comparison


def _undecided(
    weights: Sequence[float], conflicts: list[tuple[int, int]], best: set[int]
) -> set[int]:
    """Places of which nobody can say who is right: the other side weighs about as much."""
    undecided: set[int] = set()
    for group in _connected_groups(conflicts):
        against = group - best
        inner = [(a, b) for a, b in conflicts if {a, b} <= against]
        places = sorted(against)
        at = {place: number for number, place in enumerate(places)}
        other = heaviest_consistent_set(
            [weights[place] for place in places], [(at[a], at[b]) for a, b in inner]
        )
        theirs = sum(weights[places[number]] for number in other)
        if theirs >= _TIE * sum(weights[place] for place in group & best):
            undecided |= group
    return undecided


def _connected_groups(conflicts: Sequence[tuple[int, int]]) -> list[set[int]]:
    groups: list[set[int]] = []
    for pair in conflicts:
        touched = [group for group in groups if group & {*pair}]
        groups = [group for group in groups if not group & {*pair}]
        groups.append({*pair}.union(*touched))
    return groups


def _checkable_claims(hit: Hit) -> list[Claim]:
    """Of the sentences that the rules can compare. Rows of a table are alike but for what they are
    about: "Insulin aspart: 4 units" contradicts no other insulin's."""
    if hit.passage.locator.kind == TABLE:
        return []
    text = hit.passage.text
    sentences = (text[start:end] for start, end in split_sentences(text))
    return [read_claim(one) for one in sentences if is_checkable(one)]


def _has_twin_against(hit: Hit, claims: Sequence[Claim]) -> bool:
    mine = _checkable_claims(hit)
    return any(find_twin_difference(own, other) for own in mine for other in claims)


def _compare_claims(
    mine: Sequence[Claim], theirs: Sequence[Claim], language: Language
) -> tuple[Difference | None, bool, bool]:
    """The first difference of two twins, whether two sentences say the same, and whether it is in
    the same words."""
    agree = copied = False
    for own in mine:
        for other in theirs:
            twin = find_twin_difference(own, other)
            differs = find_difference(own, other, language)
            if twin is not None:
                return differs or twin, False, False
            akin = shared_content(own, other)[1] >= LEAST_SHARED
            agree = agree or (akin and differs is None)
            copied = copied or are_twins(own, other)
    return None, agree, copied


def _echoes(hit: Hit, question: str) -> bool:
    """Whether a sentence of the passage is nearly the question."""
    asked = {*read_claim(question).content}
    if len(asked) < LEAST_WORDS:
        return False
    text = hit.passage.text
    return any(
        len(asked & {*read_claim(text[start:end]).content}) >= _ECHOED * len(asked)
        for start, end in split_sentences(text)
        if text[start:end].rstrip().endswith(("?", "？"))
    )


def _weigh(hit: Hit, trust: int, agreeing: int) -> float:
    at = hit.passage.locator
    weight = _STEP ** (trust - 1) * (1 + _AGREEMENT * agreeing)
    if any(kind in at.kind.casefold() for kind in _STRONG):
        weight *= 1.25
    # A newer text is preferred, by less than anything else.
    return weight * (1 + max(0, (at.year or 0) - 1950) / 1000)


_WORDS = {
    "en": '{dropped} says "{denied}" where {kept} says "{said}"; the first was left out, as it is'
    " trusted less.",
    "zh": "{dropped} 为“{denied}”，而 {kept} 为“{said}”；前者可信度较低，未采用。",
}


_TIE_WORDS = {
    "en": '{dropped} says "{denied}" where {kept} says "{said}"; neither outweighs the other, and'
    " neither was used.",
    "zh": "{dropped} 为“{denied}”，而 {kept} 为“{said}”；两者可信度相当，均未采用。",
}


def _word_caution(found: Contradiction, language: Language) -> Caution:
    said, denied = found.difference.mine, found.difference.theirs
    if said not in found.kept.passage.text:
        said, denied = denied, said
    words = (_TIE_WORDS if found.is_tie else _WORDS)[language]
    kept, dropped = (passage_name(one.passage) for one in (found.kept, found.dropped))
    text = words.format(kept=kept, dropped=dropped, said=said, denied=denied)
    return Caution("contradicted", text, ())
