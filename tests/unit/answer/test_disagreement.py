"""What sentences say in amounts and directions, and where two differ. Drugs are invented."""

import pytest

from osler.answer.directions import read_directions
from osler.answer.disagreement import (
    Amount,
    Difference,
    find_difference,
    read_amounts,
    read_claim,
)
from osler.types import Language


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Give 0.5 g.", [Amount("mg", 500, 500, "0.5 g")]),
        ("Give 5-10 mg a day.", [Amount("mg", 5, 10, "5-10 mg")]),
        ("每日10至20毫克", [Amount("mg", 10, 20, "10至20毫克")]),
        ("Up to 1,000 mg.", [Amount("mg", 0, 1000, "1,000 mg")]),
        ("at least 2 weeks", [Amount("hours", 336, float("inf"), "2 weeks")]),
        ("3 mg/kg", [Amount("mg/kg", 3, 3, "3 mg/kg")]),
        ("5 mg/day", [Amount("mg", 5, 5, "5 mg/day")]),
        ("5 mg/h", [Amount("mg/h", 5, 5, "5 mg/h")]),
        ("疗程7天", [Amount("hours", 168, 168, "7天")]),
        ("12岁以上", [Amount("years of age", 12, float("inf"), "12岁")]),
        ("3 days or less", [Amount("hours", 0, 72, "3 days")]),
        ("vitamin B12 and CD4 and 10 gallons", []),
        ("2.5.1 mg", []),
    ],
)
def test_amounts_are_read_with_their_unit(sentence: str, found: list[Amount]) -> None:
    assert read_amounts(sentence) == found


@pytest.mark.parametrize(
    ("sentence", "axis", "way"),
    [
        ("Examplol is recommended.", "advice", 1),
        ("Examplol is not recommended.", "advice", -1),
        ("Examplol should be avoided.", "advice", -1),
        ("It should not be given.", "advice", -1),
        ("It does not raise the pressure.", "change", -1),
        ("It is not effective.", "effect", -1),
        ("不推荐使用例素。", "advice", -1),
        ("患者应卧床。", "advice", 1),
        ("患者不应卧床。", "advice", -1),
        ("应避免使用。", "advice", -1),
        ("例素升高血压。", "change", 1),
        ("样本病患者禁用例素。", "advice", -1),
        ("例素对样本病无效。", "effect", -1),
    ],
)
def test_words_point_one_way_and_a_negation_turns_them(sentence: str, axis: str, way: int) -> None:
    assert set(read_directions(sentence)[axis]) == {way}


TEN = "Samplosis is treated with examplol 10 mg once a day."
RISK = "Examplol increases the risk of bleeding in samplosis."


@pytest.mark.parametrize(
    ("mine", "theirs", "language", "said", "denied"),
    [
        (TEN, "Examplol 40 mg once a day is how samplosis is treated.", "en", "10 mg", "40 mg"),
        (RISK, "Examplol reduces the risk of bleeding.", "en", "increases", "reduces"),
        ("样本病推荐使用例素。", "样本病不推荐使用例素。", "zh", "推荐", "不推荐"),
        ("样本病口服例素每日10毫克。", "样本病口服例素每日40毫克。", "zh", "10毫克", "40毫克"),
    ],
)
def test_sentences_differ_in_an_amount_or_a_direction(
    mine: str, theirs: str, language: Language, said: str, denied: str
) -> None:
    found = find_difference(read_claim(mine), read_claim(theirs), language)
    assert found == Difference(said, denied)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (TEN, TEN),
        (TEN, "Samplosis is treated with examplol 0.01 g once a day."),
        (TEN, "Samplosis in children is treated with examplol 2 mg once a day."),
        (TEN, "Samplosis is treated with examplol 20 mg or 40 mg once a day."),
        (TEN, "Mockitis is treated with testamycin 40 mg once a day."),
        (TEN, "Samplosis is treated with examplol once a day."),
        (RISK, "Examplol decreases the risk of bleeding in samplosis less than dummyfen."),
        (RISK, "Examplol increases and decreases the risk of bleeding in samplosis."),
    ],
)
def test_sentences_that_agree_differ_in_subject_or_compare_are_left_alone(
    mine: str, theirs: str
) -> None:
    assert find_difference(read_claim(mine), read_claim(theirs), "en") is None
