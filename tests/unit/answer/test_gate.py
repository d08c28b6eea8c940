"""The gate with its expert: another disease is no evidence, and the answer says how sure it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.answer.quoting import QuoteJudge
from osler.answer.sureness import describe_sureness
from osler.retrieve.experts.answerable import FEATURES, AnswerableExpert
from osler.retrieve.experts.answering import TextPair
from osler.retrieve.experts.cards import CARD, WEIGHTS, ExpertCard, render_card
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.naming import NamingRelevance, SubjectRelevance
from osler.retrieve.relevance import CoverageRelevance, OverlapRelevance
from osler.trace import Run
from osler.train.experts.linear import write_safetensors
from osler.types import Hit, Passage, Question, Sureness

WEIGHTED = {"subject": 6.0, "whole subject": 4.0, "coverage": 2.0}
BIAS = -9.0


@pytest.fixture
def expert(tmp_path: Path) -> AnswerableExpert:
    """Linear over three of the features."""
    tensors = {
        "mean": np.zeros(len(FEATURES), np.float32),
        "scale": np.ones(len(FEATURES), np.float32),
        "weights": np.array([[WEIGHTED.get(name, 0.0) for name in FEATURES]], np.float32),
        "bias": np.array([BIAS], np.float32),
    }
    write_safetensors(tensors, tmp_path / WEIGHTS)
    card = ExpertCard(
        name="answerable",
        question="Does it?",
        family="linear",
        replaces="a rule",
        languages=("en",),
        made="here",
        seed=0,
        date="2026-01-01",
        split="",
        weights=hashlib.sha256((tmp_path / WEIGHTS).read_bytes()).hexdigest(),
        features=FEATURES,
        parameters={"threshold": 0.5},
    )
    (tmp_path / CARD).write_text(render_card(card), encoding="utf-8")
    return AnswerableExpert(open_expert("answerable", tmp_path))


def make_gate(expert: AnswerableExpert | None, **changes: float) -> EvidenceGate:
    def rarity(words: object) -> dict[str, float]:
        return dict.fromkeys(words, 5.0)  # type: ignore[call-overload, no-any-return]

    naming = NamingRelevance(rarity)
    gate = EvidenceGate(
        CoverageRelevance(rarity),
        OverlapRelevance(),
        {"en": QuoteThresholds(0.49, 0.5), "zh": QuoteThresholds(0.3, 0.4)},
        naming=naming,
        subject=SubjectRelevance(naming),
        search=OverlapRelevance(),
        expert=expert,
    )
    return replace(gate, **changes)  # type: ignore[arg-type]


def hits(*texts: tuple[str, str]) -> list[Hit]:
    return [
        Hit(Passage(f"book:{n}#0", text, "book", title), 1.0, n, "q", "book")
        for n, (title, text) in enumerate(texts, 1)
    ]


QUESTION = Question("q", "Is glycogen storage disease type IV inherited?")
RIGHT = (
    "Glycogen storage disease type 4",
    "Glycogen storage disease type IV is inherited in an autosomal recessive pattern.",
)
LOOK_ALIKE = (
    "Glycogen storage disease type 6",
    "Glycogen storage disease type VI is inherited in an autosomal recessive pattern.",
)


async def test_a_look_alike_is_refused_where_the_rule_quotes_it(expert: AnswerableExpert) -> None:
    found = hits(LOOK_ALIKE)
    assert await make_gate(None).find_evidence(QUESTION, found)
    weighed = await make_gate(expert).weigh_evidence(QUESTION, found)
    assert weighed.quotes == []
    assert weighed.sureness is not None
    assert weighed.sureness.probability < 0.5


async def test_where_the_rule_decides_the_expert_only_says_how_sure(
    expert: AnswerableExpert,
) -> None:
    gate = replace(make_gate(expert), decides=False)
    weighed = await gate.weigh_evidence(QUESTION, hits(LOOK_ALIKE))
    assert weighed.quotes == await make_gate(None).find_evidence(QUESTION, hits(LOOK_ALIKE))
    assert weighed.sureness is not None
    assert weighed.sureness.probability < 0.5


async def test_only_passages_that_answer_are_quoted(expert: AnswerableExpert) -> None:
    weighed = await make_gate(expert).weigh_evidence(QUESTION, hits(LOOK_ALIKE, RIGHT))
    assert {quote.hit.passage.title for quote in weighed.quotes} == {RIGHT[0]}
    assert weighed.sureness is not None
    assert weighed.sureness.probability > 0.5
    assert weighed.sureness.by == expert.identity
    assert expert.identity.startswith("answerable@")


async def test_below_the_calibrated_sureness_nothing_is_quoted(expert: AnswerableExpert) -> None:
    strict = await make_gate(expert, least_sureness=0.9999).weigh_evidence(QUESTION, hits(RIGHT))
    assert strict.quotes == []
    assert strict.sureness is not None
    assert await make_gate(expert, least_sureness=0.1).find_evidence(QUESTION, hits(RIGHT))


LETTER = Question(
    "q",
    "Dear doctor, my father has tremor. He is old. What helps against his tremor at night?",
)
TREMOR = ("Tremor", "Against tremor at night a small dose of propranolol helps many patients.")


async def test_a_letter_has_a_threshold_of_its_own(expert: AnswerableExpert) -> None:
    expert.threshold, expert.letter_threshold = 1.0, 0.0
    by_rule = await make_gate(None).find_evidence(LETTER, hits(TREMOR))
    assert await make_gate(expert).find_evidence(LETTER, hits(TREMOR)) == by_rule != []
    expert.threshold, expert.letter_threshold = 0.0, 1.0
    assert await make_gate(expert).find_evidence(LETTER, hits(TREMOR)) == []


async def test_a_letter_that_the_rule_refuses_may_still_be_shown_what_is_nearest(
    expert: AnswerableExpert,
) -> None:
    # The rule refuses what covers too little, where no sentence is near.
    gate = replace(make_gate(expert), least={"en": QuoteThresholds(1.1, 1.1)}, decides=False)
    expert.letter_threshold = 0.0
    weighed = await gate.weigh_evidence(LETTER, hits(TREMOR))
    assert weighed.quotes == []
    assert [one.text for one in weighed.near] == [TREMOR[1]]
    answer = await ExtractiveComposer(gate).conclude(LETTER, hits(TREMOR), "", Run())
    assert [one.use for one in answer.evidence] == ["nearest"]
    assert answer.is_silent
    expert.letter_threshold = 1.0
    assert (await gate.weigh_evidence(LETTER, hits(TREMOR))).near == []
    expert.threshold = 0.0
    assert (await gate.weigh_evidence(QUESTION, hits(RIGHT))).near == ()


async def test_without_the_search_s_expert_the_rule_decides(expert: AnswerableExpert) -> None:
    expert.threshold = 1.0
    weighed = await replace(make_gate(expert), search=None).weigh_evidence(QUESTION, hits(RIGHT))
    assert weighed.sureness is None
    assert weighed.quotes == await make_gate(None).find_evidence(QUESTION, hits(RIGHT))


class KnownJudge:
    """Holds one sentence to answer."""

    def can_judge(self, question: str) -> bool:
        return True

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        return [0.9 if one.text == RIGHT[1] else 0.1 for one in texts]

    judge_quotes = judge_texts


async def test_each_passage_is_measured_by_search_judge_and_words(
    expert: AnswerableExpert,
) -> None:
    gate = replace(make_gate(expert), judge=QuoteJudge(KnownJudge()))
    right, alike = await gate.measure_passages(QUESTION, hits(RIGHT, LOOK_ALIKE))
    assert (right.signs.answers, alike.signs.answers) == (0.9, 0.1)
    assert right.signs.search > 0
    assert (right.signs.pairs or 0) > (alike.signs.pairs or 0)
    (unjudged,) = await make_gate(expert).measure_passages(QUESTION, hits(RIGHT))
    assert unjudged.signs.answers is None


async def test_chinese_keeps_the_rule_and_has_no_sureness(expert: AnswerableExpert) -> None:
    question = Question("q", "白癜风的病因是什么？", language="zh")
    text = "白癜风的病因与自身免疫有关。"
    found = [Hit(Passage("book:1#0", text, "book", "白癜风", language="zh"), 1.0, 1, "q", "book")]
    weighed = await make_gate(expert).weigh_evidence(question, found)
    assert weighed.sureness is None
    assert weighed.quotes == await make_gate(None).find_evidence(question, found)


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [("", "Yes.")],
        [("", "word")],
        [
            (
                "Glycogen storage disease type 4",
                " ".join(["It is inherited from both parents."] * 9000),
            )
        ],
    ],
)
async def test_no_one_and_very_long_passages_are_weighed(
    expert: AnswerableExpert, texts: list[tuple[str, str]]
) -> None:
    weighed = await make_gate(expert).weigh_evidence(QUESTION, hits(*texts))
    assert weighed.sureness is None or 0 <= weighed.sureness.probability <= 1


@pytest.mark.parametrize(
    "text", ["Why", "为什么 diabetes 糖尿病 causes?", "Is it? " * 2_000, "type type type IV"]
)
async def test_odd_questions_are_weighed(expert: AnswerableExpert, text: str) -> None:
    weighed = await make_gate(expert).weigh_evidence(Question("q", text), hits(RIGHT, TREMOR))
    assert weighed.sureness is None or 0 <= weighed.sureness.probability <= 1


async def test_the_answer_says_how_sure_it_is_in_words_and_number(
    expert: AnswerableExpert,
) -> None:
    answer = await ExtractiveComposer(make_gate(expert)).conclude(QUESTION, hits(RIGHT), "", Run())
    assert answer.sureness is not None
    assert describe_sureness(answer.sureness, "en") in answer.note


async def test_an_expert_that_cannot_be_used_is_named_in_the_answer() -> None:
    gate = replace(make_gate(None), faults=("weights are damaged",))
    answer = await ExtractiveComposer(gate).conclude(QUESTION, hits(RIGHT), "", Run())
    assert "rule decided in an expert's place: weights are damaged" in answer.note
    assert answer.sureness is None


@pytest.mark.parametrize(("probability", "said"), [(1.0, "99"), (0.0, "1"), (0.834, "83")])
def test_an_estimate_is_never_certain(probability: float, said: str) -> None:
    assert f"{said} %" in describe_sureness(Sureness(probability, "x"), "en")
    assert f"{said}%" in describe_sureness(Sureness(probability, "x"), "zh")
