"""Columns of a table: what a question asks of the row that it names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from osler.answer.columns import names_row, stands_alone, weigh_rows
from osler.answer.sentences import QuoteCandidate, quotable_spans
from osler.retrieve.asked import QuestionReader
from osler.sources.catalogue import TABLE
from osler.text import language_of
from osler.types import Hit, Locator, Passage

IBUPROFEN = "drug: Ibuprofen; form: tablet 400 mg; max daily dose: 1.2 g; storage: below 25 °C"
QUININE = "drug: Quinine; form: tablet 300 mg; storage: below 30 °C"
INTRAVENOUS = "drug: Ibuprofen lysine; form: vial; max daily dose: 0.8 g"
DICLOFENAC = "药品: 双氯芬酸钠栓; 规格: 50 mg/枚; 贮存: 20 °C 以下"
UNSURE = 0.3


def row(text: str, source: str = "guideline") -> Hit:
    title = text.split("; ")[0].partition(": ")[2]
    locator = Locator(section="formulary", kind=TABLE)
    passage = Passage(f"{source}:{title}#0", text, source, title, locator, language_of(text))
    return Hit(passage, 1.0, 1, "", passage.source)


def quote(hit: Hit, relevance: float = UNSURE) -> QuoteCandidate:
    ((start, end),) = quotable_spans(hit)
    return QuoteCandidate(hit, start, end, relevance)


def weigh(
    question: str, near: Mapping[str, float], *found: QuoteCandidate, alone: str = ""
) -> tuple[list[QuoteCandidate], list[str]]:
    """The quotes, and what the question was without the row's name."""
    asked: list[str] = []

    async def nearness(left: str, texts: Sequence[str], /) -> Sequence[float]:
        asked.append(left)
        return [near.get(text, 0.0) for text in texts]

    read = QuestionReader().read(question)
    hits = [one.hit for one in found] + [row(IBUPROFEN), row(QUININE)]
    language = language_of(question)
    return asyncio.run(weigh_rows(read, found, hits, nearness, language, alone)), asked


def test_the_cell_that_is_asked_for_answers_alone() -> None:
    (first,), asked = weigh(
        "max daily dose of ibuprofen", {"max daily dose": 1.2}, quote(row(IBUPROFEN))
    )
    assert (first.text, asked) == ("max daily dose: 1.2 g", ["max daily dose of"])
    assert first.relevance > 0.9


def test_where_two_columns_are_as_near_the_whole_row_is_quoted() -> None:
    near = {"max daily dose": 0.9, "form": 0.8}
    (first,), _ = weigh("how many ibuprofen at most", near, quote(row(IBUPROFEN)))
    assert first.text == IBUPROFEN
    assert first.relevance > 0.9


@pytest.mark.parametrize("written", ["Advil", "ibuprofin", "IBUPROFEN"])
def test_a_row_is_named_by_a_brand_and_misspelt(written: str) -> None:
    question = f"{written}: max daily dose"
    (first,), _ = weigh(question, {"max daily dose": 1.2}, quote(row(IBUPROFEN)))
    assert first.relevance > 0.9


def test_what_the_table_has_no_column_for_is_not_answered_by_a_named_row() -> None:
    near = {"side effects": 1.1, "storage": 0.3}
    (first,), _ = weigh("side effects of ibuprofen", near, quote(row(IBUPROFEN), 0.6))
    assert first.text == IBUPROFEN
    assert first.relevance < 0.4


def test_an_empty_cell_does_not_answer() -> None:
    (first,), _ = weigh(
        "max daily dose of quinine", {"max daily dose": 1.2}, quote(row(QUININE), 0.9)
    )
    assert first.relevance < 0.14


def test_what_a_row_does_not_say_of_children_is_not_answered() -> None:
    one = replace(quote(row(IBUPROFEN), 0.8), failed=frozenset({"condition"}))
    near = {"max daily dose": 1.3, "dose in children": 1.6}
    (first,), _ = weigh("max dose of ibuprofen in a child of 3", near, one)
    assert first.relevance < 0.4


def test_a_row_that_is_not_named_stays_as_the_judge_has_it() -> None:
    for question in ("max daily dose of naproxen", "max daily dose"):
        (first,), asked = weigh(question, {"max daily dose": 1.2}, quote(row(IBUPROFEN)))
        assert (first, asked) == (quote(row(IBUPROFEN)), [])


def test_a_kind_of_what_is_named_is_no_likelier_than_the_judge_says_and_stays_whole() -> None:
    found = quote(row(INTRAVENOUS), 0.6), quote(row(IBUPROFEN), 0.5)
    (first, *_), _ = weigh("max daily dose of ibuprofen", {"max daily dose": 1.2}, *found)
    assert first == quote(row(INTRAVENOUS), 0.6)


def test_prose_that_is_likelier_comes_before_a_row_without_the_column() -> None:
    text = "Ibuprofen may upset the stomach."
    prose = Hit(Passage("book:a#0", text, "book", "Ibuprofen"), 0.5, 2, "", "book")
    found = (
        quote(row(IBUPROFEN), 0.6),
        QuoteCandidate(prose, 0, len(text), 0.55),
        quote(row(INTRAVENOUS), 0.5),
    )
    weighed, _ = weigh("side effects of ibuprofen", {"side effects": 1.0}, *found)
    titles = [one.hit.passage.title for one in weighed]
    assert titles == ["Ibuprofen", "Ibuprofen", "Ibuprofen lysine"]
    assert weighed[0].hit == prose
    assert weighed[2].relevance == weighed[1].relevance < 0.4


def test_where_a_row_is_named_no_row_of_another_name_is_quoted() -> None:
    near = {"max daily dose": 1.2}
    own, other = quote(row(IBUPROFEN), 0.6), quote(row(QUININE), 0.8)
    for found in ((own, other), (other, own)):
        (first,), _ = weigh("max daily dose of ibuprofen", near, *found)
        assert first.text == "max daily dose: 1.2 g"
    both, _ = weigh("max daily dose of ibuprofen and quinine", near, own, other)
    assert len(both) == 2


def test_half_a_chinese_name_puts_no_other_row_in_the_first_place() -> None:
    first, half = (
        quote(row("项目: 糖化血红蛋白; 报告: 当日")),
        quote(row("项目: 铁蛋白; 报告: 当日")),
    )
    kept, _ = weigh("血清铜蓝蛋白多久出报告", {"报告": 1.2}, first, half)
    assert kept[0] == first


def test_a_chinese_row_is_named_without_its_form() -> None:
    near = {"贮存": 0.9, "价格，多少钱": 0.2}
    (first,), asked = weigh("双氯芬酸怎么保存", near, quote(row(DICLOFENAC)))
    assert (first.text, asked) == ("贮存: 20 °C 以下", ["怎么保存"])


def test_a_row_is_one_quote_whatever_stops_it_holds() -> None:
    text = "drug: Ibuprofen; usual dose: Take 400 mg. Not more than 1.2 g. With food.; form: tablet"
    assert quote(row(text)).text == text


def test_rows_of_one_name_are_told_apart_by_the_rest_of_their_titles() -> None:
    def named(form: str) -> QuoteCandidate:
        made = row(f"drug: Paracetamol; form: {form}; max daily dose: 4 g")
        passage = replace(made.passage, title=f"Paracetamol, {form}")
        return quote(replace(made, passage=passage), 0.5)

    near = {"max daily dose": 1.2}
    (first, _), _ = weigh("max daily dose of paracetamol", near, named("gel"), named("vial"))
    assert first == named("gel")
    (first, _), _ = weigh("max daily dose of paracetamol gel", near, named("gel"), named("vial"))
    assert first.text == "max daily dose: 4 g"


def test_a_row_that_stands_alone_is_asked_of_by_whatever_name() -> None:
    near = {"贮存": 0.9}
    told = quote(row(DICLOFENAC))
    (unnamed,), _ = weigh("扶他林怎么放", near, told)
    (alone,), asked = weigh("扶他林怎么放", near, told, alone=told.hit.passage.id)
    assert (unnamed.relevance, asked) == (UNSURE, ["扶他林怎么放"])
    assert alone.relevance > 0.9


@pytest.mark.parametrize(
    ("first", "next_", "is_alone"), [(0.5, 0.3, True), (0.5, 0.45, False), (0.3, 0.1, False)]
)
def test_a_row_stands_alone_far_above_the_next_and_near_the_question(
    first: float, next_: float, is_alone: bool
) -> None:
    found = [quote(row(DICLOFENAC), first), quote(row(IBUPROFEN), next_)]
    assert bool(stands_alone(found)) is is_alone


def test_what_else_may_be_asked_is_a_column_where_its_name_says_so() -> None:
    priced = DICLOFENAC + "; 收费（元）: 12"
    near = {"价格，收费，价钱": 0.9, "收费（元）": 0.4}
    (first,), _ = weigh("双氯芬酸钠栓收多少钱", near, quote(row(priced)))
    (other,), _ = weigh("双氯芬酸钠栓收多少钱", near, quote(row(DICLOFENAC)))
    assert first.text == "收费（元）: 12"
    assert other.relevance < UNSURE < first.relevance


def test_a_row_is_named_in_chinese_by_stretches_that_make_half_of_its_name() -> None:
    cortisol = row("项目: 尿游离皮质醇（24小时）; 收费: 40")
    asked = QuestionReader().read("24小时尿皮质醇多少钱")
    assert names_row(asked, [cortisol])
    assert not names_row(QuestionReader().read("24小时尿钾多少钱"), [cortisol])
