"""The gate: one probability for each sentence, and three outcomes by it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from osler.answer import NOTHING_SAID
from osler.answer.checks import DECISIVE, AskedFacts, weigh_failures
from osler.answer.extractive import (
    FURTHER,
    NOTE,
    ExtractiveComposer,
    choose_quotes,
    describe_sureness,
    introduce_nearest,
)
from osler.answer.gate import (
    BY_MEANING,
    BY_RELEVANCE,
    CHECK,
    COMPARED,
    JUDGED,
    LIKELY,
    OWN_WORDS,
    PASSAGE,
    PASSAGE_WORDS,
    READ,
    AnswerFit,
    EvidenceGate,
    read_fits,
)
from osler.answer.sentences import QuoteCandidate, judged_text
from osler.errors import ModelError
from osler.retrieve.experts.cards import ExpertCard
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.relevance import OverlapRelevance
from osler.trace import Asked, Run
from osler.types import Answer, Grounding, Hit, Language, Locator, Passage, Question
from osler_lab.testing.scripted import ScriptedModel

SCURVY = "Scurvy is a lack of vitamin C in the diet."
GUMS = "Bleeding gums are an early symptom of scurvy."
JOINTS = "Swollen joints follow in scurvy after weeks."
SAILORS = "Sailors feared scurvy for three centuries."
TEXT = f"{SAILORS} {GUMS} {SCURVY} {JOINTS} What are the symptoms of scurvy? See the page on gums."
ASKED = Question("q", "What are the symptoms of scurvy?")
SURE: Mapping[str, float] = {GUMS: 3.0, JOINTS: 2.0, SCURVY: -1.0, SAILORS: -4.0}
FAILED = 1.6
ALONE = AnswerFit(ordered=9.0, bias=0.0, relevance=0.0, judged=1.0, failed=FAILED, margin=0.0)
"""The judge's logit orders, and is the probability's."""


@dataclass
class KnownJudge:
    """A judge that knows its sentences."""

    logits: Mapping[str, float] = field(default_factory=lambda: SURE)
    asked: list[tuple[str, list[JudgedText]]] = field(default_factory=list)

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        read = [JudgedText.of_line(text) for text in texts]
        self.asked.append((query, read))
        return tuple(self.logits.get(one.sentence, -9.0) for one in read)


@dataclass(frozen=True)
class KnownRelevance:
    """A relevance that knows what stands in a text."""

    parts: Mapping[str, float]

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(sum(v for part, v in self.parts.items() if part in text) for text in texts)


def hit(
    text: str,
    number: int = 0,
    title: str = "Scurvy",
    source: str = "web",
    section: str = "",
    language: Language = "en",
) -> Hit:
    locator = Locator(section=section)
    passage = Passage(f"{source}:a#{number}", text, source, title, locator, language=language)
    return Hit(passage, 1.0, number + 1, "q", source)


def judging(judge: KnownJudge | None = None, **changes: object) -> EvidenceGate:
    gate = EvidenceGate(
        OverlapRelevance(),
        judge=judge or KnownJudge(),
        fits={"en": ALONE, "zh": ALONE},
        identity="judge@1",
        answers=0.6,
        nearest=0.35,
    )
    return replace(gate, **changes)  # type: ignore[arg-type]


def chance(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


async def test_sentences_are_quoted_in_the_order_of_their_probability() -> None:
    weighed = await judging().weigh_evidence(ASKED, [hit(TEXT)])
    assert [one.text for one in weighed.quotes] == [GUMS, JOINTS, SCURVY, SAILORS]
    wanted = [chance(SURE[one.text]) for one in weighed.quotes]
    assert [one.relevance for one in weighed.quotes] == pytest.approx(wanted)


async def test_the_sureness_is_the_best_sentence_s_probability_by_name() -> None:
    weighed = await judging().weigh_evidence(ASKED, [hit(TEXT)])
    assert weighed.sureness is not None
    assert weighed.sureness.probability == weighed.quotes[0].relevance
    assert weighed.sureness.by == "judge@1"


@pytest.mark.parametrize(
    ("probability", "answered", "near"),
    [
        (0.9, True, False),
        (0.31, True, False),
        (0.29, False, True),
        (0.11, False, True),
        (0.09, False, False),
        (0.001, False, False),
    ],
)
async def test_one_probability_decides_among_answer_nearest_and_nothing(
    probability: float, answered: bool, near: bool
) -> None:
    judge = KnownJudge({GUMS: math.log(probability / (1 - probability))})
    weighed = await judging(judge, answers=0.3, nearest=0.1).weigh_evidence(ASKED, [hit(TEXT)])
    assert bool(weighed.quotes) is answered
    assert bool(weighed.near) is near
    assert weighed.sureness is not None
    assert weighed.sureness.probability == pytest.approx(probability)


@pytest.mark.parametrize("source", ["web", "book", "guideline", "research", "wiki"])
async def test_the_floor_is_the_same_in_every_source(source: str) -> None:
    judge = KnownJudge({GUMS: 0.0})
    weighed = await judging(judge).weigh_evidence(ASKED, [hit(TEXT, source=source)])
    assert weighed.quotes == []
    assert weighed.near[0].text == GUMS


async def test_what_nobody_vouches_for_is_read_where_the_others_do_not_likely_answer() -> None:
    planted = hit("Purple gums are the first symptom of scurvy.", 1, source="web")
    own = hit(GUMS, source="book")
    likely, unlikely = math.log(LIKELY / (1 - LIKELY)), math.log(LIKELY / (1 - LIKELY)) - 0.01
    for logit, sources in ((likely, ["book"]), (unlikely, ["web", "book"])):
        gate = judging(KnownJudge({planted.passage.text: 4.0, GUMS: logit}))
        weighed = await gate.weigh_evidence(ASKED, [planted, own])
        assert [one.hit.passage.source for one in weighed.quotes or weighed.near] == sources
    alone = await judging(KnownJudge({planted.passage.text: 4.0})).weigh_evidence(ASKED, [planted])
    assert [one.hit for one in alone.quotes] == [planted]


async def test_without_hits_there_is_nothing_and_no_sureness() -> None:
    for hits in ([], [hit("")], [hit("Why?")], [hit("word")]):
        weighed = await judging().weigh_evidence(ASKED, hits)
        assert (weighed.quotes, weighed.near, weighed.sureness) == ([], (), None)


async def test_with_an_option_the_best_sentence_counts_in_any_case() -> None:
    judge = KnownJudge({GUMS: -6.0})
    gate = judging(judge)
    asked = f"{ASKED.text} bleeding gums"
    weighed = await gate.weigh_evidence(ASKED, [hit(TEXT)], query=asked)
    assert weighed.quotes[0].text == GUMS
    assert judge.asked[0][0] == asked
    assert (await gate.weigh_evidence(ASKED, [hit(TEXT)], query=ASKED.text)).quotes == []


async def test_a_sentence_that_fails_a_check_loses_odds_and_stays_nearest() -> None:
    dose = Question("q", "What is the dose of vitamin C in scurvy?")
    plain = "Vitamin C heals scurvy in most patients."
    amount = "Vitamin C 500 mg a day heals scurvy in most."
    fit = replace(ALONE, ordered=0.4 * CHECK)
    gate = judging(KnownJudge({plain: 2.0, amount: 0.5}), relevance=KnownRelevance({}))
    gate = replace(gate, fits={"en": fit}, checks=("amount",))
    found = await gate.weigh_sentences(dose.text, [hit(f"{plain} {amount}")])
    assert [one.text for one in found] == [amount, plain]
    assert found[0].relevance == pytest.approx(chance(0.5))
    assert found[1].relevance == pytest.approx(chance(2.0 - FAILED))
    unchecked = await replace(gate, checks=()).weigh_sentences(
        dose.text, [hit(f"{plain} {amount}")]
    )
    assert [one.text for one in unchecked] == [plain, amount]
    assert unchecked[0].relevance == pytest.approx(chance(2.0))


async def test_the_dose_of_another_drug_is_not_even_nearest() -> None:
    asked = "What is the starting dose of propranolol in hyperthyroidism?"
    other = "Young adults need 1.6 micrograms per kilogram a day."
    own = "Propranolol 40 mg three times a day slows the heart."
    gate = judging(KnownJudge({other: 4.0, own: 1.0}))
    passages = [hit(other, title="Levothyroxine"), hit(own, 1, title="Hyperthyroidism")]
    assert [one.text for one in await gate.weigh_sentences(asked, passages)] == [own]
    weighed = await gate.weigh_evidence(Question("q", asked), passages[:1])
    assert not weighed.quotes
    assert not weighed.near
    why = await gate.weigh_sentences("Why is propranolol given in hyperthyroidism?", passages)
    assert {one.text for one in why} == {own, other}


async def test_order_and_probability_weigh_the_judge_apart() -> None:
    relevance = KnownRelevance({GUMS: 1.0, JOINTS: 0.5})
    gate = EvidenceGate(
        relevance,
        judge=KnownJudge({GUMS: 0.0, JOINTS: 1.0}),
        fits={"en": AnswerFit(0.1, bias=-1.0, relevance=0.0, judged=2.0, failed=0.0, margin=0.0)},
    )
    found = await gate.weigh_sentences(ASKED.text, [hit(f"{GUMS} {JOINTS}")])
    assert [one.text for one in found] == [GUMS, JOINTS]
    assert [one.relevance for one in found] == pytest.approx([chance(-1.0), chance(1.0)])


async def test_what_has_learnt_what_answers_is_added_for_the_sentences_that_are_read() -> None:
    fit = AnswerFit(0.0, bias=0.0, relevance=1.0, judged=0.0, failed=0.0, margin=0.0)
    match = KnownRelevance({f"Scurvy. {JOINTS}": 2.0, f"Scurvy. {GUMS}": 0.2})
    gate = EvidenceGate(KnownRelevance({GUMS: 1.0, JOINTS: 0.5}), match=match, fits={"en": fit})
    found = await gate.weigh_sentences(ASKED.text, [hit(GUMS), hit(JOINTS, 1)])
    assert [one.text for one in found] == [JOINTS, GUMS]
    assert [one.relevance for one in found] == pytest.approx(
        [chance(0.75 + 1.5 * 2.0), chance(1.5 + 1.5 * 0.2)]
    )
    facts = AskedFacts(gate.reader.read(ASKED.text))
    (best,) = await gate.read_best(facts, [hit(GUMS), hit(JOINTS, 1)], most=1)
    assert best.text == GUMS
    assert best.relevance == pytest.approx(1.8)


async def test_what_stands_out_from_the_sentences_beside_it_is_surer() -> None:
    fit = AnswerFit(0.0, bias=0.0, relevance=0.0, judged=0.0, failed=0.0, margin=2.0)
    gate = EvidenceGate(KnownRelevance({GUMS: 1.0, JOINTS: 0.5}), fits={"en": fit})
    found = await gate.weigh_sentences(ASKED.text, [hit(GUMS), hit(JOINTS, 1)])
    # With half its own passage: 1.5 and 0.75, in the mean 1.125.
    wanted = [chance(2 * (1.5 - 1.125)), chance(2 * (0.75 - 1.125))]
    assert [one.relevance for one in found] == pytest.approx(wanted)
    (alone,) = await gate.weigh_sentences(ASKED.text, [hit(GUMS)])
    assert alone.relevance == pytest.approx(0.5)


async def test_what_is_about_another_subject_is_no_answer_however_near() -> None:
    other = "The symptoms of beta-mannosidosis are bleeding gums."
    asked = Question("q", "What are the symptoms of alpha-mannosidosis?")
    passage = hit(other)
    (found,) = await judging(KnownJudge({other: 4.0})).weigh_sentences(asked.text, [passage])
    assert found.relevance == pytest.approx(chance(4.0 - weigh_failures([*DECISIVE][:1]) * FAILED))
    assert weigh_failures([*[*DECISIVE][:1], "amount"]) > 3 * weigh_failures(["amount", "both"]) / 2
    assert (await judging(KnownJudge({other: 4.0})).weigh_evidence(asked, [passage])).quotes == []


async def test_an_amount_that_is_asked_for_in_chinese_weighs_as_much_as_another_subject() -> None:
    assert weigh_failures(["amount"], "zh") == weigh_failures([*DECISIVE][:1])
    assert weigh_failures(["amount"]) == 1
    assert weigh_failures(["condition", "state"], "zh") > weigh_failures(["condition", "state"])


async def test_what_is_likely_enough_stands_before_what_is_not() -> None:
    """The order has other weights than the probability: the nearer one may be the less likely."""
    fit = replace(ALONE, ordered=-1.0)
    weighed = await judging(fits={"en": fit}).weigh_evidence(ASKED, [hit(TEXT)])
    assert [one.text for one in weighed.quotes] == [JOINTS, GUMS, SAILORS, SCURVY]


async def test_of_two_drugs_the_sentence_on_both_is_read_however_far() -> None:
    both = "NSAIDs such as ibuprofen raise the risk of bleeding beside warfarin."
    others = [f"Warfarin can I take it with note {n}." for n in range(COMPARED + 4)]
    judge = KnownJudge({both: 3.0})
    asked = Question("q", "Can I take ibuprofen with warfarin?")
    hits = [hit(" ".join(others), title="Warfarin"), hit(both, 1, title="Bleeding")]
    near = KnownRelevance({"note": 5.0})
    weighed = await judging(judge, relevance=near).weigh_evidence(asked, hits)
    (read,) = [texts for _, texts in judge.asked]
    assert both in [one.sentence for one in read]
    assert weighed.quotes[0].text == both


async def test_a_disease_that_no_passage_names_is_answered_by_none_and_none_is_near() -> None:
    scurvy = "The symptoms of scurvy are bleeding gums."
    gate = judging(KnownJudge({scurvy: 4.0}))
    assert (
        await gate.weigh_sentences("What are the signs of rickets in a baby?", [hit(scurvy)]) == []
    )
    assert await gate.weigh_sentences("What are the signs of scurvy?", [hit(scurvy)])


async def test_the_judge_reads_the_sentence_in_its_place() -> None:
    judge = KnownJudge()
    passage = hit(f"{SAILORS} {GUMS} {SCURVY}", section="Signs")
    await judging(judge).weigh_evidence(ASKED, [passage])
    ((asked, read),) = judge.asked
    assert asked == ASKED.text
    by_sentence = {one.sentence: one for one in read}
    assert by_sentence[GUMS] == JudgedText(GUMS, passage.passage.heading, SAILORS, SCURVY)
    assert by_sentence[SAILORS].before == by_sentence[SCURVY].after == ""


def test_a_sentence_s_neighbours_are_whole_sentences() -> None:
    passage = hit(f"{SAILORS} Why? {GUMS}")
    start = passage.passage.text.index(GUMS)
    quote = QuoteCandidate(passage, start, start + len(GUMS), 0.0)
    assert judged_text(quote) == JudgedText(GUMS, passage.passage.heading, "Why?", "")


async def test_the_judge_reads_only_the_most_relevant_sentences() -> None:
    judge = KnownJudge()
    many = " ".join(f"Scurvy had symptoms in the year {n} of the sea." for n in range(2 * READ))
    hits = [hit(f"{many} {GUMS}")]
    found = await judging(judge).weigh_sentences(ASKED.text, hits)
    assert len(found) == len(judge.asked[0][1]) == JUDGED < READ


async def test_a_sentence_is_weighed_with_half_its_passage() -> None:
    texts = {"Oranges": 0.4, "One of them is ripe": 0.3, "A second one is ripe": 0.3}
    gate = EvidenceGate(KnownRelevance(texts))
    hits = [
        hit("A second one is ripe today in the garden.", 0, "Pears"),
        hit("Oranges grow here in the south. One of them is ripe today in the garden.", 1, "Fruit"),
    ]
    found = await gate.weigh_sentences("Which is ripe?", hits)
    assert [one.text.split()[0] for one in found] == ["Oranges", "One", "A"]
    fit = BY_RELEVANCE["en"]
    # 0.4 and half of 0.7; 0.3 and half of 0.7; 0.3 and half of 0.3.
    scores = (0.75, 0.65, 0.45)
    wanted = [fit.find_share(one, 0.0, 0, one - sum(scores) / 3) for one in scores]
    assert [one.relevance for one in found] == pytest.approx(wanted)


async def test_ties_are_broken_by_rank_and_place() -> None:
    gate = EvidenceGate(KnownRelevance({}))
    hits = [hit(f"{GUMS} {JOINTS}", 1), hit(SCURVY, 0)]
    found = await gate.weigh_sentences(ASKED.text, hits)
    assert [one.text for one in found] == [SCURVY, GUMS, JOINTS]


async def test_relations_of_the_graph_are_quoted_only_where_there_is_no_prose() -> None:
    relation = "Relation: (Scurvy, may_be_treated_by, Vitamin C) in the symptoms of scurvy"
    graph, prose = hit(relation, 0, source="graph"), hit(GUMS, 1)
    judge = KnownJudge({relation: 5.0, GUMS: 1.0})
    both = (await judging(judge).weigh_evidence(ASKED, [graph, prose])).quotes
    assert [one.text for one in both] == [GUMS]
    alone = (await judging(judge).weigh_evidence(ASKED, [graph])).quotes
    assert [one.text for one in alone] == [relation]


async def test_without_a_judge_relevance_alone_orders_and_decides() -> None:
    gate = EvidenceGate(KnownRelevance({GUMS: 1.0, SAILORS: 0.1}))
    weighed = await gate.weigh_evidence(ASKED, [hit(TEXT)])
    assert weighed.quotes[0].text == GUMS
    assert weighed.sureness is not None
    assert weighed.sureness.by == "relevance"


PARAMETERS = {
    "ordered": 0.5,
    "bias": -1.0,
    "relevance": 2.0,
    "judged": 3.0,
    "failed": 0.7,
    "margin": 0.2,
    "check": 0.4,
}


def card_of(parameters: Mapping[str, float]) -> ExpertCard:
    return ExpertCard(
        name="judge",
        question="?",
        family="pair",
        replaces="a rule",
        languages=("en",),
        made="here",
        seed=0,
        date="2026-01-01",
        split="",
        weights="0" * 64,
        parameters=parameters,
    )


@pytest.mark.parametrize("lacking", PARAMETERS)
def test_a_card_without_one_of_the_numbers_is_refused_and_says_which(lacking: str) -> None:
    numbers = {name: value for name, value in PARAMETERS.items() if name != lacking}
    with pytest.raises(ModelError, match=f"'judge' lacks {lacking}"):
        read_fits(card_of(numbers))


async def test_chinese_is_weighed_by_its_own_fit() -> None:
    fits = read_fits(card_of(PARAMETERS))
    assert fits["en"] == AnswerFit(0.5, -1.0, 2.0, 3.0, 0.7, 0.2, 0.4)
    assert fits["zh"] == BY_RELEVANCE["zh"]
    question = Question("q", "坏血病的病因是什么？", language="zh")
    text = "坏血病的病因是缺乏维生素C。"
    gate = EvidenceGate(OverlapRelevance(), fits=fits, judge=KnownJudge({text: 9.0}))
    weighed = await gate.weigh_evidence(question, [hit(text, title="坏血病", language="zh")])
    assert [one.text for one in weighed.quotes] == [text]


@pytest.mark.parametrize(
    "text",
    ["Why", "为什么 diabetes 糖尿病 causes?", "Is it? " * 2_000, "", "? ?", "\ud83d 7 | 7", "(((*"],
)
async def test_odd_questions_are_weighed_and_never_an_error(text: str) -> None:
    weighed = await judging().weigh_evidence(Question("q", text), [hit(TEXT)])
    assert weighed.sureness is None or 0 <= weighed.sureness.probability <= 1


async def test_very_long_passages_are_weighed() -> None:
    long = " ".join(["It is inherited from both parents."] * 3_000)
    found = await judging(nearest=0.0, answers=0.0).weigh_evidence(ASKED, [hit(long)])
    assert found.quotes


@pytest.mark.parametrize("logit", [-1e9, 1e9, float("inf"), float("-inf")])
async def test_a_probability_is_one_whatever_the_judge_says(logit: float) -> None:
    (found,) = await judging(KnownJudge({GUMS: logit})).weigh_sentences(ASKED.text, [hit(GUMS)])
    assert 0 <= found.relevance <= 1


# What becomes of it in an answer


async def answer(judge: KnownJudge, text: str = TEXT, **changes: object) -> tuple[Answer, Run]:
    run = Run()
    composer = ExtractiveComposer(judging(judge), ScriptedModel([]))
    composer = replace(composer, **changes)  # type: ignore[arg-type]
    return await composer.conclude(ASKED, [hit(text)], "", run), run


async def test_an_answer_quotes_the_likeliest_and_those_half_as_likely() -> None:
    lines = TEXT.replace(". ", ".\n")
    given, run = await answer(KnownJudge({GUMS: 3.0, JOINTS: 0.5, SCURVY: -0.5}), lines)
    assert [one.text for one in given.statements] == [GUMS, JOINTS]
    assert chance(-0.5) < FURTHER["en"] * chance(3.0) < chance(0.5)
    assert given.grounding is Grounding.GROUNDED
    assert not given.is_silent
    assert not [one for one in run.events if isinstance(one, Asked)]


async def test_an_answer_says_how_sure_it_is_in_a_word() -> None:
    given, _ = await answer(KnownJudge())
    assert given.sureness is not None
    assert given.note == f"{NOTE['en']} {describe_sureness(given.sureness, 'en')}"
    assert "%" not in given.note


async def test_no_more_is_quoted_than_the_settings_say_and_nothing_twice() -> None:
    one, _ = await answer(KnownJudge(), TEXT.replace(". ", ".\n"), statements=1)
    assert [each.text for each in one.statements] == [GUMS]
    same, _ = await answer(KnownJudge(), f"{GUMS} {GUMS.upper()} {GUMS}")
    assert len(same.statements) == 1


async def test_the_first_quote_of_an_answer_goes_on_with_what_its_line_says_next() -> None:
    judge = KnownJudge({GUMS: 3.0, JOINTS: 2.0, SCURVY: -4.0})
    given, _ = await answer(judge, f"{GUMS} {SCURVY}\n{JOINTS} It is rare.")
    assert [one.text for one in given.statements] == [f"{GUMS} {SCURVY}", JOINTS]
    near, _ = await answer(KnownJudge({GUMS: -0.5, JOINTS: -9.0, SCURVY: -9.0}))
    assert near.statements[0].text.startswith("What was found")
    assert near.statements[1].text == GUMS


@pytest.mark.parametrize(
    ("first", "failed", "shown"),
    [
        (LIKELY, {"another drug"}, 1),
        (LIKELY, {"amount"}, 2),
        (LIKELY - 0.01, {"another drug"}, 2),
    ],
)
def test_behind_a_likely_quote_none_is_about_something_else(
    first: float, failed: set[str], shown: int
) -> None:
    own = QuoteCandidate(hit("ACE inhibitors harm the fetus."), 0, 30, first)
    other = QuoteCandidate(
        hit("The drug is contraindicated in pregnancy.", 1), 0, 41, first - 0.1, frozenset(failed)
    )
    assert len(choose_quotes([own, other], 3, 0.4)) == shown
    # Where the first fails the check itself, both are as near.
    both = [replace(own, failed=other.failed), other]
    assert len(choose_quotes(both, 3, 0.4)) == 2


def test_the_nearest_sentences_are_said_to_stand_where_they_stand() -> None:
    hits = [
        Hit(Passage(f"book:{one}#0", f"{one} is rare.", "book", one), 1.0, 1, "q", "book")
        for one in ("Asthma", "Stroke", "Asthma")
    ]
    (lead,) = introduce_nearest([QuoteCandidate(one, 0, 6, 0.2) for one in hits], "en")
    assert lead.text.endswith("under “Asthma” and “Stroke”:")


async def test_where_nothing_answers_the_nearest_is_quoted_and_called_so() -> None:
    given, _ = await answer(KnownJudge({GUMS: 0.2, JOINTS: -1.6}))
    lead, quote = given.statements
    assert lead.text == (
        "What was found does not say this directly; nearest to it, under “Scurvy”:"
    )
    assert (lead.cites, quote.text, quote.cites) == ((), GUMS, (1,))
    assert [one.use for one in given.evidence] == ["nearest"]
    assert given.grounding is Grounding.PARTLY
    assert given.is_silent
    assert given.sureness is None
    assert given.note == "", "it is said once"


async def test_where_nothing_is_near_or_the_nearest_is_not_wanted_the_answer_abstains() -> None:
    unsure, _ = await answer(KnownJudge({GUMS: 0.2}), nearest=False)
    far, _ = await answer(KnownJudge({}))
    for given in (unsure, far):
        assert (given.statements, given.evidence) == ((), ())
        assert given.grounding is Grounding.ABSTAINED
        assert given.note == NOTHING_SAID["en"]


async def test_a_lead_in_brings_its_list() -> None:
    lead = "The symptoms of scurvy are these:"
    text = f"{lead}\n- bleeding gums\n- swollen joints\n\nSailors knew it well in those days."
    given, _ = await answer(KnownJudge({lead: 2.0}), text)
    assert given.statements[0].text.endswith("swollen joints")
    assert "Sailors" not in given.statements[0].text


async def test_an_expert_that_cannot_be_used_is_named_in_the_answer() -> None:
    gate = EvidenceGate(KnownRelevance({GUMS: 1.0}), faults=("weights are damaged",))
    given = await ExtractiveComposer(gate).conclude(ASKED, [hit(TEXT)], "", Run())
    assert "rule decided in an expert's place: weights are damaged" in given.note
    assert given.sureness is not None
    assert given.sureness.by == "relevance"


ZH_TEXT = "坏血病是缺乏维生素C引起的。早期症状是牙龈出血。"
ZH_ASKED = Question("q", "坏血病有什么症状？", language="zh")


async def test_a_chinese_question_is_weighed_by_meaning_with_a_fit_of_its_own() -> None:
    meaning = KnownRelevance({"牙龈": 0.9, "维生素": 0.3})
    shares = KnownRelevance({"牙龈": 0.4, "维生素": 0.2})
    gate = judging(meaning=meaning, coverage=shares, answers=0.0)
    weighed = await gate.weigh_evidence(ZH_ASKED, [hit(ZH_TEXT, title="坏血病", language="zh")])
    assert weighed.quotes[0].text == "早期症状是牙龈出血。"
    # The sentence has .9 and .4 of the words, its passage .6 of them; the other .3 and .2.
    first, other = (near + OWN_WORDS * share for near, share in ((0.9, 0.4), (0.3, 0.2)))
    wanted = BY_MEANING["zh"].find_share(first + PASSAGE_WORDS * 0.6, 0, 0, (first - other) / 2)
    assert weighed.quotes[0].relevance == pytest.approx(wanted)


async def test_chinese_texts_about_something_else_are_not_even_nearest() -> None:
    hits = [hit(ZH_TEXT, title="坏血病", language="zh")]
    for relevance, is_near in ((0.3, False), (0.6, True)):
        meaning = KnownRelevance({"牙龈": relevance})
        gate = judging(meaning=meaning, match=KnownRelevance({}), answers=1.0)
        weighed = await gate.weigh_evidence(ZH_ASKED, hits)
        assert bool(weighed.near) is is_near


async def test_without_an_encoder_for_chinese_words_weigh_as_before() -> None:
    gate = judging(answers=0.0)
    hits = [hit(ZH_TEXT, title="坏血病", language="zh")]
    facts = AskedFacts(gate.reader.read(ZH_ASKED.text))
    found = await gate.rank_by_relevance(facts, hits)
    texts = [f"坏血病. {one.text}" for one in found]
    words = await OverlapRelevance().relevance(ZH_ASKED.text, [*texts, f"坏血病\n{ZH_TEXT}"])
    assert [one.relevance for one in found] == pytest.approx(
        [one + PASSAGE * words[-1] for one in words[:-1]]
    )


async def test_an_english_question_is_not_weighed_by_the_chinese_encoder() -> None:
    plain = await judging().weigh_evidence(ASKED, [hit(TEXT)])
    beside = await judging(meaning=KnownRelevance({})).weigh_evidence(ASKED, [hit(TEXT)])
    assert beside == plain


ZH_ACROSS = Question("q", "坏血病的症状和治疗", language="zh")


async def test_texts_in_the_other_language_answer_where_there_are_no_others() -> None:
    judge = KnownJudge({GUMS: 4.0})
    weighed = await judging(judge).weigh_evidence(ZH_ACROSS, [hit(TEXT)])
    assert weighed.quotes[0].text == GUMS
    assert "symptoms treatment" in {query for query, _ in judge.asked}.pop()


async def test_what_has_no_word_in_the_other_language_counts_against_its_texts() -> None:
    judge = KnownJudge({GUMS: 4.0})
    asked = replace(ZH_ACROSS, text="坏血病的症状和治疗在邻居家帆船甲板上晾晒衣裳")
    weighed = await judging(judge).weigh_evidence(asked, [hit(TEXT)])
    plain = await judging(judge).weigh_evidence(ZH_ACROSS, [hit(TEXT)])
    assert weighed.sureness is not None
    assert plain.sureness is not None
    assert weighed.sureness.probability < plain.sureness.probability / 2
    assert not weighed.quotes


async def test_texts_in_the_question_s_language_go_before_those_of_the_other() -> None:
    judge = KnownJudge({GUMS: 4.0, "早期症状是牙龈出血。": 3.0})
    hits = [hit(TEXT), hit(ZH_TEXT, 1, title="坏血病", language="zh")]
    weighed = await judging(judge).weigh_evidence(ZH_ACROSS, hits)
    assert weighed.quotes[0].text == "早期症状是牙龈出血。"


async def test_beside_texts_in_its_language_one_in_the_other_is_at_most_near() -> None:
    judge = KnownJudge({GUMS: 9.0})
    asked = replace(ZH_ACROSS, text="坏血病症状治疗")
    other = hit("药房在二楼。", 1, title="坏血病", language="zh")
    alone = await judging(judge).weigh_evidence(asked, [hit(TEXT)])
    beside = await judging(judge).weigh_evidence(asked, [hit(TEXT), other])
    assert alone.quotes
    assert not beside.quotes
    assert beside.near


async def test_a_question_of_one_known_word_is_not_asked_of_the_other_language() -> None:
    judge = KnownJudge({GUMS: 4.0})
    asked = replace(ZH_ACROSS, text="帆船治疗")
    assert not (await judging(judge).weigh_evidence(asked, [hit(TEXT)])).quotes
    assert not judge.asked
