"""Which of the found passages to believe where they contradict each other.

Two passages contradict each other where a sentence of one differs from one of the other by the
rules of `disagreement`. Of all sets without a contradiction the heaviest is kept (ReliabilityRAG,
arXiv 2509.23519, §4: a maximum independent set, found exactly for up to `MOST` passages). A
passage weighs by the trust of its source, its type and its year, and by how many independent
documents agree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from osler.answer import UNDECIDED, Composer, Decision
from osler.answer.cautions import caution_event
from osler.answer.disagreement import (
    LEAST_SHARED,
    Claim,
    Difference,
    find_difference,
    read_amounts,
    read_claim,
    read_directions,
    shared_content,
)
from osler.text import split_sentences
from osler.trace import Run
from osler.types import Answer, Caution, Hit, Language, Question

MOST = 20
"""Passages that are compared; what stands behind them is left as it is."""
_STEP = 3.0
"""Times that a passage weighs more with each step of trust: a few untrusted ones cannot outweigh
a guideline by their number."""
_AGREEMENT = 0.25
"""Share by which each document that agrees adds to a passage's weight."""
_TIE = 0.9
"""Share of the heavier side's weight from which the lighter one is as good: neither is believed."""
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
class ConsistentComposer:
    """A composer that is given a consistent set of passages, and says what was left out."""

    composer: Composer
    trust: Callable[[str], int]
    """Of a source, 1 to 5."""

    @property
    def uses_draft(self) -> bool:
        return self.composer.uses_draft

    @property
    def writes_answer(self) -> bool:
        return self.composer.writes_answer

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        kept, found = keep_consistent(hits, self.trust)
        answer = await self.composer.conclude(question, kept, draft, run, decision=decision)
        if not found:
            return answer
        cautions = tuple(_word_caution(one, answer.language) for one in found)
        for caution in cautions:
            if (event := caution_event(caution)) not in run.events:
                run.emit(event)
        return replace(answer, cautions=(*answer.cautions, *cautions))


def keep_consistent(
    hits: Sequence[Hit], trust: Callable[[str], int]
) -> tuple[list[Hit], list[Contradiction]]:
    """The hits without those that the believed ones contradict, and each such contradiction."""
    looked = list(hits[:MOST])
    claims = [_checkable_claims(hit) for hit in looked]
    different: dict[tuple[int, int], Difference] = {}
    agreeing = [0] * len(looked)
    for one in range(len(looked)):
        for other in range(one + 1, len(looked)):
            if _document(looked[one]) == _document(looked[other]):
                continue
            found, agree = _compare_claims(claims[one], claims[other], looked[one])
            if found is not None:
                different[one, other] = found
            elif agree:
                agreeing[one] += 1
                agreeing[other] += 1
    if not different:
        return list(hits), []
    weights = [
        _weigh(hit, trust(hit.passage.source), agreed)
        for hit, agreed in zip(looked, agreeing, strict=True)
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
    """Of the sentences that the rules can compare."""
    text = hit.passage.text
    sentences = (text[start:end] for start, end in split_sentences(text))
    return [read_claim(one) for one in sentences if read_amounts(one) or read_directions(one)]


def _compare_claims(
    mine: Sequence[Claim], theirs: Sequence[Claim], hit: Hit
) -> tuple[Difference | None, bool]:
    """The first difference of two sentences, and whether two of them say the same."""
    agree = False
    for own in mine:
        for other in theirs:
            found = find_difference(own, other, hit.passage.language)
            if found is not None:
                return found, False
            agree = agree or shared_content(own, other)[1] >= LEAST_SHARED
    return None, agree


def _weigh(hit: Hit, trust: int, agreeing: int) -> float:
    at = hit.passage.locator
    weight = _STEP ** (trust - 1) * (1 + _AGREEMENT * agreeing)
    if any(kind in at.kind.casefold() for kind in _STRONG):
        weight *= 1.25
    # A newer text is preferred, by less than anything else.
    return weight * (1 + max(0, (at.year or 0) - 1950) / 1000)


def _document(hit: Hit) -> str:
    return hit.passage.id.rpartition("#")[0] or hit.passage.id


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
    difference, names = found.difference, {}
    for role, hit in (("kept", found.kept), ("dropped", found.dropped)):
        names[role] = hit.passage.title or hit.passage.id
    mine_kept = difference.mine in found.kept.passage.text
    said, denied = difference.mine, difference.theirs
    if not mine_kept:
        said, denied = denied, said
    words = _TIE_WORDS if found.is_tie else _WORDS
    return Caution("contradicted", words[language].format(said=said, denied=denied, **names), ())
