"""Under every strategy the issue that stands is cited, not the one that it replaced."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from osler.build import Parts
from osler.build.composers import build_composer
from osler.build.models import LoadedModel
from osler.retrieve.relevance import CoverageRelevance, OverlapRelevance
from osler.settings import STRATEGIES, Settings
from osler.trace import Run
from osler.types import Answer, Hit, Language, Locator, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever

DRUGS = (
    ("warfarin", "atrial fibrillation", 5),
    ("metformin", "type 2 diabetes", 500),
    ("salbutamol", "acute asthma", 4),
    ("amoxicillin", "otitis media", 250),
    ("levothyroxine", "hypothyroidism", 50),
    ("ramipril", "heart failure", 2),
    ("prednisolone", "giant cell arteritis", 40),
    ("colchicine", "acute gout", 1),
)
ZH_DRUGS = (
    ("华法林", "心房颤动", 5),
    ("二甲双胍", "糖尿病", 500),
    ("沙丁胺醇", "支气管哮喘", 4),
    ("阿莫西林", "中耳炎", 250),
    ("左甲状腺素", "甲状腺功能减退症", 50),
    ("雷米普利", "心力衰竭", 2),
    ("泼尼松", "巨细胞动脉炎", 40),
    ("秋水仙碱", "痛风", 1),
)
TITLES = (
    ("Handbook of {illness}, 3rd edition", "Handbook of {illness}, 4th edition"),
    ("Care of {illness}: version 2.0", "Care of {illness}: version 3.0"),
    ("{illness} management in practice (2016)", "{illness} management in practice (2022 update)"),
    ("Retracted: trial of {drug} in {illness}", "Trial of {drug} in {illness}"),
)
ZH_TITLES = (("{illness}诊疗指南（2016年版）", "{illness}诊疗指南（2022年版）"),)


@dataclass(frozen=True)
class ReplacedPair:
    question: str
    old: Passage
    new: Passage


def pair_of(
    number: int, titles: tuple[str, str], told: tuple[str, str, int], language: Language
) -> ReplacedPair:
    drug, illness, dose = told
    words = (
        "Treat {illness} with {drug} {dose} mg once a day."
        if language == "en"
        else "{illness}用{drug}治疗，每日一次，每次{dose} mg。"
    )
    old, new = (
        Passage(
            f"guideline:{number}{which}#0",
            words.format(drug=drug, illness=illness, dose=dose * times),
            "guideline",
            title.format(drug=drug, illness=illness),
            Locator(year=year),
            language=language,
        )
        for which, title, times, year in zip("ab", titles, (1, 2), (2016, 2022), strict=True)
    )
    asks = "How much {} for {}?" if language == "en" else "{}治疗{}的剂量是多少？"
    return ReplacedPair(asks.format(drug, illness), old, new)


KINDS: list[tuple[tuple[str, str], tuple[str, str, int], Language]] = [
    *((titles, told, "en") for titles in TITLES for told in DRUGS),
    *((titles, told, "zh") for titles in ZH_TITLES for told in ZH_DRUGS),
]
PAIRS = [pair_of(number, *kind) for number, kind in enumerate(KINDS)]


async def answer_under(
    strategy: str,
    pair: ReplacedPair,
    policy: str = "clinical",
    floor: float = 0.05,
    before: tuple[Passage, ...] = (),
) -> Answer:
    """The answer when the search put the old issue first, as it may, or behind others."""

    def rarity(terms: object) -> dict[str, float]:
        return dict.fromkeys(terms, 3.0)  # type: ignore[call-overload, no-any-return]

    parts = Parts(
        {role: LoadedModel(ScriptedModel([])) for role in ("planner", "reader", "summariser")},
        lambda name, sources: ScriptedRetriever({}),
        OverlapRelevance(),
        CoverageRelevance(rarity),
        ("guideline",),
    )
    # The texts are scored by shares of words here, which are lower than cosines.
    floors = {"answers_from": floor, "nearest_from": floor}
    # By itself: issues that differ in an amount contradict each other too.
    answer = {**floors, "consistent": False}
    chosen = {"strategy": {"kind": strategy}, "retrieve": {"policy": policy}, "answer": answer}
    composer = build_composer(Settings.model_validate(chosen), parts)
    found = (*before, pair.old, pair.new)
    hits = [Hit(each, 1 / n, n, "q", "test") for n, each in enumerate(found, 1)]
    question = Question("q", pair.question, language=pair.old.language)
    return await composer.conclude(question, hits, "", Run())


def test_there_are_forty_pairs() -> None:
    assert len({pair.old.id for pair in PAIRS}) == 40


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_the_issue_that_stands_is_cited_under_every_strategy(strategy: str) -> None:
    for pair in PAIRS:
        answer = await answer_under(strategy, pair)
        assert {each.passage.id for each in answer.evidence} == {pair.new.id}, pair.old.title
        (caution,) = answer.cautions
        assert caution.rule in ("superseded", "retracted")
        assert pair.old.title in caution.text


async def test_without_the_policy_the_old_issue_is_cited_with_a_caution() -> None:
    answers = [await answer_under("rag", pair, "none") for pair in PAIRS]
    cited = [{each.passage.id for each in answer.evidence} for answer in answers]
    assert sum(pair.old.id in ids for pair, ids in zip(PAIRS, cited, strict=True)) == 40
    assert all(answer.cautions for answer in answers)


async def test_where_nothing_is_cited_the_caution_says_what_the_later_issue_says() -> None:
    pair = next(
        pair for pair in PAIRS if not pair.new.locator.notice and "edition" in pair.old.title
    )
    answer = await answer_under("rag", pair, floor=0.999)
    assert not answer.evidence
    (caution,) = answer.cautions
    assert caution.rule == "superseded"
    assert pair.new.text.split(".")[0] in caution.text


async def test_what_stood_behind_all_that_is_cited_is_not_spoken_of() -> None:
    pair, other = PAIRS[0], PAIRS[1]
    asked = ReplacedPair(other.question, pair.old, pair.new)
    answer = await answer_under("rag", asked, before=(other.new,))
    assert [each.passage.id for each in answer.evidence] == [other.new.id]
    assert not answer.cautions
    nothing = await answer_under("rag", asked, floor=0.999, before=(other.new,))
    assert not nothing.evidence
    assert not nothing.cautions


async def test_a_chapter_that_the_later_issue_does_not_have_stays() -> None:
    pair = PAIRS[0]
    other = Passage(
        "guideline:other#0",
        "Vaccination against influenza is offered every autumn.",
        "guideline",
        pair.new.title,
        pair.new.locator,
    )
    answer = await answer_under("rag", ReplacedPair(pair.question, pair.old, other))
    assert [each.passage.id for each in answer.evidence] == [pair.old.id]
