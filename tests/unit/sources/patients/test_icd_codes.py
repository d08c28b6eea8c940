"""Codes: how they are written, which vocabulary they are of, and what they belong to."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from osler.errors import BadQuestion
from osler_serve.clinic.records.codes import (
    Code,
    CodeLevel,
    CodeSystem,
    code_lineage,
    found_in,
    icd_code,
    parse_code,
    version_of,
)

ICD = Path(__file__).resolve().parents[5] / "shared" / "data" / "C_graphs" / "icd"


@pytest.mark.parametrize(
    ("written", "version"),
    [
        ("99591", "9"),
        ("250.00", "9"),
        ("V58.61", "9"),
        ("V5861", "9"),
        ("E878.8", "9"),
        ("E87.88", "10"),
        ("E8788", ""),  # one of these two
        ("E119", "10"),
        ("E11.65", "10"),
        ("V0001XA", "10"),
        ("I50.9", "10"),
        ("M1A.9XX0", "10"),
        ("99591  ", "9"),
        ("blood", ""),
        ("", ""),
        ("1234567", ""),
    ],
)
def test_a_code_tells_its_vocabulary_where_it_can(written: str, version: str) -> None:
    assert version_of(written) == version


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("E11.9", Code(CodeSystem.ICD10, "E11.9")),
        ("e119", Code(CodeSystem.ICD10, "E11.9")),
        ("ICD-9-CM 250.00", Code(CodeSystem.ICD9, "250.00")),
        ("icd9: E8788", Code(CodeSystem.ICD9, "E878.8")),
        ("ICD10 E87.8", Code(CodeSystem.ICD10, "E87.8")),
        ("SNOMED CT 44054006", Code(CodeSystem.SNOMED, "44054006")),
        ("snomed:44054006", Code(CodeSystem.SNOMED, "44054006")),
        ("995.91", Code(CodeSystem.ICD9, "995.91")),
    ],
)
def test_a_code_is_read_as_people_write_it(written: str, code: Code) -> None:
    assert parse_code(written) == code


@pytest.mark.parametrize("written", ["E8788", "diabetes", "", "E11.9 and more"])
def test_what_is_no_code_or_two_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(BadQuestion, match="name the vocabulary"):
        parse_code(written)


def test_codes_are_found_in_running_text_and_numbers_are_not() -> None:
    text = "A 65-year-old, sodium 140.5, E11.9, (I50.9) and ICD-9-CM 250.00, 401.9; vitamin B12."

    assert found_in(text) == (
        Code(CodeSystem.ICD9, "250.00"),
        Code(CodeSystem.ICD9, "401.9"),
        Code(CodeSystem.ICD10, "E11.9"),
        Code(CodeSystem.ICD10, "I50.9"),
    )
    assert found_in("患者女，65岁，诊断E11.9、ICD-10：I10") == (
        Code(CodeSystem.ICD10, "I10"),
        Code(CodeSystem.ICD10, "E11.9"),
    )
    assert found_in("aged 65 with 38.5 degrees") == ()


@pytest.mark.parametrize(
    ("code", "named"),
    [
        (icd_code("E1165", "10"), ["E11.65", "E11.6", "E11", "E08-E13", "E00-E89"]),
        (icd_code("I10", "10"), ["I10", "I10", "I10-I1A", "I00-I99"]),
        (icd_code("C7A00", "10"), ["C7A.00", "C7A.0", "C7A", "C7A-C7A", "C00-D49"]),
        (icd_code("M1A9XX0", "10"), ["M1A.9XX0", "M1A.9", "M1A", "M05-M14", "M00-M99"]),
        (icd_code("C800", "10"), ["C80.0", "C80", "C76-C80", "C00-D49"]),
        (icd_code("25000", "9"), ["250.00", "250.0", "250", "249-259", "240-279"]),
        (icd_code("V5861", "9"), ["V58.61", "V58.6", "V58", "V50-V59", "V01-V91"]),
        (icd_code("E8788", "9"), ["E878.8", "E878", "E878-E879", "E000-E999"]),
        (icd_code("0389", "9"), ["038.9", "038", "030-041", "001-139"]),
        (Code(CodeSystem.SNOMED, "44054006"), ["44054006"]),
    ],
)
def test_a_code_belongs_to_its_category_block_and_chapter(code: Code, named: list[str]) -> None:
    system = code.system.value
    assert [name.removeprefix(f"{system} ") for _, name in code_lineage(code)] == named


def test_both_icd_10_share_their_categories_and_the_two_icds_nothing() -> None:
    who, american = Code(CodeSystem.ICD10_WHO, "I50"), Code(CodeSystem.ICD10, "I50.9")
    shared = set(code_lineage(who)) & set(code_lineage(american))

    assert {level for level, _ in shared} == {
        CodeLevel.CATEGORY,
        CodeLevel.BLOCK,
        CodeLevel.CHAPTER,
    }
    assert not set(code_lineage(icd_code("E8788", "9"))) & set(code_lineage(icd_code("E878", "10")))


@pytest.mark.parametrize(
    ("table", "column", "version"),
    [("icd9dx2015.csv", 0, "9"), ("icd10cm_categories.csv", 0, "10")],
)
def test_every_code_of_the_public_tables_has_its_place(
    table: str, column: int, version: str
) -> None:
    if not (ICD / table).exists():
        pytest.skip(f"the public test data is not here: {ICD}")
    with (ICD / table).open(encoding="utf-8-sig", newline="") as file:
        codes = [row[column] for row in csv.reader(file) if row[column] != "dgns_cd"]

    homeless = [
        code
        for code in codes
        if {CodeLevel.BLOCK, CodeLevel.CHAPTER}
        - {level for level, _ in code_lineage(icd_code(code, version))}
    ]
    assert len(codes) > 7_000
    assert homeless == []
