"""Under every strategy, what is quoted as an answer is about the drug or disease that was asked
about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from osler.build import Parts
from osler.build.composers import answer_wording
from osler.build.models import LoadedModel
from osler.retrieve.asked import QuestionReader
from osler.retrieve.relevance import CoverageRelevance, OverlapRelevance
from osler.settings import STRATEGIES, Settings
from osler.text import language_of
from osler.trace import Run
from osler.types import Answer, Hit, Language, Passage, Question
from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever


@dataclass(frozen=True)
class AskedSubject:
    question: str
    right: str
    """Names the subject, in whichever language."""
    wrong: tuple[str, ...]
    """Say the right kind of thing of something else."""
    language: Language = "en"


SUBJECTS = (
    AskedSubject(
        "二甲双胍的常见不良反应是什么？",
        "二甲双胍最常见的不良反应是恶心、呕吐和腹泻。",
        ("胺碘酮的常见不良反应是甲状腺功能异常和肺纤维化。", "华法林的常见不良反应是出血。"),
        "zh",
    ),
    AskedSubject(
        "银屑病如何治疗？",
        "银屑病首选外用糖皮质激素治疗。",
        ("类风湿关节炎首选甲氨蝶呤治疗。", "缺铁性贫血用铁剂治疗。"),
        "zh",
    ),
    AskedSubject(
        "What are the common adverse effects of Glucophage?",
        "The common adverse effects of metformin are nausea and diarrhoea.",
        ("The common adverse effects of amiodarone are thyroid disease and lung fibrosis.",),
    ),
    AskedSubject(
        "What are the treatments for hyper-IgD syndrome?",
        "Treatments for hyper-IgD syndrome include anakinra and canakinumab.",
        ("There are no treatments for mal de debarquement syndrome (MDDS).",),
    ),
    AskedSubject(
        "Which complications does CKD have?",
        "Chronic kidney disease has complications such as anaemia and bone disease.",
        ("Diabetes has complications such as retinopathy and foot ulcers.",),
    ),
)


def rarity(terms: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys(terms, 3.0)


@dataclass(frozen=True)
class ReadOverlap:
    """Shares of words, of the question as the live parts read it in each language."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if language_of(query) == "zh":
            return await CoverageRelevance(rarity).relevance(query, texts)
        return await OverlapRelevance().relevance(QuestionReader().read(query).full, texts)


def hits_of(texts: tuple[str, ...], language: Language) -> list[Hit]:
    return [
        Hit(Passage(f"book:{n}#0", text, "book", "", language=language), 1 / n, n, "q", "book")
        for n, text in enumerate(texts, 1)
    ]


async def answer_under(strategy: str, asked: AskedSubject, texts: tuple[str, ...]) -> Answer:
    """What the packaged model's composer makes of the passages."""
    parts = Parts(
        {role: LoadedModel(ScriptedModel([])) for role in ("planner", "reader", "summariser")},
        lambda name, sources: ScriptedRetriever({}),
        ReadOverlap(),
        CoverageRelevance(rarity),
        ("book",),
    )
    composer = answer_wording(Settings.model_validate({"strategy": {"kind": strategy}}), parts)
    question = Question("q", asked.question, language=asked.language)
    return await composer.conclude(question, hits_of(texts, asked.language), "", Run())


@pytest.mark.parametrize("asked", SUBJECTS, ids=lambda one: one.question)
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_nothing_about_another_drug_or_disease_is_an_answer(
    strategy: str, asked: AskedSubject
) -> None:
    other = await answer_under(strategy, asked, asked.wrong)
    assert {one.use for one in other.evidence} <= {"nearest"}
    assert other.is_silent
    answer = await answer_under(strategy, asked, (*asked.wrong, asked.right))
    assert [statement.text for statement in answer.statements] == [asked.right]
