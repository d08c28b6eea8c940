"""Quotes that cannot be understood alone bring the sentence before."""

from __future__ import annotations

import pytest

from osler.answer.sentences import QuoteCandidate, add_neighbours, quotable_spans
from osler.types import Hit, Language, Passage

GLOBULIN = "Ⅲ级暴露者给人狂犬病免疫球蛋白20 IU/kg。"
RABIES = f"先冲洗伤口。{GLOBULIN}首剂疫苗当天未能使用者，7天内仍可补用，超过7天则不必。"
STATINS = (
    "Statins are stopped in pregnancy. They may be resumed after breast-feeding. Ask first."
    "\nThese lower cholesterol."
)


def quote(text: str, part: str, language: Language = "en") -> QuoteCandidate:
    passage = Passage("book:one#0", text, "book", "One", language=language)
    start = text.index(part)
    return QuoteCandidate(Hit(passage, 1.0, 1, "", "book"), start, start + len(part), 0.5)


def test_who_may_still_be_given_it_is_quoted_with_what_is_given() -> None:
    (found,) = add_neighbours([quote(RABIES, RABIES[RABIES.index("首剂") :], "zh")], 3)
    assert found.text == RABIES[RABIES.index(GLOBULIN) :]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "机械瓣患者用华法林；其余患者优先选用直接口服抗凝药。",
            "其余患者优先选用直接口服抗凝药。",
        ),
        ("ACEI和ARB降压。两类药物在妊娠期均禁用。", "两类药物在妊娠期均禁用。"),
        ("肾功能不全时减量；每日不超过2 g。", "每日不超过2 g。"),
    ],
)
def test_a_clause_brings_what_it_is_said_of(text: str, part: str) -> None:
    assert add_neighbours([quote(text, part, "zh")], 3)[0].text == text


def test_they_are_quoted_with_their_name() -> None:
    part = "They may be resumed after breast-feeding."
    assert add_neighbours([quote(STATINS, part)], 3)[0].text.startswith("Statins are stopped")


def test_what_is_quoted_already_is_not_quoted_twice() -> None:
    leaning = quote(STATINS, "They may be resumed after breast-feeding.")
    named = quote(STATINS, "Statins are stopped in pregnancy.")
    assert add_neighbours([named, leaning], 3) == [named, leaning]
    # Standing first, it would be read without what it is said of.
    (whole,) = add_neighbours([leaning, named], 3)
    assert whole.text == f"{named.text} {leaning.text}"


def test_what_begins_with_its_begins_with_what_it_belongs_to() -> None:
    text = (
        "Warfarin is a tablet. It blocks an enzyme. It thins the blood. Its effect is seen at once."
    )
    (whole,) = add_neighbours([quote(text, "Its effect is seen at once.")], 3)
    assert whole.text == text


def test_a_condition_on_one_of_them_is_quoted_with_what_they_are() -> None:
    text = "Most NSAIDs raise it. If one of them is unavoidable, lower the dose."
    (found,) = add_neighbours([quote(text, "If one of them is unavoidable, lower the dose.")], 1)
    assert found.text == text


def test_a_part_of_this_is_said_with_what_it_is_a_part_of() -> None:
    text = "Fluid is 4 mL x weight x per cent. Half of this volume is given in the first 8 hours."
    (whole,) = add_neighbours(
        [quote(text, "Half of this volume is given in the first 8 hours.")], 3
    )
    assert whole.text == text


@pytest.mark.parametrize("part", ["Statins are stopped in pregnancy.", "These lower cholesterol."])
def test_nothing_is_brought_to_what_stands_alone_or_over_a_line_break(part: str) -> None:
    assert add_neighbours([quote(STATINS, part)], 3)[0].text == part


LEAFLET = (
    "It opens blood vessels. Do not take it if you:\n- take medicines called nitrates\n"
    "- are allergic to sildenafil\n\nAsk your doctor first."
)


def test_an_item_of_a_list_is_quoted_with_what_leads_in_the_list() -> None:
    """Alone, "take medicines called nitrates" is the opposite of what is said."""
    first, second = "- take medicines called nitrates", "- are allergic to sildenafil"
    (alone,) = add_neighbours([quote(LEAFLET, second)], 3)
    assert alone.text == f"Do not take it if you:\n{first}\n{second}"
    (both,) = add_neighbours([quote(LEAFLET, first), quote(LEAFLET, second)], 3)
    assert both.text == alone.text


def test_a_part_of_a_list_whose_lead_in_is_not_there_is_no_quote() -> None:
    cut = LEAFLET[LEAFLET.index("- take") :]
    hit = quote(cut, cut).hit
    assert [cut[a:b] for a, b in quotable_spans(hit, 5)] == ["Ask your doctor first."]
    whole = "- Use a repellent that has DEET.\n- Sleep under a net."
    assert len(quotable_spans(quote(whole, whole).hit, 5)) == 2


def test_an_item_far_behind_its_lead_in_is_no_quote() -> None:
    text = "Never do this:\n" + "\n".join(
        f"- swallow {n} of the tablets at night" for n in range(40)
    )
    spans = quotable_spans(quote(text, text).hit, 5)
    assert 5 < len(spans) < 25
    assert all(end <= 700 for _, end in spans)


HYPERKALAEMIA = (
    "The ECG shows tall T waves. First protect the heart with calcium. Then shift potassium with"
    " insulin. Watch the glucose. Last, remove potassium with a binder.\nThen he went home."
)


def test_a_further_step_is_quoted_with_the_first() -> None:
    (whole,) = add_neighbours([quote(HYPERKALAEMIA, "Last, remove potassium with a binder.")], 3)
    assert whole.text.startswith("First protect the heart")
    assert whole.text.endswith("with a binder.")
    first = quote(HYPERKALAEMIA, "First protect the heart with calcium.")
    last = quote(HYPERKALAEMIA, "Last, remove potassium with a binder.")
    assert [one.text for one in add_neighbours([first, last], 3)] == [whole.text]


def test_a_step_without_a_first_one_near_stands_alone() -> None:
    part = "Then he went home."
    assert add_neighbours([quote(HYPERKALAEMIA, part)], 3)[0].text == part


def test_the_first_or_the_last_of_something_is_no_step() -> None:
    text = "First aid is washing the wound. Last of all is the vaccine. Last winter was cold."
    assert (
        add_neighbours([quote(text, "Last winter was cold.")], 3)[0].text == "Last winter was cold."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Stop it. Cool the patient.", "Stop it. Cool the patient."),
        ("Stop it. One. Two. Three.", "Stop it. One. Two."),
        ("Stop it.\nCool the patient.", "Stop it."),
        ("Stop it. See the section on drugs.", "Stop it."),
        (f"Stop it. {'Cool ' * 90}down.", "Stop it."),
    ],
)
def test_the_first_quote_goes_on_for_two_short_sentences_of_its_line(text: str, said: str) -> None:
    (found,) = add_neighbours([quote(text, "Stop it.")], 3, goes_on=True)
    assert found.text == said


def test_what_the_first_quote_went_on_with_makes_room_for_another() -> None:
    text = "Stop it. Cool the patient.\nGive fluids.\nWarn the family."
    parts = ("Stop it.", "Cool the patient.", "Give fluids.", "Warn the family.")
    found = add_neighbours([quote(text, one) for one in parts], 3, goes_on=True)
    assert [one.text for one in found] == [f"{parts[0]} {parts[1]}", *parts[2:]]


@pytest.mark.parametrize(
    ("quoted", "said"),
    [
        ("Colchicine prevents flares.", "Colchicine prevents flares."),
        (
            "Allopurinol is raised slowly.",
            "Allopurinol is raised slowly. Colchicine prevents flares."
            " Fever with rash may be severe.",
        ),
    ],
)
def test_a_quote_does_not_go_on_with_what_may_be_of_the_drug_before_it(
    quoted: str, said: str
) -> None:
    text = (
        "Allopurinol is raised slowly. Colchicine prevents flares. Fever with rash may be severe."
    )
    (found,) = add_neighbours([quote(text, quoted)], 3, goes_on=True)
    assert found.text == said
