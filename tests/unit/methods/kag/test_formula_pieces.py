"""Formulas in strangers' words: what the networks over the encoder's pieces read, and where not."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.build.hub import read_tokens
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.formulas import FORMULAS
from osler.methods.kag.formulas.pieces import NONE, read_pieces
from osler.methods.kag.formulas.quantities import find_numbers, write_figures
from osler.methods.kag.formulas.slots import read_slots
from osler.methods.kag.formulas.targets import choose_target, find_target, prepare_text
from osler.text import language_of
from osler.trace import Run
from osler.types import Question

SETS = Path(__file__).parents[4] / "benchmarks" / "formulas"


def read(text: str) -> tuple[str | None, dict[str, object]]:
    """The formula that a question asks for, and the inputs that it gives."""
    said = prepare_text(text)
    pieces = read_pieces(said, read_tokens)
    formula = choose_target(FORMULAS, said, pieces)
    if formula is None:
        return None, {}
    return formula.id, dict(read_slots(formula, said, pieces).given)


STRANGERS = (
    (
        "he is seventy four, sixty two kilos, creatinine one point five, male, what is his kidney"
        " clearance",
        "cockcroft-gault",
        {"age": 74, "weight": 62, "creatinine": 1.5, "sex": "male"},
    ),
    (
        "pressure was 118 over 71 on the monitor, what is the mean pressure",
        "mean-arterial-pressure",
        {"systolic": 118, "diastolic": 71},
    ),
    (
        "五十八公斤的小伙子被火烧了百分之二十五，头一天按帕克兰要灌多少水",
        "parkland",
        {"weight": 58, "burned": 25},
    ),
    ("Na 141 Cl 103 bicarb 22, AG?", "anion-gap", {"sodium": 141, "chloride": 103}),
)


@pytest.mark.parametrize(("text", "id", "inputs"), STRANGERS, ids=[one[1] for one in STRANGERS])
def test_strangers_words_are_read(text: str, id: str, inputs: dict[str, object]) -> None:
    told, given = read(text)
    assert told == id
    assert given.items() >= inputs.items()


@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("十八公斤的娃术后禁食，一小时维持液走多少", "maintenance-fluid-hourly"),
        ("15kg患儿术前禁食 维持液每小时多少ml", "maintenance-fluid-hourly"),
        ("15kg患儿一天的生理维持液多少ml", "maintenance-fluid-daily"),
        ("18公斤的孩子术前禁食，一个钟头维持液该给多少", "maintenance-fluid-hourly"),
        ("maintenance fluid for an 18 kg child, ml per hour", "maintenance-fluid-hourly"),
        ("maintenance fluids ml/h for 18kg kid", "maintenance-fluid-hourly"),
        ("18 kg child, daily maintenance fluid?", "maintenance-fluid-daily"),
        ("parkland for 70 kg with 30% burns, first 8 hours", "parkland-first-8-hours"),
        ("parkland for 70 kg with 30% burns", "parkland"),
    ],
)
def test_fluid_an_hour_is_not_fluid_a_day(text: str, id: str) -> None:
    assert read(text)[0] == id


def test_a_dose_by_weight_is_no_fluid() -> None:
    text = "宝宝11公斤，发烧39度，家里有泰诺林，一次该按每公斤多少毫克喂，一天最多几次？"
    assert read(text)[0] is None


async def test_a_number_that_no_rule_knows_is_computed_with() -> None:
    """Rules alone know neither the formula nor the good cholesterol."""
    text = (
        "the fats: altogether 204 mg/dL, the good cholesterol 51, triglycerides 135,"
        " work out the bad cholesterol"
    )
    assert find_target(FORMULAS, prepare_text(text)) is None or not read_slots(
        FORMULAS["ldl-friedewald"], text
    ).given.keys() >= {"cholesterol", "hdl", "triglycerides"}
    solution = await QuestionCalculator(read_tokens=read_tokens).solve(
        Question("q", text, (), language_of(text)), Run()
    )
    assert solution is not None
    assert "126 mg/dL" in solution.answer.text


@pytest.mark.parametrize(
    "text",
    ["what is a normal anion gap", "he weighs 70 kg", "BMI of 31, is that bad", "x" * 700 + " 1 2"],
)
def test_few_numbers_and_long_texts_are_not_read(text: str) -> None:
    assert read_pieces(text, read_tokens) is None


def test_a_question_about_the_numbers_asks_for_no_formula() -> None:
    pieces = read_pieces(
        "I weigh 70 kg and am 45, how much paracetamol may I take in 24 hours", read_tokens
    )
    assert pieces is not None
    assert pieces.likeliest[0] == NONE
    assert sum(pieces.formulas.values()) == pytest.approx(1)


def test_without_the_encoder_rules_alone_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OSLER_CACHE", str(tmp_path))
    assert read_pieces("weight 70 kg, height 1.75 m, BMI?", read_tokens) is None
    assert read("weight 70 kg, height 1.75 m, BMI?")[0] == "body-mass-index"


def test_one_number_tells_one_input() -> None:
    text = prepare_text("pulse=88 sbp=134 temp=37.1 lactate=1.0, whats the shock index")
    reading = read_slots(FORMULAS["shock-index"], text, read_pieces(text, read_tokens))
    assert reading.given == {"heart_rate": 88, "systolic": 134}


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("eighty one", "81"),
        ("one thirty five pounds", "135 pounds"),
        ("a hundred and twelve days", "112 days"),
        ("seven point six", "7.6"),
        ("six stone eight, five foot nine", "6 stone 8, 5 foot 9"),
        ("one of them", "one of them"),
        ("血压一百三", "血压130"),
        ("一百零三", "103"),
        ("一百三十斤", "130斤"),
    ],
)
def test_numbers_in_words_are_figures(said: str, written: str) -> None:
    assert write_figures(said) == written
    assert write_figures(written) == written


def test_every_number_is_found_once() -> None:
    text = "BP 130/85, plt150 72F 138/4.1/101/19, 3岁零2个月, 12 weeks and 3 days, 6 stone 8"
    found = [(one.number, one.unit) for one in find_numbers(text)]
    assert found == [
        (130, "mmHg"),
        (85, "mmHg"),
        (150, ""),
        (72, ""),
        (138, ""),
        (4.1, ""),
        (101, ""),
        (19, ""),
        (38, "month"),
        (87, "day"),
        (92, "lb"),
    ]


def test_what_is_measured_was_not_learnt() -> None:
    marks = str.maketrans("", "", "[]")
    train = {
        line.partition("\t")[2].translate(marks)
        for path in (SETS / "train").glob("*.tsv")
        for line in path.read_text("utf-8").splitlines()
    }
    held = {
        line.split("\t")[1]
        for path in SETS.glob("*.tsv")
        for line in path.read_text("utf-8").splitlines()
        if line.count("\t") > 1
    }
    assert len(train) > 2000
    assert len(held) > 350
    assert train.isdisjoint(held)
