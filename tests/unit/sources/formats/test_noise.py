"""What Omni-RAG filters out of texts, and what must stay; names of licences."""

from __future__ import annotations

import pytest
from cpu_time import cpu_seconds

from osler.sources.formats.safe_xml import licence_of
from osler.sources.formats.sections import is_apparatus, is_noise, without_noise
from osler.sources.records import Section


@pytest.mark.parametrize(
    "line",
    [
        "https://example.org/a?b=c",
        "[1]: http://openstax.org/l/gout",
        "Available at: www.example.org/x (accessed 3 May 2020)",
        "doi:10.1000/182",
        "12. Smith J, Jones A, et al. Salt and pressure. Lancet 2003;361:12-34.",
        "[3] Miller AB, Roe R. Beer. BMJ. 2001 Jan 4;5(2):6.",
        "Smith, J. A., & Roe, R. (2019). Gout and beer. Journal of X, 12(3), 45. doi: x",
        "[2] 张三, 李四. 痛风的治疗[J]. 中华医学杂志, 2003, 5: 6-7.",
    ],
)
def test_a_line_that_is_only_an_address_or_an_entry_goes(line: str) -> None:
    assert is_noise(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Gout hurts (see https://example.org for more).",
        "In 2003 the Lancet published 361 cases; 12 of them died.",
        "Craniosynostosis The premature closure (fusion) is an error in 1: 2 cases of all newborn.",
        "Vitamin B 12 is given in a dose of 1:1000 by deep injection into the muscle.",
        "Hepatitis A and B, 3:1 in the sample, 2003; both are notifiable.",
        "1. Give adrenaline 1:1000 at once.",
        "Blood pressure 140/90; pulse 80.",
        "• Insulin R, Insulin N. Mix both in one syringe at a ratio of 30:70 before meals 12:30",
        "国家标准规定[1]：血压应低于 140/90。",
    ],
)
def test_a_sentence_stays_whatever_numbers_it_holds(line: str) -> None:
    assert not is_noise(line)


@pytest.mark.parametrize(
    ("heading", "is_one"),
    [
        ("References", True),
        ("12. REFERENCES", True),
        ("Further reading:", True),
        ("参考文献", True),
        ("See also", True),
        ("Reference values", False),
        ("Sources of infection", False),
        ("Notes on dosing", False),
        ("Referral", False),
    ],
)
def test_a_heading_of_references_is_told_from_one_of_medicine(heading: str, is_one: bool) -> None:
    assert is_apparatus(heading) is is_one


def test_lines_and_sections_that_go_are_counted() -> None:
    sections = (
        Section("Gout hurts.\nhttps://example.org/x", ("Gout",), 3),
        Section("Smith.\nJones.", ("Gout", "References")),
        Section("www.example.org"),
    )

    assert without_noise(sections) == ((Section("Gout hurts.", ("Gout",), 3),), 4)


@pytest.mark.parametrize("heading", ["Sources", "Footnotes", "Reading:", "Web sites", "注释"])
def test_below_a_heading_that_may_say_more_only_a_list_of_works_goes(heading: str) -> None:
    says = Section("Liver is rich in iron (table 2).\nTea lowers its uptake.", ("Iron", heading))
    list_of = "Smith, J. A. (2019). Iron. Oxford.\nwww.example.org\nIron pills"
    works = Section(list_of, (heading,))

    assert without_noise((says, works)) == ((says,), 3)


@pytest.mark.parametrize(
    "piece", ["http://", "A B ", "A. ", "Aa A, ", "1: ", "www.", "(", "[1] ", "doi "]
)
def test_noise_patterns_do_not_backtrack_on_a_long_line(piece: str) -> None:
    """16 times the line: up to 13 times the work; 256 times it, were that quadratic."""
    short, long = piece * (75 // len(piece)), piece * (1200 // len(piece))
    one = cpu_seconds(lambda: [is_noise(short) for _ in range(20)], tries=5)
    assert cpu_seconds(lambda: [is_noise(long) for _ in range(20)], tries=5) < 64 * one


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("http://creativecommons.org/licenses/by/4.0/", "CC BY 4.0"),
        ("See https://creativecommons.org/licenses/by-nc-sa/3.0/us/.", "CC BY-NC-SA 3.0"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0 1.0"),
        ("under the Creative Commons Attribution License, which", "CC BY"),
        ("Creative Commons Attribution-NonCommercial License", "CC BY-NC"),
        ("made available under the Creative Commons CC0 public domain dedication", "CC0"),
        ("No copyright restrictions apply.", "No copyright restrictions apply."),
        ("", ""),
    ],
)
def test_a_licence_has_one_name(statement: str, name: str) -> None:
    assert licence_of(statement) == name


def test_a_long_statement_is_cut() -> None:
    assert len(licence_of("All rights reserved by the publisher. " * 20)) == 160
