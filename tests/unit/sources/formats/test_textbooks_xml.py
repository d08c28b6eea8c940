"""CNXML modules with their collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import MalformedSource
from osler.sources.discover import discover
from osler.sources.formats.collection_xml import Cnxml
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop

MODULE = """<document xmlns="http://cnx.rice.edu/cnxml"><title>Gout</title>
<metadata xmlns:md="http://cnx.rice.edu/mdml"><md:title>Gout</md:title>
<md:content-id>{id}</md:content-id></metadata><content><para>Gout hurts. <link target-id="t1"
document="m1"/> lists <term>drugs</term>.</para><section><title>Care</title><list><item>Rest.</item>
<item>Drink.</item></list><table id="t1"><tgroup><tbody><row><entry>Drug</entry><entry>Dose</entry>
</row></tbody></tgroup></table><media><image/></media></section></content><glossary>
<definition><term>urate</term><meaning>a salt</meaning></definition></glossary></document>"""
BOOK = """<col:collection xmlns:col="http://cnx.rice.edu/collxml"
xmlns:md="http://cnx.rice.edu/mdml"><col:metadata><md:title>Nursing</md:title><md:slug>nursing
</md:slug><md:license url="http://creativecommons.org/licenses/by/4.0/"/></col:metadata><col:content>
<col:module document="m0"/><col:subcollection><md:title>Joints</md:title><col:content>
<col:subcollection><md:title>Pain</md:title><col:content><col:module document="m9"/></col:content>
</col:subcollection><col:subcollection><md:title>Crystals</md:title><col:content>
<col:module document="m1"/></col:content></col:subcollection></col:content></col:subcollection>
</col:content></col:collection>"""


def module(folder: Path, id: str = "m1") -> None:
    (folder / "modules" / id).mkdir(parents=True)
    (folder / "modules" / id / "index.cnxml").write_text(MODULE.format(id=id))


def documents(path: Path) -> list[Document]:
    found = [item for item in discover([path]) if not isinstance(item, Drop)]
    return [r for item in found for r in read_records(item) if isinstance(r, Document)]


def test_a_module_alone_is_a_document_of_its_own_title(tmp_path: Path) -> None:
    module(tmp_path)

    (found,) = documents(tmp_path)

    assert (found.id, found.title, found.code) == ("modules-m1", "Gout", "m1")
    assert [(s.path, s.text) for s in found.sections] == [
        ((), "Gout hurts. Table lists drugs."),
        (("Care",), "- Rest.\n- Drink.\nDrug | Dose"),
        (("Glossary",), "- urate: a salt"),
    ]


def test_the_collection_gives_book_unit_chapter_and_licence(tmp_path: Path) -> None:
    module(tmp_path)
    (tmp_path / "collections").mkdir()
    (tmp_path / "collections" / "n.collection.xml").write_text(BOOK)

    (found,) = documents(tmp_path)

    assert (found.title, found.licence) == ("Nursing", "CC BY 4.0")
    assert found.sections[1].path == ("Joints", "Chapter 2: Crystals", "Gout", "Care")


def test_the_collection_itself_is_passed_over_aloud(tmp_path: Path) -> None:
    (tmp_path / "n.collection.xml").write_text(BOOK)

    assert [item.reason for item in discover([tmp_path]) if isinstance(item, Drop)] == [
        "table of contents, read with its files"
    ]


def test_a_collection_beside_a_single_file_is_found(tmp_path: Path) -> None:
    module(tmp_path)
    inside = tmp_path / "modules" / "m1"
    (inside / "n.collection.xml").write_text(BOOK)

    (found,) = documents(inside / "index.cnxml")

    assert found.title == "Nursing"


def test_a_changed_collection_changes_how_its_modules_are_read(tmp_path: Path) -> None:
    module(tmp_path)
    collection = tmp_path / "n.collection.xml"
    collection.write_text(BOOK)
    (first,) = (item for item in discover([tmp_path]) if not isinstance(item, Drop))
    collection.write_text(BOOK.replace("Crystals", "Stones"))
    (second,) = (item for item in discover([tmp_path]) if not isinstance(item, Drop))

    assert first.beside != second.beside != ""


def test_a_bad_collection_is_a_drop_and_the_modules_are_read_all_the_same(tmp_path: Path) -> None:
    module(tmp_path)
    (tmp_path / "n.collection.xml").write_text("<col:collection")

    assert "malformed file" in {i.reason for i in discover([tmp_path]) if isinstance(i, Drop)}
    assert [document.title for document in documents(tmp_path)] == ["Gout"]
    with pytest.raises(MalformedSource):
        Cnxml().with_companions([tmp_path / "n.collection.xml"])
