"""The heaviest set of passages that do not contradict each other, and what is said of the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from io import BytesIO
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer import UNDECIDED, Decision
from osler.answer.consistency import (
    MOST,
    ConsistentComposer,
    heaviest_consistent_set,
    keep_consistent,
)
from osler.errors import SourceUnavailable
from osler.kb.ingest.prepare import chunk
from osler.sources.catalogue import trust_of
from osler.sources.formats.rows import CsvRows
from osler.sources.records import Document
from osler.trace import Run
from osler.types import Answer, Hit, Passage, Question
from osler_lab.testing.scripted import ScriptedRetriever

RIGHT = "The dose of salbutamol in an acute attack is 5 mg."
WRONG = "The dose of salbutamol in an acute attack is 50 mg."


AGREES = "Give 5 mg of salbutamol by nebuliser in an acute attack, which is the dose of all."
ASKED = "What is the dose of salbutamol in an acute attack?"
MANY = "Prednisolone for croup is started at 20 mg, then halved to 10 mg for 3 days in hospital."
FEWER = "Mortality after surgical repair was lower with early antibiotics than with placebo."
BETTER = "Capivasertib with fulvestrant improved survival without progression in breast cancer."
STUDY = "Outcome of 45 patients aged 12 to 70 years after repair of hernia was good in 31 cases."
OTHERS = str.maketrans({"4": "8", "1": "9", "3": "6"})


def brute_force(weights: Sequence[float], conflicts: Sequence[tuple[int, int]]) -> float:
    places = range(len(weights))
    return max(
        sum(weights[place] for place in chosen)
        for size in range(len(weights) + 1)
        for chosen in combinations(places, size)
        if not any(a in chosen and b in chosen for a, b in conflicts)
    )


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=9), st.data())
def test_set_is_consistent_and_none_is_heavier(weights: list[float], data: st.DataObject) -> None:
    pairs = list(combinations(range(len(weights)), 2))
    conflicts = data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    kept = heaviest_consistent_set(weights, conflicts)
    assert not any(a in kept and b in kept for a, b in conflicts)
    assert sum(weights[place] for place in kept) == pytest.approx(brute_force(weights, conflicts))


def test_twenty_passages_are_exact_and_more_are_refused() -> None:
    ring = [(place, (place + 1) % MOST) for place in range(MOST)]
    assert len(heaviest_consistent_set([1.0] * MOST, ring)) == MOST // 2
    every = list(combinations(range(MOST), 2))
    assert heaviest_consistent_set([1.0] * 19 + [2.0], every) == (19,)
    with pytest.raises(ValueError, match="too many"):
        heaviest_consistent_set([1.0] * (MOST + 1), [])


def hits_of(*texts: tuple[str, str]) -> list[Hit]:
    return [
        Hit(Passage(f"{source}:{n}#0", text, source, f"T{n}"), 1.0, n, "q", "test")
        for n, (source, text) in enumerate(texts, 1)
    ]


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        # One wrong text against two that agree in words of their own, and copies of one of them.
        ([("web", WRONG), *[("web", RIGHT)] * 3, ("web", AGREES)], {2, 3, 4, 5}),
        # Copies count once, on either side: neither is believed.
        ([("web", WRONG), *[("web", RIGHT)] * 4], set()),
        ([*[("web", WRONG)] * 4, ("web", f"In short: {WRONG}"), ("web", RIGHT)], set()),
        # A text that repeats the question was made to be found by it.
        ([*[("web", f"{ASKED} {WRONG}")] * 5, ("web", RIGHT)], {6}),
        # Several amounts, of which one was changed; a comparison that was turned round.
        ([("web", MANY), ("guideline", MANY.replace("20 mg", "200 mg"))], {2}),
        ([("web", FEWER), ("guideline", FEWER.replace("lower", "higher"))], {2}),
        ([("web", BETTER), ("guideline", BETTER.replace("improved", "worsened"))], {2}),
        # Two studies in the same form are no contradiction.
        ([("web", STUDY), ("guideline", STUDY.translate(OTHERS))], {1, 2}),
        # Five wrong texts of little trust against one guideline.
        ([*[("web", WRONG)] * 5, ("guideline", RIGHT)], {6}),
        # As much on either side: neither is believed.
        ([("web", WRONG), ("web", RIGHT), ("book", "Oxygen is given too.")], {3}),
        ([*[("web", WRONG)] * 5, *[("web", RIGHT)] * 5], set()),
        # Nothing that contradicts: all stay.
        ([("web", RIGHT), ("book", "Oxygen is given too.")], {1, 2}),
    ],
)
def test_trusted_and_agreeing_passages_stay(given_: list[tuple[str, str]], kept: set[int]) -> None:
    left, found = keep_consistent(hits_of(*given_), trust_of, ASKED)
    assert {hit.rank for hit in left} == kept
    assert bool(found) == (len(kept) < len(given_))


class Remembers:
    uses_draft = writes_answer = False

    def __init__(self) -> None:
        self.seen: list[Hit] = []

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        self.seen.extend(hits)
        return Answer()


def test_what_took_the_place_of_its_original_is_found_out() -> None:
    """The planted text alone was read; a wider search finds what it was made from."""
    planted, original, other = hits_of(
        ("web", f"{ASKED} {WRONG}"), ("web", RIGHT), ("web", "Oxygen is given too.")
    )
    inner = Remembers()
    found = ScriptedRetriever({"": [hit.passage for hit in (planted, original, other)]})
    composer = ConsistentComposer(inner, trust_of, found)
    answer = asyncio.run(composer.conclude(Question("", ASKED), [planted], "", Run("r", 0)))
    assert [hit.passage.text for hit in inner.seen] == [RIGHT]
    assert [caution.rule for caution in answer.cautions] == ["contradicted"]


def test_what_was_found_is_compared_where_the_wider_search_cannot_be_made() -> None:
    class Down:
        async def search(self, query: str, *, k: int) -> list[Hit]:
            raise SourceUnavailable("the disk is gone", fix="mend it")

    inner = Remembers()
    composer = ConsistentComposer(inner, trust_of, Down())
    hits = hits_of(("web", WRONG), ("guideline", RIGHT))
    asyncio.run(composer.conclude(Question("", ASKED), hits, "", Run("r", 0)))
    assert [hit.passage.source for hit in inner.seen] == ["guideline"]


def test_contradiction_is_told_and_the_rest_is_not_shown_to_the_composer() -> None:
    run, inner = Run("r", 0), Remembers()
    composer = ConsistentComposer(inner, trust_of)
    hits = hits_of(("web", WRONG), ("guideline", RIGHT))
    answer = asyncio.run(composer.conclude(Question("", "Which dose?"), hits, "", run))
    assert [hit.passage.source for hit in inner.seen] == ["guideline"]
    (caution,) = answer.cautions
    assert caution.rule == "contradicted"
    assert caution.text.index('T1 says "50 mg"') < caution.text.index('T2 says "5 mg"')
    assert [event.type for event in run.events] == ["evidence.caution"]


def test_rows_about_two_drugs_do_not_contradict_each_other() -> None:
    rows = "drug,storage,dose\nInsulin aspart,2 to 8 °C,4 units\nInsulin glargine,20 °C,10 units\n"
    records = CsvRows().parse(BytesIO(rows.encode()), "formulary.csv")
    documents = [record for record in records if isinstance(record, Document)]
    passages = [one for each in documents for one in chunk(each, source="hospital")]
    hits = [Hit(one, 1.0, rank, "", "lexical") for rank, one in enumerate(passages, 1)]

    kept, found = keep_consistent(hits, lambda _: 3, "How is insulin stored?")

    assert (list(kept), found) == (hits, [])
