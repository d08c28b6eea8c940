"""Files of reference managers: one work, whatever program wrote it."""

from __future__ import annotations

import io
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import rispy
from hypothesis import given
from hypothesis import strategies as st

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import PassageFilter
from osler.sources.formats.references import Bibtex, CslJson, EndnoteXml, Ris
from osler.sources.formats.registry import sniff_file, sniff_folder
from osler.sources.formats.zotero import Zotero
from osler.sources.records import Document, Drop, Section

RIS = """TY  - JOUR
ID  - smith:2021
TI  - Oral iron every other day
AU  - Smith, Jane A.
AU  - Müller, K.
PY  - 2021/03
JO  - J Iron
DO  - 10.1000/Iron.1
AN  - 12230038
DB  - PubMed
AB  - Oral iron on alternate days is absorbed
better than daily iron.
KW  - anaemia
ER  -
"""
BIBTEX = r"""@article{smith:2021,
  title = {Oral {iron} every other day},
  author = {Smith, Jane A. and K. M{\"u}ller},
  year = 2021, journal = {J Iron}, doi = {10.1000/Iron.1}, pmid = {12230038},
  abstract = {Oral iron on alternate days is absorbed better than daily iron.},
  keywords = {anaemia}
}
"""
CSL = [
    {
        "id": "smith:2021",
        "type": "article-journal",
        "title": "Oral iron every other day",
        "author": [{"family": "Smith", "given": "Jane A."}, {"family": "Müller", "given": "K."}],
        "issued": {"date-parts": [[2021, 3]]},
        "container-title": "J Iron",
        "DOI": "10.1000/Iron.1",
        "PMID": "12230038",
        "abstract": "Oral iron on alternate days is absorbed better than daily iron.",
        "keyword": "anaemia",
    }
]
ENDNOTE = """<?xml version="1.0"?><xml><records><record>
<ref-type name="Journal Article">17</ref-type>
<contributors><authors><author><style>Smith, Jane A.</style></author><author>Müller, K.</author>
</authors></contributors><titles><title><style>Oral iron every other day</style></title>
<secondary-title>J Iron</secondary-title></titles><dates><year>2021</year></dates>
<keywords><keyword>anaemia</keyword></keywords><label>smith:2021</label>
<accession-num>12230038</accession-num><remote-database-name>Medline</remote-database-name>
<electronic-resource-num>10.1000/Iron.1</electronic-resource-num>
<abstract>Oral iron on alternate days is absorbed better than daily iron.</abstract>
</record></records></xml>"""
FILES = {
    "refs.ris": RIS,
    "refs.bib": BIBTEX,
    "refs.json": json.dumps(CSL),
    "refs.xml": ENDNOTE,
}
WORK = Document(
    id="12230038",
    title="Oral iron every other day",
    sections=(Section("Oral iron on alternate days is absorbed better than daily iron."),),
    year=2021,
    url="https://doi.org/10.1000/iron.1",
    code="PMID:12230038",
    kind="Journal Article",
    kinds=("Journal Article", "tag: anaemia"),
    authors=("Smith JA", "Müller K"),
    journal="J Iron",
    key="smith:2021",
    doi="10.1000/iron.1",
)


@pytest.mark.parametrize("name", FILES)
def test_the_same_work_comes_of_every_programs_file(name: str) -> None:
    data = FILES[name].encode()
    parser = sniff_file(name, data[:4096])
    assert isinstance(parser, Ris | Bibtex | CslJson | EndnoteXml)
    (work,) = parser.parse(io.BytesIO(data), name)
    assert isinstance(work, Document)
    assert replace(work, date="") == WORK
    assert work.date == ("2021-03" if name in {"refs.ris", "refs.json"} else "")


WORDS = st.text("abcé αβ,.-(", min_size=1, max_size=30).map(lambda t: " ".join(t.split()))


@given(st.lists(st.tuples(WORDS.filter(bool), WORDS), min_size=1, max_size=4))
def test_ris_is_read_as_a_reader_of_ris_reads_it(works: list[tuple[str, str]]) -> None:
    told = [
        {"type_of_reference": "JOUR", "id": str(n), "title": title, "abstract": text}
        for n, (title, text) in enumerate(works)
    ]
    data = rispy.dumps(told)
    read = list(Ris().parse(io.BytesIO(data.encode()), "x.ris"))
    assert [one.title for one in read if isinstance(one, Document)] == [
        one["title"] for one in rispy.loads(data)
    ]


@pytest.mark.parametrize(
    ("dates", "day"),
    [
        ("PY  - 2022\nDA  - 2022/03/14", "2022-03-14"),
        ("PY  - 2022\nDA  - 2022/03/14/Print", "2022-03-14"),
        ("PY  - 2022/05//\nDA  - 2022", "2022-05"),
        ("PY  - 2022\nDA  - 2024/03/14", ""),
    ],
)
def test_ris_has_the_day_of_its_year_of_publication(dates: str, day: str) -> None:
    data = f"TY  - JOUR\nTI  - Iron\n{dates}\nER  - \n".encode()
    (work,) = Ris().parse(io.BytesIO(data), "x.ris")
    assert isinstance(work, Document)
    assert (work.year, work.date) == (2022, day)


def test_a_power_in_endnote_keeps_its_height() -> None:
    power = "daily iron, 10<style face='superscript'>9</style>/L."
    data = ENDNOTE.replace("daily iron.<", f"{power}<").encode()
    (work,) = EndnoteXml().parse(io.BytesIO(data), "x.xml")
    assert isinstance(work, Document)
    assert work.sections[0].text.endswith("daily iron, 10⁹/L.")


def test_all_parts_of_an_abstract_of_ris_are_read() -> None:
    data = b"TY  - JOUR\nTI  - Iron\nAB  - Aim: iron.\nAB  - Results: it harmed 5.\nER  - \n"
    (work,) = Ris().parse(io.BytesIO(data), "x.ris")
    assert isinstance(work, Document)
    assert work.sections == (Section("Aim: iron.\nResults: it harmed 5."),)


def test_markup_of_csl_json_is_read_as_that_of_a_page() -> None:
    item = {
        "type": "article-journal",
        "title": "T <i>in</i> 10<jats:sup>9</jats:sup> &amp; more",
        "abstract": "<jats:title>Aim</jats:title>\n <jats:p>Iron &lt; 5 mg; p<a and b> c.</jats:p>"
        '<jats:list list-type="a"><jats:list-item>Rest<br/>at once</jats:list-item></jats:list>',
        "container-title": "Ward &amp; Care",
        "issued": {"date-parts": [[2020]]},
    }
    (found,) = CslJson().parse(io.BytesIO(json.dumps([item]).encode()), "a.json")
    assert isinstance(found, Document)
    assert (found.id, found.title) == ("T-in-10⁹-more-2020", "T in 10⁹ & more")
    assert found.journal == "Ward & Care"
    assert found.sections[0].text == "Aim\nIron < 5 mg; p<a and b> c.\nRest\nat once"


def test_a_work_without_title_is_a_drop_with_its_line() -> None:
    data = f"{RIS}\nTY  - JOUR\nAU  - Lee, K\nER  - \n".encode()
    records = list(Ris().parse(io.BytesIO(data), "x.ris"))
    assert records == [replace(WORK, date="2021-03"), Drop("x.ris:16", "no title")]


def test_a_damaged_entry_is_a_drop_and_the_next_is_read() -> None:
    data = f"@book{{broken, title = {{x\n{BIBTEX}".encode()
    drop, *works = Bibtex().parse(io.BytesIO(data), "x.bib")
    assert isinstance(drop, Drop)
    assert drop.reason == "malformed entry"
    assert works == [WORK]


def test_a_note_that_begins_with_a_number_is_no_pmid() -> None:
    data = b"@article{a, title = {Iron}, note = {12 pages}}"
    (work,) = Bibtex().parse(io.BytesIO(data), "x.bib")
    assert isinstance(work, Document)
    assert (work.code, work.id) == ("", "a")


ZOTERO = """
CREATE TABLE itemTypes(itemTypeID INTEGER PRIMARY KEY, typeName TEXT);
CREATE TABLE items(itemID INTEGER PRIMARY KEY, itemTypeID INT, key TEXT);
CREATE TABLE fieldsCombined(fieldID INTEGER PRIMARY KEY, fieldName TEXT);
CREATE TABLE itemDataValues(valueID INTEGER PRIMARY KEY, value);
CREATE TABLE itemData(itemID INT, fieldID INT, valueID INT);
CREATE TABLE creatorTypes(creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE creators(creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT);
CREATE TABLE itemCreators(itemID INT, creatorID INT, creatorTypeID INT, orderIndex INT);
CREATE TABLE collections(collectionID INTEGER PRIMARY KEY, collectionName TEXT);
CREATE TABLE collectionItems(collectionID INT, itemID INT);
CREATE TABLE tags(tagID INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE itemTags(itemID INT, tagID INT);
CREATE TABLE itemNotes(itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT);
CREATE TABLE itemAttachments(itemID INTEGER PRIMARY KEY, parentItemID INT, contentType TEXT,
  path TEXT);
CREATE TABLE deletedItems(itemID INTEGER PRIMARY KEY);
CREATE TABLE retractedItems(itemID INTEGER PRIMARY KEY, data TEXT);
INSERT INTO itemTypes VALUES (1,'journalArticle'),(2,'attachment'),(3,'note');
INSERT INTO items VALUES (1,1,'AAAA1111'),(2,2,'BBBB2222'),(3,3,'CCCC3333'),(4,1,'DDDD4444'),
  (5,1,'EEEE5555');
INSERT INTO fieldsCombined VALUES (1,'title'),(2,'abstractNote'),(3,'date'),
  (4,'publicationTitle'),(5,'DOI'),(6,'extra');
INSERT INTO itemDataValues VALUES (1,'Oral iron every other day'),
  (2,'<p>Oral iron on alternate days is absorbed better than daily iron.</p>'),
  (3,'2021-03-00 March 2021'),
  (4,'J Iron'),(5,'10.1000/Iron.1'),(6,'PMID: 12230038
Citation Key: smith:2021'),(7,'Thrown away'),(8,'A work that was retracted');
INSERT INTO itemData VALUES (1,1,1),(1,2,2),(1,3,3),(1,4,4),(1,5,5),(1,6,6),(4,1,7),(5,1,8);
INSERT INTO creatorTypes VALUES (1,'author'),(2,'editor');
INSERT INTO creators VALUES (1,'Jane A.','Smith',0),(2,'K.','Müller',0),(3,'Ed','Itor',0);
INSERT INTO itemCreators VALUES (1,2,1,1),(1,1,1,0),(1,3,2,2);
INSERT INTO collections VALUES (1,'Ward');
INSERT INTO collectionItems VALUES (1,1);
INSERT INTO tags VALUES (1,'anaemia');
INSERT INTO itemTags VALUES (1,1);
INSERT INTO itemNotes VALUES (3,1,'<div><p>Give it on <b>odd</b> days &amp; fasting.</p></div>');
INSERT INTO itemAttachments VALUES (2,1,'application/pdf','storage:gone.pdf');
INSERT INTO deletedItems VALUES (4);
INSERT INTO retractedItems VALUES (5,'{}');
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "Zotero"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "zotero.sqlite")) as db:
        db.executescript(ZOTERO)
    return folder


def test_a_library_of_zotero_is_read_with_notes_tags_and_collections(library: Path) -> None:
    assert isinstance(sniff_folder(library), Zotero)
    drop, work, gone = Zotero().parse_folder(library)
    note = Section("Give it on odd days & fasting.", ("Note",))
    assert work == replace(
        WORK, sections=(*WORK.sections, note), kinds=(*WORK.kinds, "collection: Ward")
    )
    assert isinstance(drop, Drop)
    assert drop.reason == "attachment not read"
    assert isinstance(gone, Document)
    assert gone.retracted


def test_nothing_is_written_into_the_library_and_a_lock_is_no_hindrance(library: Path) -> None:
    before = {path: path.read_bytes() for path in library.rglob("*")}
    with closing(sqlite3.connect(library / "zotero.sqlite", isolation_level=None)) as zotero:
        zotero.execute("BEGIN EXCLUSIVE")
        assert sum(isinstance(one, Document) for one in Zotero().parse_folder(library)) == 2
        zotero.execute("ROLLBACK")
    assert {path: path.read_bytes() for path in library.rglob("*")} == before


def test_a_collection_is_a_filter_and_a_retracted_work_is_not_found(
    library: Path, tmp_path: Path
) -> None:
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([library], source="research")
        for kinds, found in ((("collection: ward",), 1), (("collection: other",), 0), ((), 1)):
            within = PassageFilter(kinds=kinds)
            hits = {
                one.id.partition("#")[0] for one, _ in kb.by_words(["iron"], k=9, within=within)
            }
            assert len(hits) == found
        assert kb.by_words(["retracted"], k=9) == []
        assert kb.get("research:12230038#0").locator.key == "smith:2021"
