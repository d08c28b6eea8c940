"""ZIM archives: pages in either layout and packing; what is broken or hostile is named."""

from __future__ import annotations

import gzip
import struct
import zipfile
from importlib.util import find_spec
from io import BytesIO
from itertools import chain
from pathlib import Path

import pytest
from zim_files import Entry, Packing, zim_bytes

import osler
from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.ingest.reader_process import ReadLimits, read_batches
from osler.sources.discover import discover
from osler.sources.formats import containers, zim
from osler.sources.formats.zim import Zim
from osler.sources.reading import read_records
from osler.sources.records import Document, Drop, Record

HAS_ZSTD = find_spec("backports") is not None and find_spec("backports.zstd") is not None
PACKINGS = [
    "none",
    "xz",
    pytest.param("zstd", marks=pytest.mark.skipif(not HAS_ZSTD, reason="zim")),
]

ASPIRIN = b"""<html><head><title>Aspirin - Wiki</title>
<link rel="canonical" href="https://en.example.org/wiki/Aspirin"></head><body><h1>Aspirin</h1>
<p>Aspirin inhibits platelets.</p><h2>Doses</h2>
<table><caption>By age</caption><tr><th>Age</th><th>Dose</th></tr>
<tr><td>Adults</td><td>300 mg</td></tr></table>
<figure><img src="a.png"><figcaption>Willow bark, its first source.</figcaption></figure>
<h2>References</h2><p>Smith J. Willow. 1763.</p></body></html>"""
LIBRARY = (
    Entry("Aspirin", ASPIRIN, "Aspirin"),
    Entry("ASA", to="Aspirin"),
    Entry("Warfarin", b"<p>Warfarin is an anticoagulant.</p>", "Warfarin"),
    Entry("style.css", b"p {}", kind="text/css"),
)
ABOUT = {"Name": "wiki_en_med", "Date": "2024-05-01", "License": "CC BY-SA 4.0"}


def read(data: bytes, name: str = "med.zim") -> list[Record]:
    return list(Zim().parse(BytesIO(data), name))


def documents(records: list[Record]) -> list[Document]:
    return [one for one in records if isinstance(one, Document)]


@pytest.mark.parametrize("spaced", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("packing", PACKINGS)
def test_pages_are_read_in_each_layout_and_packing(
    packing: Packing, *, wide: bool, spaced: bool
) -> None:
    data = zim_bytes(*LIBRARY, packing=packing, wide=wide, spaced=spaced, about=ABOUT, together=2)

    records = read(data)
    first, second = documents(records)

    assert Zim().matches("download", data[:4096])
    assert (first.id, first.title) == ("wiki_en_med-Aspirin", "Aspirin")
    assert (first.year, first.version, first.licence) == (2024, 20240501, "CC BY-SA 4.0")
    assert first.url == "https://en.example.org/wiki/Aspirin"
    assert [(one.path, one.text) for one in first.sections] == [
        ((), "Aspirin inhibits platelets."),
        (("Doses",), "By age\n\nAge | Dose\n\nAdults | 300 mg\n\nWillow bark, its first source."),
    ]
    assert second.sections[0].text == "Warfarin is an anticoagulant."
    assert {(one.where, one.reason) for one in records if isinstance(one, Drop)} == {
        ("med.zim: 4 entries", "not an article"),
        ("med.zim: 1 entries", "redirect"),
    }


def test_a_page_is_cited_by_its_path_and_paths_that_differ_in_a_mark_stay_apart() -> None:
    paths = ("a/b", "a-b", "a b", "ä")

    found = documents(
        read(zim_bytes(*(Entry(path, f"<p>About {path}.</p>".encode()) for path in paths)))
    )

    assert {one.sections[0].text for one in found} == {f"About {path}." for path in paths}
    assert len({one.id for one in found}) == 4
    assert {"med-a-b", "med-ä"} < {one.id for one in found}


def test_entries_that_share_a_content_are_one_page() -> None:
    data = bytearray(zim_bytes(*LIBRARY))
    warfarin = data.index(b"Warfarin\0") - 4
    data[warfarin : warfarin + 4] = struct.pack("<I", 0)  # the place of Aspirin in the cluster

    records = read(bytes(data))

    assert len(documents(records)) == 1
    assert Drop("med.zim: 2 entries", "redirect") in records


def test_an_archive_in_an_archive_or_compressed_is_read_as_well(tmp_path: Path) -> None:
    data = zim_bytes(*LIBRARY)
    (tmp_path / "med.zim.gz").write_bytes(gzip.compress(data))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("med.zim", data)

    for name in ("med.zim.gz", "all.zip"):
        assert len(documents(list(osler.read(tmp_path / name)))) == 2


def test_a_newer_archive_takes_the_place_of_an_older(tmp_path: Path) -> None:
    for day in ("2024-05-01", "2024-09-01"):
        text = f"<p>As of {day} aspirin is given.</p>".encode()
        data = zim_bytes(Entry("Aspirin", text), about=ABOUT | {"Date": day})
        (tmp_path / f"med_{day[:7]}.zim").write_bytes(data)

    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "med_2024-09.zim", tmp_path / "med_2024-05.zim"], source="wiki")
        (source,) = kb.info().sources
        assert source.documents == 1
        assert "2024-09-01" in kb.get("wiki:wiki_en_med-Aspirin#0").text


def test_a_second_process_reads_it_as_the_first_does(tmp_path: Path) -> None:
    (tmp_path / "med.zim").write_bytes(zim_bytes(*LIBRARY))

    limits = ReadLimits(seconds=60, memory=2**30, documents=100)
    (found,) = discover([tmp_path / "med.zim"])
    assert not isinstance(found, Drop)

    assert list(chain.from_iterable(read_batches(found, limits))) == list(read_records(found))


@pytest.mark.parametrize(
    "cut", [3, 40, 90, 200, -1], ids=["magic", "header", "types", "directory", "last byte"]
)
def test_an_archive_cut_short_is_named(cut: int) -> None:
    with pytest.raises(MalformedSource, match="truncated or damaged"):
        read(zim_bytes(*LIBRARY)[:cut])


def test_a_broken_cluster_costs_its_own_pages_alone() -> None:
    data = bytearray(zim_bytes(*LIBRARY, together=1))
    data[data.index(b"\xfd7zXZ") + 30] ^= 0xFF

    records = read(bytes(data))

    assert [one.title for one in documents(records)] == ["Warfarin"]
    assert Drop("med.zim!C/Aspirin", "unreadable page") in records


@pytest.mark.parametrize("packing", PACKINGS)
def test_a_small_archive_that_swells_is_a_bomb(
    packing: Packing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_ALWAYS_ALLOWED", 2**20)
    pages = [Entry(f"p{n}", b"<p>" + b"a " * 2**19 + b"</p>") for n in range(40)]
    data = zim_bytes(*pages, packing=packing, together=1)

    if packing == "none":
        assert len(documents(read(data))) == 40
    else:
        with pytest.raises(MalformedSource, match="decompression bomb"):
            read(data)


def test_a_cluster_is_unpacked_no_further_than_one_may_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(zim, "_LARGEST_CLUSTER", 2**16)
    pages = [Entry("a", b"<p>Read.</p>"), Entry("b", b"<p>" + b"b" * 2**17)]

    records = read(zim_bytes(*pages))

    assert [one.title for one in documents(records)] == ["a"]
    assert Drop("med.zim!C/b", "unreadable page") in records


def test_no_byte_changed_anywhere_does_more_than_lose_pages() -> None:
    whole = zim_bytes(*LIBRARY, about=ABOUT, together=2)
    for at in range(len(whole)):
        data = bytearray(whole)
        data[at] ^= 0xFF
        try:
            records = read(bytes(data))
        except MalformedSource:
            continue
        assert len(documents(records)) <= 2
