"""What stands below a notice to somebody in danger is never the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from osler.answer import NOTHING_SAID
from osler.answer.abstention import answer_below_notice
from osler.types import (
    Answer,
    Authorship,
    DangerKind,
    DangerNotice,
    Evidence,
    Grounding,
    Hit,
    Language,
    Passage,
    Question,
    Statement,
    Sureness,
)

HEART = "Aspirin 300 mg is chewed at once in a suspected heart attack."
LIVER = "Paracetamol overdose damages the liver; acetylcysteine is the antidote."
TABLETS = "Paracetamol is sold in tablets of 500 mg."


def quoted(*texts: str, language: Language = "en") -> Answer:
    evidence = []
    for number, text in enumerate(texts):
        passage = Passage(f"book:{number}#0", text, "book", "", language=language)
        evidence.append(Evidence(Hit(passage, 1.0, number + 1, "q", "book"), 0, len(text)))
    return Answer(
        tuple(Statement(text, (number,)) for number, text in enumerate(texts, 1)),
        tuple(evidence),
        authorship=Authorship.EXTRACTIVE,
        note="Quoted sentences.",
        language=language,
        sureness=Sureness(0.9, "judge@1"),
    )


def notice(*kinds: DangerKind, language: Language = "en") -> DangerNotice:
    return DangerNotice(kinds, "Call 112.", language=language)


def test_what_is_quoted_stands_below_a_sentence_that_says_what_it_is_and_answers_nothing() -> None:
    asked = Question("q", "My father has crushing chest pain, what now?")
    found = answer_below_notice(quoted(HEART), asked, notice("emergency"))
    lead, said = found.statements
    assert lead == Statement("This does not replace the call. What the texts say of it:")
    assert (said.text, said.cites) == (HEART, (1,))
    assert [one.use for one in found.evidence] == ["nearest"]
    assert found.is_silent
    assert (found.note, found.sureness) == ("", None)


def test_what_is_hardly_likely_is_not_shown_to_somebody_in_danger() -> None:
    asked = Question("q", "baby choking what do I do")
    croup = replace(quoted("Do not examine the throat."), sureness=Sureness(0.57, "judge@1"))
    found = answer_below_notice(croup, asked, notice("emergency"))
    assert (found.evidence, found.statements) == ((), ())
    assert found.note == "No passages are shown with this notice."
    likely = replace(croup, sureness=Sureness(0.61, "judge@1"))
    assert answer_below_notice(likely, asked, notice("emergency")).evidence
    assert answer_below_notice(replace(croup, sureness=None), asked, notice("emergency")).evidence


def test_what_is_merely_nearest_is_not_shown_to_somebody_in_danger() -> None:
    asked = Question("q", "My dad's face is drooping on one side, what do I do?")
    lid = quoted("An ice pack laid on a drooping lid for two minutes often lifts it.")
    near = replace(lid, evidence=tuple(replace(one, use="nearest") for one in lid.evidence))
    found = answer_below_notice(near, asked, notice("emergency"))
    assert (found.evidence, found.statements) == ((), ())
    assert found.note == "No passages are shown with this notice."


@pytest.mark.parametrize(
    "text",
    [
        "took cialis yesterday morning, now in A&E with chest pain. can he have gtn?",
        "Back from Ghana, took every one of my malaria pills, now a temperature of 40 and confused",
        "my kidneys are bad, swallowed my Xarelto and now chest pain",
        "swallowed my Xarelto on an empty stomach and now my chest hurts",
        "老公周六吃了希爱力，今天胸口痛，硝酸甘油得隔开几个小时才可以含",
    ],
)
def test_a_drug_taken_as_it_should_be_hides_nothing(text: str) -> None:
    found = answer_below_notice(quoted(HEART), Question("q", text), notice("emergency"))
    assert [one.quote for one in found.evidence] == [HEART]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("I took 40 tablets of paracetamol", ("emergency",)),
        ("he has taken the whole box of his heart tablets", ("emergency",)),
        ("my toddler swallowed one metoprolol of grandma's", ("emergency",)),
        ("she drank drain cleaner", ("emergency",)),
        ("孩子吃了奶奶的降压药", ("emergency",)),
        ("他喝了半瓶白酒又吃了一整盒安定", ("emergency",)),
        ("Does it hurt to die of paracetamol?", ("self-harm",)),
    ],
)
def test_to_somebody_who_took_too_much_only_what_is_about_poisoning_is_shown(
    text: str, kinds: tuple[DangerKind, ...]
) -> None:
    answer = quoted(TABLETS, LIVER, HEART)
    found = answer_below_notice(answer, Question("q", text), notice(*kinds))
    assert [(one.text, one.cites) for one in found.statements[1:]] == [(LIVER, (1,))]
    assert [one.quote for one in found.evidence] == [LIVER]
    nothing = answer_below_notice(quoted(TABLETS), Question("q", text), notice(*kinds))
    assert (nothing.statements, nothing.evidence) == ((), ())
    assert nothing.note == "No passages are shown with this notice."
    assert nothing.grounding is Grounding.ABSTAINED


def test_in_chinese_it_is_said_in_chinese() -> None:
    asked = Question("q", "误服了很多对乙酰氨基酚怎么办？", language="zh")
    answer = quoted("对乙酰氨基酚过量时用乙酰半胱氨酸。", language="zh")
    found = answer_below_notice(answer, asked, notice("emergency", language="zh"))
    assert found.statements[0].text == "以下内容不能代替呼救。资料中的相关原文："
    assert len(found.statements) == 2


def test_without_a_notice_and_where_a_model_wrote_the_answer_stands() -> None:
    asked, answer = Question("q", "What helps in a heart attack?"), quoted(HEART)
    assert answer_below_notice(answer, asked, None) is answer
    written = replace(answer, authorship=Authorship.WRITTEN)
    assert answer_below_notice(written, asked, notice("emergency")) is written
    silent = Answer(note=NOTHING_SAID["en"])
    assert answer_below_notice(silent, asked, notice("emergency")) is silent
