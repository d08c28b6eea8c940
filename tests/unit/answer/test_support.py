"""Whether a passage bears out a statement: cases worked by hand, each beside its opposite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.answer.directions import read_poles, read_words
from osler.answer.read_passages import read_passage
from osler.answer.support import find_support

TRIAL = (
    "Atrial fibrillation was treated with apixaban in 812 patients for two years. "
    "The rate of stroke was lower with apixaban than with warfarin (1.3 % and 1.6 % a year). "
    "Major bleeding decreased by 31 %. Apixaban was not effective in patients with a mechanical "
    "valve. Doses were halved in adults with chronic kidney disease (CKD) to 2.5 mg twice a day. "
    "The drug was given after surgery and stopped before dental work."
)
PASSAGE = read_passage("Apixaban in atrial fibrillation", TRIAL)


def holds(statement: str) -> bool:
    return find_support(statement, PASSAGE).is_enough


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Apixaban lowers the rate of stroke.", "Apixaban raises the rate of stroke."),
        ("Apixaban reduced major bleeding.", "Apixaban increased major bleeding."),
        ("Apixaban lowered stroke in AF.", "Rivaroxaban lowered stroke in AF."),
        ("Stroke in atrial fibrillation was reduced.", "Stroke in asthma was reduced."),
        ("Apixaban was given to 812 patients.", "Apixaban was given to 821 patients."),
        ("Bleeding decreased by 31 %.", "Bleeding decreased by 13 %."),
        ("Doses were halved to 2.5 mg in adults.", "Doses were halved to 5 mg in adults."),
        ("Adults with CKD had their doses halved.", "Adults with COPD had their doses halved."),
        ("Apixaban was given after surgery.", "Apixaban was given before surgery."),
        (
            "Apixaban is not effective in patients with a mechanical valve.",
            "Apixaban is effective in patients with a mechanical valve.",
        ),
        (
            "Apixaban does not work in mechanical valve patients.",
            "Apixaban was not given after surgery.",
        ),
        ("No, major bleeding decreased.", "Major bleeding did not decrease."),
    ],
)
def test_what_a_passage_says_is_borne_out_and_its_opposite_is_not(right: str, wrong: str) -> None:
    assert holds(right), find_support(right, PASSAGE)
    assert not holds(wrong), find_support(wrong, PASSAGE)


def test_words_from_the_whole_passage_and_its_heading_count() -> None:
    assert holds("In atrial fibrillation, apixaban lowers stroke and major bleeding decreases.")


CROUP = read_passage(
    "Croup > Treatment",
    "Keep the child calm. A single oral dose of dexamethasone, 0.15 to 0.6 mg/kg, is given whatever"
    " the severity. Stop the infusion 30 minutes later, never before, because its effect ends"
    " within minutes. No death was seen when the viral load was suppressed. Dexamethasone is given,"
    " because the swelling recurs.",
)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "A single oral dose of dexamethasone, 0.15 to 0.6 mg/kg, is given.",
            "A single oral dose of dexamethasone, 0.15 to 0.9 mg/kg, is given.",
        ),
        (
            "Stop the infusion 30 minutes later, never before, because its effect ends soon.",
            "Stop the infusion 30 minutes later, not before, because its effect never ends.",
        ),
        (
            "When the viral load was suppressed no death was seen.",
            "When the viral load was suppressed a death was seen.",
        ),
        (
            "The reason is that the swelling recurs.",
            "The vaccine is that the swelling recurs.",
        ),
    ],
)
def test_what_writers_of_answers_do_with_a_passage_is_borne_out(right: str, wrong: str) -> None:
    """An amount between commas, a negation without words behind it or before a "when"."""
    assert find_support(right, CROUP).is_enough, find_support(right, CROUP)
    assert not find_support(wrong, CROUP).is_enough, find_support(wrong, CROUP)


def test_a_statement_of_another_subject_is_not_borne_out() -> None:
    assert not holds("Butterflies begin as eggs.")
    assert not holds("Physiotherapy is given after surgery.")


def test_a_statement_that_begins_with_a_pronoun_is_about_what_was_asked() -> None:
    said = "It was given after surgery."
    assert find_support(said, PASSAGE, "What is apixaban?").is_enough
    assert not find_support(said, PASSAGE, "What does melatonin do for sleep?").is_enough


def test_chinese_directions_and_negations_count() -> None:
    passage = read_passage("高血压", "氨氯地平可降低血压。妊娠期不应使用依那普利。")
    assert find_support("氨氯地平降低血压。", passage).is_enough
    assert not find_support("氨氯地平升高血压。", passage).is_enough
    assert find_support("妊娠期不应使用依那普利。", passage).is_enough
    assert not find_support("妊娠期应使用依那普利。", passage).is_enough


def test_what_is_lacking_is_named() -> None:
    found = find_support("Rivaroxaban raised stroke by 44 %.", PASSAGE)
    assert {"Rivaroxaban", "raised", "44 %"} <= {*found.lacks}


def test_no_word_points_both_ways_on_one_axis() -> None:
    assert all(pole.way in (1, -1) for axes in read_poles().values() for pole in axes.values())
    assert read_poles()["increased"]["change"].way == 1
    assert read_poles()["reduced"]["change"].way == -1


def test_a_negation_ends_with_its_clause() -> None:
    words = {one.word: one.negated for one in read_words("It doesn't work, but pain fell.")}
    assert (words["work"], words["pain"]) == (True, False)


SENTENCES = [one.strip() + "." for one in TRIAL.rstrip(".").split(". ")]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=2, unique=True))
def test_a_passages_own_sentences_are_borne_out(said: list[str]) -> None:
    assert all(find_support(one, PASSAGE).is_enough for one in said)


@given(st.text(max_size=300))
def test_any_text_can_be_held_against_a_passage(text: str) -> None:
    assert 0.0 <= find_support(text, PASSAGE).share <= 1.0
    assert 0.0 <= find_support("Pain fell by 3 mg.", read_passage("", text)).share <= 1.0


@pytest.mark.parametrize(
    ("passage", "right", "wrong"),
    [
        (
            "No difference in survival was found between the two groups.",
            "No difference in survival was found.",
            "A difference in survival was found.",
        ),
        ("Cathepsin D degrades proteins.", "Cathepsin D", "Streptolysin D"),
        (
            "Most patients with the rash recovered.",
            "Patients recovered.",
            "Few patients recovered.",
        ),
        (
            "Panitumumab with chemotherapy does not improve survival.",
            "Panitumumab with chemotherapy does not improve survival at all.",
            "Panitumumab without chemotherapy does not improve survival.",
        ),
        (
            "Riluzole did not help patients with ALS.",
            "Riluzole did not help in amyotrophic lateral sclerosis.",
            "Riluzole did not help in multiple sclerosis.",
        ),
        (
            "In phase III trials adults with type 2 diabetes lost weight on 14 July.",
            "In phase 3 trials diabetes patients lost weight.",
            "Adults with type 3 diabetes lost weight.",
        ),
        (
            "It was seen by sonogram in over 90 % of pregnancies.",
            "It was seen by sonogram in over 90 % of pregnancies.",
            "A sonogram saw it in over 900 % of pregnancies.",
        ),
        (
            "Selective serotonin reuptake inhibitors (SSRI) treat depression in adults.",
            "SSRIs treat depression in adults.",
            "Escitalopram treats depression in adults.",
        ),
    ],
)
def test_what_was_once_taken_for_the_same(passage: str, right: str, wrong: str) -> None:
    read = read_passage("", passage)
    assert find_support(right, read).is_enough, find_support(right, read)
    assert not find_support(wrong, read).is_enough, find_support(wrong, read)


@pytest.mark.parametrize(
    ("passage", "right", "wrong"),
    [
        (
            "Give 500 mg of amoxicillin three times daily.",
            "Give 500 mg of amoxicillin every eight hours.",
            "Give 500 mg of amoxicillin twice daily.",
        ),
        (
            "Take metformin two times a day.",
            "Take metformin twice daily.",
            "Take metformin four times a day.",
        ),
        (
            "Give amoxicillin 500 mg tds for seven days.",
            "Give amoxicillin 500 mg three times a day for 7 days.",
            "Give amoxicillin 500 mg three times a week for 7 days.",
        ),
        ("Take one tablet daily.", "Take one tablet once daily.", "Take one tablet twice daily."),
        (
            "Two tablets of senna are taken at night.",
            "Two tablets of senna are taken once a day.",
            "Four tablets of senna are taken at night.",
        ),
        (
            "阿莫西林每次500毫克，每日两次，疗程十天。",
            "阿莫西林每次500毫克，一天2次，疗程10天。",
            "阿莫西林每次500毫克，每日三次，疗程十天。",
        ),
        ("12岁以下儿童禁用可待因。", "12岁以下儿童禁用可待因。", "12岁以上儿童禁用可待因。"),
        (
            "Children over 12 must not take codeine.",
            "Children older than 12 must not take codeine.",
            "Children under 12 must not take codeine.",
        ),
        (
            "Adults of 65 years or older need half the dose.",
            "Adults aged 65 years or older need half the dose.",
            "Adults of 65 years or younger need half the dose.",
        ),
        (
            "Take doxycycline without food.",
            "Take doxycycline without any food.",
            "Take doxycycline with food.",
        ),
        (
            "Pain in the left arm points to the heart.",
            "Pain in the left arm points to the heart.",
            "Pain in the right arm points to the heart.",
        ),
        ("左侧肾脏较小。", "左侧肾脏小。", "右侧肾脏小。"),
    ],
)
def test_how_often_for_whom_and_with_what_are_the_passages(
    passage: str, right: str, wrong: str
) -> None:
    read = read_passage("", passage)
    assert find_support(right, read).is_enough, find_support(right, read)
    assert not find_support(wrong, read).is_enough, find_support(wrong, read)


def test_what_a_question_is_about_must_stand_in_a_passage_with_a_heading() -> None:
    said, asked = "Symptoms of shin splints include pain.", "How are shin splints treated?"
    text = "Symptoms of the common cold include pain."
    assert not find_support(said, read_passage("The common cold", text), asked).is_enough
    assert find_support(said.replace("shin splints", "it"), read_passage("", text)).is_enough
