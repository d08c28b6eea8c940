"""What goes first among sentences that are about as likely, and what a value's range has."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from osler.answer.checks import AskedFacts
from osler.answer.gate import LIKELY, EvidenceGate
from osler.answer.precedence import WARNING_SHARE, put_first
from osler.answer.sentences import QuoteCandidate
from osler.answer.values import measure_distance, read_ranges, read_values
from osler.retrieve.asked import QuestionReader
from osler.types import Hit, Passage, Question

ABOVE = (
    "With an INR above 8.0 and no bleeding, stop warfarin and give vitamin K 1 to 5 mg by mouth."
)
BETWEEN = "Without bleeding, an INR of 5.0 to 8.0 is managed by leaving out one or two doses."
BELOW = "Restart when the INR is below 5.0."
GIVE = "Give aspirin 300 mg at once, and have the patient seen within 24 hours."
FORBID = "Do not give aspirin: it may be a bleed."


def candidates(*said: tuple[str, float], source: str = "guideline") -> list[QuoteCandidate]:
    hits = [
        Hit(Passage(f"{source}:{at}", text, source, "Care"), 1.0, at + 1, "q", source)
        for at, (text, _) in enumerate(said)
    ]
    return [
        QuoteCandidate(hit, 0, len(text), share)
        for hit, (text, share) in zip(hits, said, strict=True)
    ]


def order(asked: str, *said: tuple[str, float]) -> list[str]:
    facts = AskedFacts(QuestionReader().read(asked))
    return [one.text for one in put_first(facts, candidates(*said))]


@pytest.mark.parametrize(
    ("sentence", "value", "covered"),
    [
        (ABOVE, "9.1", True),
        (ABOVE, "6.4", False),
        (BETWEEN, "6.4", True),
        (BETWEEN, "9", False),
        (BELOW, "4", True),
        ("The INR is checked weekly.", "9", None),
        ("An INR of 5 or more is looked at.", "5", True),
        ("INR 2～3 为目标。", "2.5", True),
        ("INR超过8时停用。", "6.4", False),
        ("Vitamin K is given for an INR problem: 1 to 5 mg.", "9", None),
    ],
)
def test_a_range_has_a_value_or_leaves_it_out(
    sentence: str, value: str, covered: bool | None
) -> None:
    far = measure_distance(f"INR came back {value}, not bleeding. What now?", sentence)
    assert (far if far is None else far < inf) is covered


def test_a_range_denied_is_the_other_one() -> None:
    assert measure_distance("INR 5.2怎么办", "INR不超过3.0即可") == inf
    assert measure_distance("血钾2.9", "血钾不低于3.5者") == inf


def test_a_clause_that_begins_with_its_range_is_of_the_measure_named_before() -> None:
    clause, before = (
        "4.5～10而无出血者停1～2次",
        "INR高于目标但不足4.5且无出血时，减量或停一次即可；",
    )
    assert measure_distance("INR 5.2怎么办", clause, before) == 0.0
    assert measure_distance("INR 5.2怎么办", clause) is None
    assert measure_distance("INR 5.2怎么办", "口服维生素K 2.5～5 mg", before) is None


@pytest.mark.parametrize("unit", ["is", "at", "aaaa", "a-", "是", "有为", "1", "1.", "to "])
def test_no_repetition_takes_more_than_a_moment_to_read(unit: str) -> None:
    """One question of 8,000 letters held a whole server for an hour."""
    repeated = (unit * 8_000)[:8_000]
    assert len(list(read_values(repeated))) <= len(repeated)
    assert len(read_ranges(repeated)) <= len(repeated)


def test_a_time_or_a_dose_is_no_value() -> None:
    assert not list(read_values("glucose 2h after the drink, warfarin 5 mg, for 3 days"))
    assert list(read_values("今早血钾5.7，吃螺内酯3天")) == [("今早血钾", 5.7)]
    assert not read_ranges("for 5 to 7 days, 1 to 2 mmol per kilogram")


def test_of_a_value_the_sentence_whose_range_has_it_goes_first() -> None:
    asked = "INR came back 6.4, not bleeding. What do I do with the warfarin?"
    assert order(asked, (ABOVE, 0.7), (BELOW, 0.65), (BETWEEN, 0.6)) == [BETWEEN, ABOVE, BELOW]
    assert order(asked, (ABOVE, 0.8), (BETWEEN, 0.26)) == [BETWEEN, ABOVE]
    assert order(asked, (ABOVE, 0.7), (BETWEEN, 0.2)) == [ABOVE, BETWEEN], "far less likely"
    nine = asked.replace("6.4", "9.1")
    assert order(nine, (ABOVE, 0.6), (BETWEEN, 0.59))[0] == ABOVE
    plain = "What do I do with the warfarin?"
    assert order(plain, (ABOVE, 0.7), (BETWEEN, 0.69))[0] == ABOVE
    wide = "With an INR above 1.5 the day before, give vitamin K by mouth."
    assert order(asked, (wide, 0.8), (BETWEEN, 0.7)) == [BETWEEN, wide]


def test_what_forbids_the_drug_goes_before_what_advises_it_and_as_likely() -> None:
    asked = "It looks like a stroke. Shall I give her an aspirin?"
    facts = AskedFacts(QuestionReader().read(asked))
    first, second = put_first(facts, candidates((GIVE, 0.6), (FORBID, 0.5)))
    assert (first.text, second.text) == (FORBID, GIVE)
    assert first.relevance == pytest.approx(0.6)
    far = 0.6 * WARNING_SHARE - 0.01
    assert order(asked, (GIVE, 0.6), (FORBID, far))[0] == GIVE
    other = FORBID.replace("aspirin", "ibuprofen")
    assert order(asked, (GIVE, 0.6), (other, 0.6))[0] == GIVE


def test_a_finding_goes_before_why_its_study_was_made() -> None:
    why, found = "BACKGROUND: Steroids have long been given.", "CONCLUSIONS: They save nobody."
    facts = AskedFacts(QuestionReader().read("Do steroids save lives in shock?"))
    first, second = candidates((why, 0.9), (found, 0.8))
    failing = replace(first, failed=frozenset({"background"}))
    assert [one.text for one in put_first(facts, [failing, second])] == [found, why]
    unsure = replace(second, relevance=0.9 * WARNING_SHARE - 0.01)
    assert put_first(facts, [failing, unsure])[0].text == why
    assert put_first(facts, [failing, replace(second, failed=frozenset({"amount"}))])[0] == failing


def test_a_dose_of_adults_goes_before_one_of_children_who_are_not_asked_about() -> None:
    child = "Paracetamol for children is given as 15 mg/kg per dose."
    adult = "For adults the highest dose of paracetamol is 4 g in 24 hours."
    both = "Give paracetamol 1 g to an adult or 15 mg/kg to a child."
    asked = "maximum daily dose of paracetamol"
    assert order(asked, (child, 0.9), (adult, 0.5)) == [adult, child]
    assert order(asked, (child, 0.9), (adult, 0.3)) == [child, adult], "far less likely"
    assert order(asked, (both, 0.9), (adult, 0.8)) == [both, adult]
    assert order(f"{asked} for my son of 4", (child, 0.9), (adult, 0.8)) == [child, adult]
    other = adult.replace("paracetamol", "ibuprofen")
    assert order(asked, (child, 0.9), (other, 0.8)) == [child, other]


class TableOfShares(EvidenceGate):
    """A gate whose sentences have known probabilities."""

    async def weigh_sentences(self, asked: str, hits: list[Hit]) -> list[QuoteCandidate]:  # type: ignore[override]
        shares = {GIVE: LIKELY + 0.1, FORBID: LIKELY + 0.05, BETWEEN: LIKELY + 0.2}
        found = [
            replace(QuoteCandidate(hit, 0, len(hit.passage.text), 0.0), relevance=shares[text])
            for hit in hits
            for text in [hit.passage.text]
        ]
        return sorted(found, key=lambda one: -one.relevance)


async def test_a_warning_of_an_untrusted_source_is_shown_though_trusted_ones_answer() -> None:
    trusted = [one.hit for one in candidates((GIVE, 0.6))]
    doubted = [one.hit for one in candidates((FORBID, 0.5), (BETWEEN, 0.5), source="web")]
    gate = TableOfShares(relevance=None)  # type: ignore[arg-type]
    asked = Question("q", "It looks like a stroke. Shall I give her an aspirin?")
    weighed = await gate.weigh_evidence(asked, [*trusted, *doubted])
    assert [one.text for one in weighed.quotes] == [FORBID, GIVE], "and nothing else of it"
    asked = Question("q", "It looks like a stroke. Shall I give her an oatcake?")
    weighed = await gate.weigh_evidence(asked, [*trusted, *doubted])
    assert [one.text for one in weighed.quotes] == [GIVE]
