"""Maps of codes: four file forms, and the way from one vocabulary to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import MalformedSource
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code
from osler_serve.clinic.records.crosswalk import CodeTranslation, Crosswalk, translate_all

ICD = Path(__file__).resolve().parents[5] / "shared" / "data" / "C_graphs" / "icd"

I9_TO_10 = """\
0020  A0100   10000
0021  A011    00000
11501 B394    10111
11501 G02     10112
7806  NoDx    11000
"""
I10_TO_9 = "A0100   0020  10000\nE1165   25080 10000\nR402131 NoDx  11000\n"
SNOMED = (
    "id\teffectiveTime\tactive\tmoduleId\trefsetId\treferencedComponentId\tmapGroup\tmapPriority"
    "\tmapRule\tmapAdvice\tmapTarget\tcorrelationId\tmapCategoryId\n"
    "a\t20260301\t1\tm\tr\t44054006\t1\t1\tIFA 248152002 | Female |\tx\tE11.8\tc\tk\n"
    "b\t20260301\t1\tm\tr\t44054006\t1\t2\tOTHERWISE TRUE\tALWAYS E11.9\tE11.9\tc\tk\n"
    "c\t20260301\t0\tm\tr\t44054006\t1\t1\tTRUE\tx\tZ99.9\tc\tk\n"
    "d\t20260301\t1\tm\tr\t127014009\t1\t1\tTRUE\tx\tE11.51\tc\tk\n"
    "e\t20260301\t1\tm\tr\t127014009\t2\t1\tTRUE\tx\tI79.2\tc\tk\n"
    "f\t20260301\t1\tm\tr\t261000\t1\t1\tTRUE\tCANNOT BE CLASSIFIED\t\tc\tk\n"
    "g\t20260301\t1\tm\tr\tnot-a-code\t1\t1\tTRUE\tx\tA00\tc\tk\n"
)
TABLE = (
    "source\tcode\ttarget\tto\n"
    "SNOMED CT\t195967001\tICD-10-CM\tJ45909\n"
    "SNOMED CT\t1\tNo such vocabulary\tX\n"
)


def nine(value: str) -> Code:
    return icd_code(value, "9")


def ten(value: str) -> Code:
    return icd_code(value, "10")


def read(folder: Path, *texts: str) -> Crosswalk:
    paths = []
    for number, text in enumerate(texts):
        path = folder / f"map{number}.txt"
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return Crosswalk.read_files(paths)


def test_a_gem_file_tells_what_is_exact_approximate_a_combination_and_nothing(
    tmp_path: Path,
) -> None:
    walk = read(tmp_path, I9_TO_10)

    assert walk.translate_directly(nine("0021"), CodeSystem.ICD10) == CodeTranslation(
        (ten("A011"),)
    )
    assert walk.translate_directly(nine("0020"), CodeSystem.ICD10) == CodeTranslation(
        (ten("A0100"),), True
    )
    both = CodeTranslation((ten("B394"), ten("G02")), approximate=True, combination=True)
    assert walk.translate_directly(nine("11501"), CodeSystem.ICD10) == both
    assert walk.translate_directly(nine("7806"), CodeSystem.ICD10) == CodeTranslation(())
    assert walk.translate_directly(nine("9999"), CodeSystem.ICD10) is None


def test_the_direction_of_a_gem_file_is_told_by_its_codes(tmp_path: Path) -> None:
    walk = read(tmp_path, I9_TO_10, I10_TO_9)

    assert walk.translate_directly(ten("E1165"), CodeSystem.ICD9) == CodeTranslation(
        (nine("25080"),), True
    )
    assert walk.translate_directly(ten("R402131"), CodeSystem.ICD9) == CodeTranslation(())
    assert len(walk) == 8


def test_of_alternatives_the_exact_one_is_taken_and_the_others_are_counted(tmp_path: Path) -> None:
    walk = read(tmp_path, "0020  A0100   10000\n0020  A0109   00000\n0020  A0102   10000\n")

    assert walk.translate_directly(nine("0020"), CodeSystem.ICD10) == CodeTranslation(
        (ten("A0109"),), alternatives=2
    )


def test_the_csv_form_of_the_gems_says_the_same(tmp_path: Path) -> None:
    head = '"icd9cm","icd10cm","flags","approximate","no_map","combination","scenario"\n'
    walk = read(tmp_path, head + '"0021","A011","00000",0,0,0,0\n"","A","1"\n')

    assert walk.translate_directly(nine("0021"), CodeSystem.ICD10) == CodeTranslation(
        (ten("A011"),)
    )
    assert walk.malformed == 1


def test_gems_between_procedures_are_not_taken_for_diagnoses(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match="not a map of codes"):
        read(tmp_path, "0001  6A750Z7 10000\n")


def test_a_snomed_map_gives_what_holds_without_age_and_sex(tmp_path: Path) -> None:
    walk = read(tmp_path, SNOMED)

    diabetes = walk.translate_directly(Code(CodeSystem.SNOMED, "44054006"), CodeSystem.ICD10)
    assert diabetes == CodeTranslation((ten("E119"),), alternatives=1)
    two = walk.translate_directly(Code(CodeSystem.SNOMED, "127014009"), CodeSystem.ICD10)
    assert two is not None
    assert set(two.codes) == {ten("E1151"), ten("I792")}
    assert two.combination
    assert walk.translate_directly(
        Code(CodeSystem.SNOMED, "261000"), CodeSystem.ICD10
    ) == CodeTranslation(())
    assert walk.malformed == 1


def test_maps_in_a_row_lead_from_snomed_to_icd_9(tmp_path: Path) -> None:
    walk = read(tmp_path, TABLE, "J45909  49390 10000\n")

    found = walk.translate_code(Code(CodeSystem.SNOMED, "195967001"), CodeSystem.ICD9)
    assert found == CodeTranslation((nine("49390"),), approximate=True)
    assert walk.malformed == 1
    assert walk.translate_code(nine("49390"), CodeSystem.ICD9) == CodeTranslation((nine("49390"),))
    assert walk.translate_code(Code(CodeSystem.SNOMED, "7"), CodeSystem.ICD9) is None


def test_a_circle_of_maps_ends(tmp_path: Path) -> None:
    walk = read(
        tmp_path,
        "source\tcode\ttarget\tto\nSNOMED CT\t1\tRxNorm\t2\nRxNorm\t2\tSNOMED CT\t1\n",
    )
    assert walk.translate_code(Code(CodeSystem.SNOMED, "1"), CodeSystem.ICD9) is None


def test_codes_without_a_map_stay_and_are_counted(tmp_path: Path) -> None:
    walk = read(tmp_path, I10_TO_9)
    snomed, lost = Code(CodeSystem.SNOMED, "7"), ten("R402131")

    kept, unmapped = translate_all(
        [ten("E1165"), nine("4019"), snomed, lost], walk, CodeSystem.ICD9
    )

    assert kept == {nine("25080"), nine("4019"), snomed, lost}
    assert unmapped == {CodeSystem.SNOMED: 1, CodeSystem.ICD10: 1}
    assert translate_all([snomed], None, CodeSystem.ICD9)[0] == {snomed}


def test_of_a_folder_what_is_no_map_is_passed_over_and_a_named_file_is_refused(
    tmp_path: Path,
) -> None:
    (tmp_path / "2018_I9gem.txt").write_text(I9_TO_10, encoding="utf-8")
    (tmp_path / "guide.txt").write_text("How to use the maps.\n", encoding="utf-8")

    assert len(Crosswalk.read_files([tmp_path])) == 5
    with pytest.raises(MalformedSource, match=r"guide\.txt is not a map"):
        Crosswalk.read_files([tmp_path / "guide.txt"])


def test_the_public_gem_files_are_read_row_for_row() -> None:
    if not ICD.exists():
        pytest.skip(f"the public test data is not here: {ICD}")
    there = Crosswalk.read_files([ICD / "icd9toicd10cmgem.csv"])
    back = Crosswalk.read_files([ICD / "icd10cmtoicd9gem.csv"])

    assert (len(there), there.malformed) == (11_378, 0)
    assert (len(back), back.malformed) == (21_242, 0)
    # The counts of the flags were taken with awk.
    flags = [row for rows in there.mappings.values() for row in rows]
    assert sum(row.target is None for row in flags) == 190
    assert sum(row.combination for row in flags) == 1_286
