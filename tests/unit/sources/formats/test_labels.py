"""Drug labels: SPL XML, zips in a zip as DailyMed packs them, openFDA's JSON."""

from __future__ import annotations

import io
import json
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from osler.kb.base import KnowledgeBase
from osler.sources.formats.labels import OpenfdaLabels, Spl, shared_heading
from osler.sources.formats.registry import sniff_file
from osler.sources.reading import read
from osler.sources.records import Document, Drop, Record

REAL = Path(__file__).resolve().parents[5] / "shared" / "data" / "B_corpora" / "labels_spl"
SET = "11111111-2222-3333-4444-555555555555"


def section(code: str, title: str, text: str, inner: str = "") -> str:
    heading = f"<title>{title}</title>" if title else ""
    return (
        f'<component><section><code code="{code}" codeSystem="2.16.840.1.113883.6.1"/>{heading}'
        f"<text><paragraph>{text}</paragraph></text>"
        "<excerpt><highlight><text>Said twice.</text></highlight></excerpt>"
        f"{inner}</section></component>"
    )


def spl(*sections: str, version: int = 3, kind: str = "HUMAN PRESCRIPTION DRUG LABEL") -> bytes:
    product = (
        '<component><section><code code="48780-1" codeSystem="2.16.840.1.113883.6.1"/><subject>'
        "<manufacturedProduct><manufacturedProduct><name>ZESTOREL</name><asEntityWithGeneric>"
        "<genericMedicine><name>Zestorelol succinate</name></genericMedicine></asEntityWithGeneric>"
        '<ingredient classCode="ACTIB"><ingredientSubstance><name>ZESTORELOL SUCCINATE</name>'
        "</ingredientSubstance></ingredient></manufacturedProduct></manufacturedProduct></subject>"
        "</section></component>"
    )
    return (
        '<?xml version="1.0"?><document xmlns="urn:hl7-org:v3"><id root="a"/>'
        f'<code code="34391-3" displayName="{kind}"/><title>Long words</title>'
        f'<effectiveTime value="20240229"/><setId root="{SET}"/>'
        f'<versionNumber value="{version}"/><author><assignedEntity><representedOrganization>'
        "<name>Example Works</name></representedOrganization></assignedEntity></author>"
        f"<component><structuredBody>{product}{''.join(sections)}</structuredBody></component>"
        "</document>"
    ).encode()


LABEL = spl(
    section("34066-1", "WARNING: LOW PULSE", "The pulse may stop."),
    section(
        "34068-7",
        "2 DOSAGE &amp; ADMINISTRATION",
        "Once a day.",
        section("42229-5", "2.1 Adults", "Give 5 mg.") + section("34066-1", "", "A box of doses."),
    ),
    section(
        "43684-0",
        "8 USE IN SPECIFIC POPULATIONS",
        "See below.",
        section("88828-9", "8.6 Renal Impairment", "Halve the dose."),
    ),
    section("51945-4", "PRINCIPAL DISPLAY PANEL", "30 tablets"),
)


def openfda(**fields: Any) -> dict[str, Any]:
    return {
        "spl_product_data_elements": ["Zestorel zestorelol succinate STARCH, CORN"],
        "contraindications": ["4 CONTRAINDICATIONS Asthma."],
        "set_id": SET,
        "id": "b",
        "version": "2",
        "effective_time": "20230101",
        "openfda": {
            "brand_name": ["Zestorel"],
            "generic_name": ["ZESTORELOL SUCCINATE"],
            "substance_name": ["ZESTORELOL SUCCINATE"],
            "pharm_class_epc": ["Beta-Adrenergic Blocker [EPC]"],
            "manufacturer_name": ["Example Works"],
        },
        **fields,
    }


def page(*results: Any) -> bytes:
    meta = {"disclaimer": "See https://open.fda.gov/terms/", "results": {"total": len(results)}}
    return json.dumps({"meta": meta, "results": results}).encode()


def packed(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def parse(data: bytes) -> list[Record]:
    parser = sniff_file("x", data[:4096])
    assert parser is not None
    return [*parser.parse(io.BytesIO(data), "x")]


def only(data: bytes) -> Document:
    (found,) = parse(data)
    assert isinstance(found, Document)
    return found


def test_a_cell_that_covers_two_rows_stands_in_both() -> None:
    table = (
        '</paragraph><table><tr><td rowspan="2">Iron</td><td>oral</td></tr><tr><td>iv</td></tr>'
        "</table><paragraph>"
    )
    found = only(spl(section("34068-7", "", f"Doses.{table}See above.")))
    assert found.sections[-1].text == "Doses.\nIron | oral\nIron | iv\nSee above."


def test_a_label_has_set_id_version_day_and_names() -> None:
    found = only(LABEL)
    assert isinstance(sniff_file("x.xml", LABEL[:4096]), Spl)
    assert (found.id, found.version, found.year, found.kind) == (SET, 3, 2024, "Drug label")
    assert found.title == "Zestorelol succinate (ZESTOREL)"
    assert found.code == f"SPL:{SET} version 3"
    product = found.sections[0]
    assert product.path == ("Product",)
    assert product.text.splitlines() == [
        "Brand: ZESTOREL",
        "Active ingredient: ZESTORELOL SUCCINATE",
        "Made by: Example Works",
        "Effective: 2024-02-29",
    ]


def test_codes_give_the_headings_and_what_repeats_or_only_packs_is_left_out() -> None:
    assert [(one.path, one.text) for one in only(LABEL).sections[1:]] == [
        (("Boxed warning: WARNING: LOW PULSE",), "The pulse may stop."),
        (("Dosage and administration",), "Once a day."),
        (("Dosage and administration", "2.1 Adults"), "Give 5 mg."),
        (("Dosage and administration",), "A box of doses."),
        (("Use in specific populations",), "See below."),
        (("Use in specific populations", "Renal impairment"), "Halve the dose."),
    ]


@pytest.mark.parametrize(
    ("path", "shared"),
    [
        ("Boxed warning: WARNING: LOW PULSE", "Boxed warning"),
        ("Use in specific populations > Renal impairment", "Renal impairment"),
        ("Dosage and administration > 2.1 Adults", "Dosage and administration"),
        ("Other information", "Other information"),
    ],
)
def test_labels_share_the_innermost_heading_that_is_known(path: str, shared: str) -> None:
    assert shared_heading(path) == shared


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("PRESCRIPTION ANIMAL DRUG LABEL", "label of an animal's drug"),
        ("Indexing - Pharmacologic Class", "entry of an index, no label"),
    ],
)
def test_what_is_no_label_of_a_medicine_for_people_is_a_drop(kind: str, reason: str) -> None:
    assert parse(spl(section("34070-3", "", "None."), kind=kind)) == [Drop("x", reason)]


def test_openfda_gives_the_same_document() -> None:
    found = only(page(openfda()))
    assert isinstance(sniff_file("x.json", page(openfda())[:4096]), OpenfdaLabels)
    assert (found.id, found.version, found.year) == (SET, 2, 2023)
    assert found.title == "Zestorelol succinate (Zestorel)"
    assert "Class: Beta-Adrenergic Blocker" in found.sections[0].text.splitlines()
    assert [(one.path, one.text) for one in found.sections[1:]] == [
        (("Contraindications",), "Asthma.")
    ]


@pytest.mark.parametrize(
    ("told", "year", "day"),
    [("2019", 2019, ""), ("201905", 2019, "2019-05"), ("20190531", 2019, "2019-05-31")],
)
def test_a_label_says_no_more_of_its_day_than_is_known(told: str, year: int, day: str) -> None:
    label = only(page(openfda(effective_time=told)))

    assert (label.year, label.date) == (year, day)
    assert label.sections[0].text.endswith(f"Effective: {day or year}")


def test_numbered_parts_of_a_field_begin_a_line_and_no_word_is_lost() -> None:
    said = "2 DOSAGE AND ADMINISTRATION 2.1 Adults Give 5 mg (2.2). 2.2 Children Give 1 mg."
    fields = {
        "dosage_and_administration": [said],
        "dosage_and_administration_table": ["<table>left out</table>"],
        "do_not_use": ["Do not use with another one."],
        "spl_unclassified_section": ["Keep dry."],
    }
    texts = {one.path: one.text for one in only(page(openfda(**fields))).sections}
    assert texts[("Dosage and administration",)].split("\n") == [
        "2.1 Adults Give 5 mg (2.2).",
        "2.2 Children Give 1 mg.",
    ]
    assert texts[("Do not use",)] == "Do not use with another one."
    assert texts[()] == "Keep dry."


def test_records_without_names_keep_their_text_and_others_are_drops() -> None:
    empty = {"set_id": SET, "version": "1", "effective_time": "2023", "openfda": {}}
    found = parse(page(openfda(openfda={}), {"safetyreportid": "1"}, empty, "text"))
    assert isinstance(found[0], Document)
    assert found[0].title == "Zestorel zestorelol succinate STARCH, CORN"
    assert [one.reason for one in found if isinstance(one, Drop)] == [
        "no set id",
        "no text",
        "no set id",
    ]


def test_a_zip_of_zips_is_read_and_pictures_are_drops(tmp_path: Path) -> None:
    inner = packed({f"{SET}.xml": LABEL, "box.jpg": b"\xff\xd8\xff\xe0"})
    path = tmp_path / "dm_spl_release.zip"
    path.write_bytes(packed({"prescription/20240229_a.zip": inner, "b.zip": b"PK\3\4broken"}))
    found = [*read(path)]
    assert [one.title for one in found if isinstance(one, Document)] == [
        "Zestorelol succinate (ZESTOREL)"
    ]
    assert [one.reason for one in found if isinstance(one, Drop)] == [
        "unknown format",
        "truncated or damaged",
    ]


@pytest.mark.parametrize("names", [("a.xml", "b.json"), ("b.xml", "a.json")])
def test_the_later_version_of_a_set_id_takes_the_place_of_the_earlier(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    for name, data in zip(names, (LABEL, page(openfda())), strict=True):
        (tmp_path / name).write_bytes(data)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / name for name in sorted(names)], source="label")
        (document,) = kb.read_documents("label")
        (row,) = kb.info().sources
    assert document[0].locator.code == f"SPL:{SET} version 3"
    assert row.drops == {"a newer version is there": 1}


def test_real_labels_are_read_whole() -> None:
    if not REAL.is_dir():
        pytest.skip(f"the labels of DATA.md B20 are not here: {REAL}")
    found = [*read(REAL)]
    titles = {one.title: one for one in found if isinstance(one, Document)}
    drops = Counter(one.reason for one in found if isinstance(one, Drop))
    assert drops == {"entry of an index, no label": 2}
    assert sorted(titles) == [
        "Adalimumab (Humira)",
        "Atorvastatin calcium (Lipitor)",
        "Atorvastatin calcium trihydrate (Lipitor)",
        "Diphenhydramine HCl, Phenylephrine HCl (TRIAMINIC)",
        "Haloperidol",
        "Sildenafil citrate (Viagra)",
    ]
    headings = {
        shared_heading(" > ".join(one.path))
        for one in titles["Sildenafil citrate (Viagra)"].sections
    }
    assert headings >= {"Contraindications", "Drug interactions", "Pregnancy", "Overdosage"}
