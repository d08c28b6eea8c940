"""Follow-up questions made to stand alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.follow_up import Standalone, rewrite_follow_up

DIALOGUES = Path(__file__).parents[2] / "fixtures" / "dialogues" / "follow_ups.jsonl"


@pytest.mark.parametrize(
    ("earlier", "question", "expected"),
    [
        (
            "What is the history of metformin?",
            "Its adverse effects?",
            "Metformin's adverse effects?",
        ),
        ("How is lithium monitored?", "When is it stopped?", "When is lithium stopped?"),
        (
            "How is cystitis treated?",
            "And in pregnancy?",
            "How is cystitis treated: in pregnancy?",
        ),
        ("胰腺炎如何诊断？", "它怎么治疗？", "胰腺炎怎么治疗？"),
        ("格雷夫斯病有什么特征？", "妊娠时呢？", "格雷夫斯病有什么特征：妊娠时？"),
        ("利福平有哪些不良反应？", "和其他药有相互作用吗？", "利福平：和其他药有相互作用？"),
    ],
)
def test_what_points_back_is_filled_in(earlier: str, question: str, expected: str) -> None:
    assert rewrite_follow_up(question, [earlier]) == Standalone(expected, "rule")


@pytest.mark.parametrize(
    "question",
    ["How is gout treated?", "What is the dose of amoxicillin in otitis?", "痛风如何治疗？"],
)
def test_a_question_with_a_subject_of_its_own_stays(question: str) -> None:
    assert rewrite_follow_up(question, ["How is asthma treated?"]) == Standalone(question)


@pytest.mark.parametrize(
    "question",
    [
        "Is there any evidence that aspirin prevents stroke?",
        "Which drugs that treat malaria are safe in pregnancy?",
        "Metformin: is it safe in kidney failure?",
        "When a patient has asthma, can he take propranolol?",
        "How is sepsis defined these days?",
        "Is it safe to take ibuprofen while breastfeeding?",
        "Is ibuprofen safe in those with asthma?",
        "他汀类药物有什么副作用？",
        "如果孩子发烧可以吃布洛芬吗？",
        "二甲双胍及其缓释片有何区别？",
        "What is the antidote of bremazol?",
        "What is the dose of propofol?",
        "ok thanks",
        "谢谢！",
    ],
)
@pytest.mark.parametrize("before", ["What is the dose of warfarin?", "华法林的剂量是多少？"])
def test_words_that_point_at_nothing_before_are_left(before: str, question: str) -> None:
    assert rewrite_follow_up(question, [before]) == Standalone(question)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Can she drink alcohol?", "Can she drink alcohol (warfarin)?"),
        ("Can she take it with ibuprofen?", "Can she take warfarin with ibuprofen?"),
        ("Is it safe to take with ibuprofen?", "Is warfarin safe to take with ibuprofen?"),
        ("Can ibuprofen be taken with it?", "Can ibuprofen be taken with warfarin?"),
        ("Is that safe with ibuprofen?", "Is warfarin safe with ibuprofen?"),
        ("What can replace this drug?", "What can replace warfarin?"),
        ("Are they safe?", "Are they safe (warfarin)?"),
        ("What are the side effcts?", "What are the side effcts (warfarin)?"),
        ("这孩子误服了漂白剂怎么办？", "华法林：这孩子误服了漂白剂怎么办？"),
        ("布洛芬在这种情况下能用吗？", "华法林：布洛芬在这种情况下能用？"),
        ("他能吃布洛芬吗？", "华法林：他能吃布洛芬？"),
        ("这安全吗？", "华法林安全？"),
        ("布洛芬能和它一起吃吗？", "布洛芬能和华法林一起吃？"),
    ],
)
@pytest.mark.parametrize("before", ["What is the dose of warfarin?", "华法林的剂量是多少？"])
def test_a_subject_takes_the_place_of_a_thing_only_in_its_own_language(
    before: str, question: str, expected: str
) -> None:
    assert rewrite_follow_up(question, [before]) == Standalone(expected, "rule")


def test_thanks_are_no_question_that_another_rests_on() -> None:
    asked = ["How is cystitis treated?", "thanks"]
    assert rewrite_follow_up("And in pregnancy?", asked).text == (
        "How is cystitis treated: in pregnancy?"
    )


def test_the_first_question_and_one_after_a_case_report_stay() -> None:
    assert rewrite_follow_up("And in pregnancy?", []) == Standalone("And in pregnancy?")
    report = "A man of 40 with gout. " * 40
    assert rewrite_follow_up("And in pregnancy?", [report]) == Standalone("And in pregnancy?")


def test_what_is_added_next_takes_the_place_of_what_was_added_before() -> None:
    asked = ["膀胱炎如何治疗？", "膀胱炎如何治疗：妊娠时？"]
    assert rewrite_follow_up("那儿童呢？", asked).text == "膀胱炎如何治疗：儿童？"
    asked = ["How is cystitis treated?", "How is cystitis treated: in pregnancy?"]
    assert rewrite_follow_up("And in children?", asked).text == (
        "How is cystitis treated: in children?"
    )
    own = ["二甲双胍：能喝酒吗？"]
    assert rewrite_follow_up("那儿童呢？", own).text == "二甲双胍：能喝酒吗：儿童？"


def test_the_subject_may_stand_further_back() -> None:
    asked = ["How is myasthenia gravis diagnosed?", "How is it treated?"]
    assert "myasthenia gravis" in rewrite_follow_up("Which drugs must be avoided?", asked).text


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=4))
def test_any_text_can_be_a_turn(question: str, earlier: list[str]) -> None:
    made = rewrite_follow_up(question, earlier)
    assert made.by == "rule" or made.text == question


def test_every_dialogue_of_the_benchmark_needs_the_turns_before() -> None:
    for line in DIALOGUES.read_text(encoding="utf-8").splitlines():
        dialogue = json.loads(line)
        assert rewrite_follow_up(dialogue["last"], dialogue["earlier"]).by == "rule"
